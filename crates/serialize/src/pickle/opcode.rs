//! The opcodes of pickle protocols 0 to 5.

macro_rules! opcodes {
    ($($name:ident = $byte:literal, $python:literal;)*) => {
        /// One opcode; the discriminant is its byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Opcode {
            $($name = $byte,)*
        }

        impl Opcode {
            /// The opcode that `byte` stands for.
            pub fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Opcode::$name),)*
                    _ => None,
                }
            }

            /// The name in Python's `pickle` module.
            pub fn name(self) -> &'static str {
                match self {
                    $(Opcode::$name => $python,)*
                }
            }

            /// Every opcode.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name,)*];
        }
    };
}

opcodes! {
    // Stack and framing.
    Mark = b'(', "MARK";
    Stop = b'.', "STOP";
    Pop = b'0', "POP";
    PopMark = b'1', "POP_MARK";
    Dup = b'2', "DUP";
    Proto = 0x80, "PROTO";
    Frame = 0x95, "FRAME";
    // Numbers.
    Float = b'F', "FLOAT";
    BinFloat = b'G', "BINFLOAT";
    Int = b'I', "INT";
    BinInt = b'J', "BININT";
    BinInt1 = b'K', "BININT1";
    BinInt2 = b'M', "BININT2";
    Long = b'L', "LONG";
    Long1 = 0x8a, "LONG1";
    Long4 = 0x8b, "LONG4";
    NewTrue = 0x88, "NEWTRUE";
    NewFalse = 0x89, "NEWFALSE";
    None = b'N', "NONE";
    // Strings.
    String = b'S', "STRING";
    BinString = b'T', "BINSTRING";
    ShortBinString = b'U', "SHORT_BINSTRING";
    Unicode = b'V', "UNICODE";
    BinUnicode = b'X', "BINUNICODE";
    ShortBinUnicode = 0x8c, "SHORT_BINUNICODE";
    BinUnicode8 = 0x8d, "BINUNICODE8";
    BinBytes = b'B', "BINBYTES";
    ShortBinBytes = b'C', "SHORT_BINBYTES";
    BinBytes8 = 0x8e, "BINBYTES8";
    ByteArray8 = 0x96, "BYTEARRAY8";
    // Containers.
    EmptyList = b']', "EMPTY_LIST";
    List = b'l', "LIST";
    Append = b'a', "APPEND";
    Appends = b'e', "APPENDS";
    EmptyTuple = b')', "EMPTY_TUPLE";
    Tuple = b't', "TUPLE";
    Tuple1 = 0x85, "TUPLE1";
    Tuple2 = 0x86, "TUPLE2";
    Tuple3 = 0x87, "TUPLE3";
    EmptyDict = b'}', "EMPTY_DICT";
    Dict = b'd', "DICT";
    SetItem = b's', "SETITEM";
    SetItems = b'u', "SETITEMS";
    EmptySet = 0x8f, "EMPTY_SET";
    AddItems = 0x90, "ADDITEMS";
    FrozenSet = 0x91, "FROZENSET";
    // Memo.
    Get = b'g', "GET";
    BinGet = b'h', "BINGET";
    LongBinGet = b'j', "LONG_BINGET";
    Put = b'p', "PUT";
    BinPut = b'q', "BINPUT";
    LongBinPut = b'r', "LONG_BINPUT";
    Memoize = 0x94, "MEMOIZE";
    // Objects.
    Global = b'c', "GLOBAL";
    StackGlobal = 0x93, "STACK_GLOBAL";
    Reduce = b'R', "REDUCE";
    Build = b'b', "BUILD";
    Inst = b'i', "INST";
    Obj = b'o', "OBJ";
    NewObj = 0x81, "NEWOBJ";
    NewObjEx = 0x92, "NEWOBJ_EX";
    PersId = b'P', "PERSID";
    BinPersId = b'Q', "BINPERSID";
    // Not in checkpoints: they refer to state outside the file.
    Ext1 = 0x82, "EXT1";
    Ext2 = 0x83, "EXT2";
    Ext4 = 0x84, "EXT4";
    NextBuffer = 0x97, "NEXT_BUFFER";
    ReadOnlyBuffer = 0x98, "READONLY_BUFFER";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_opcodes_agree() {
        for &opcode in Opcode::ALL {
            assert_eq!(Opcode::from_byte(opcode as u8), Some(opcode));
        }
        // Python 3.11 has this many (pickletools.opcodes).
        assert_eq!(Opcode::ALL.len(), 68);
        assert_eq!(Opcode::from_byte(0xff), None);
    }
}
