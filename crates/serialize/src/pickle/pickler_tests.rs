//! Expected bytes are what CPython 3.11 writes with protocol 2.

use super::*;
use crate::pickle::allow_list::GlobalPolicy;
use crate::pickle::builder::PickleBuilder;
use crate::pickle::records::TensorRecord;
use crate::pickle::unpickler::Unpickler;

fn dump(build: impl FnOnce(&mut PickleBuilder) -> NodeId) -> Vec<u8> {
    let mut b = PickleBuilder::new();
    let root = build(&mut b);
    Pickler::new().dump(&b.finish(root).unwrap()).unwrap()
}

fn rewritten(bytes: &[u8]) -> Vec<u8> {
    let pickle = Unpickler::new().policy(GlobalPolicy::any()).load(bytes).unwrap();
    Pickler::new().dump(&pickle).unwrap()
}

#[test]
fn what_cpython_wrote_is_written_again_byte_for_byte() {
    let cases: &[&[u8]] = &[
        b"\x80\x02}q\x00.",
        b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.",
        b"\x80\x02}q\x00(X\x01\x00\x00\x00kq\x01h\x01X\x01\x00\x00\x00jq\x02K\x02u.",
        b"\x80\x02]q\x00.",
        b"\x80\x02]q\x00K\x01a.",
        b"\x80\x02]q\x00(K\x01K\x02e.",
        b"\x80\x02).",
        b"\x80\x02K\x01K\x02\x86q\x00.",
        b"\x80\x02]q\x00(K\x01K\x02\x86q\x01h\x01e.",
        b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\x00\x00\x00aq\x02K\x01s.",
        b"\x80\x02c_codecs\nencode\nq\x00X\x02\x00\x00\x00abq\x01X\x06\x00\x00\x00latin1q\x02\x86q\x03Rq\x04.",
        b"\x80\x02c__builtin__\nbytes\nq\x00)Rq\x01.",
        b"\x80\x02c__builtin__\nbytearray\nq\x00c_codecs\nencode\nq\x01X\x02\x00\x00\x00abq\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05\x85q\x06Rq\x07.",
        b"\x80\x02c__builtin__\nset\nq\x00]q\x01(K\x01K\x02e\x85q\x02Rq\x03.",
        b"\x80\x02c__builtin__\nset\nq\x00]q\x01\x85q\x02Rq\x03.",
        b"\x80\x02c__builtin__\nfrozenset\nq\x00]q\x01K\x01a\x85q\x02Rq\x03.",
        b"\x80\x02c__builtin__\ncomplex\nq\x00G\x00\x00\x00\x00\x00\x00\x00\x00G?\xf0\x00\x00\x00\x00\x00\x00\x86q\x01Rq\x02.",
        b"\x80\x02ccollections\nCounter\nq\x00}q\x01X\x01\x00\x00\x00aq\x02K\x01s\x85q\x03Rq\x04.",
        b"\x80\x02ccollections\ndefaultdict\nq\x00c__builtin__\nlong\nq\x01\x85q\x02Rq\x03X\x01\x00\x00\x00aq\x04K\x01s.",
        b"\x80\x02J\xff\xff\xff\x7f.",
        b"\x80\x02\x8a\x05\x00\x00\x00\x80\x00.",
        b"\x80\x02J\x00\x00\x00\x80.",
        b"\x80\x02\x8a\x05\xff\xff\xff\x7f\xff.",
        b"\x80\x02\x8a\t\x00\x00\x00\x00\x00\x00\x00\x80\x00.",
        b"\x80\x02M\x00\x01.",
        b"\x80\x02J\xff\xff\xff\xff.",
        b"\x80\x02G\x7f\xf8\x00\x00\x00\x00\x00\x00.",
        b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80q\x00.",
        // r = []; r.append(r)
        b"\x80\x02]q\x00h\x00a.",
        // t = ([],); t[0].append(t), and the same with more items in the tuple
        b"\x80\x02]q\x00h\x00\x85q\x01a0h\x01.",
        b"\x80\x02(]q\x00(h\x00K\x01K\x02K\x03tq\x01aK\x01K\x02K\x031h\x01.",
        // An object by `__new__` with a state.
        b"\x80\x02cmod\nC\nq\x00)\x81q\x01}q\x02X\x01\x00\x00\x00aq\x03K\x01sb.",
    ];
    for &bytes in cases {
        assert_eq!(rewritten(bytes), bytes, "got {:?}", rewritten(bytes).escape_ascii().to_string());
    }
}

#[test]
fn a_tensor_as_pytorch_writes_it() {
    let got = dump(|b| {
        let tensor = b.tensor(&TensorRecord::contiguous("float32", "0", "cpu", &[2, 3]));
        let parameter = b.parameter(tensor, true);
        let key = b.str("a");
        b.dict(vec![(key, parameter)])
    });
    let expected: &[u8] = b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01ctorch._utils\n_rebuild_parameter\nq\x02\
        ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04ctorch\nFloatStorage\nq\x05\
        X\x01\x00\x00\x000q\x06X\x03\x00\x00\x00cpuq\x07K\x06tq\x08QK\x00K\x02K\x03\x86q\tK\x03K\x01\x86q\n\
        \x89ccollections\nOrderedDict\nq\x0b)Rq\x0ctq\rRq\x0e\x88h\x0b)Rq\x0f\x87q\x10Rq\x11s.";
    assert_eq!(got, expected, "{}", got.escape_ascii());
}

#[test]
fn a_dtype_without_storage_class_uses_version_3() {
    let got = dump(|b| b.tensor(&TensorRecord::contiguous("uint16", "0", "cpu", &[3])));
    let pickle = Unpickler::new().load(&got).unwrap();
    let record = pickle.tensor_record(pickle.root()).unwrap().unwrap();
    assert_eq!(record, TensorRecord::contiguous("uint16", "0", "cpu", &[3]));
    assert_eq!(record.storage.nbytes().unwrap(), 6);
    assert!(got.windows(16).any(|w| w == b"_rebuild_tensor_"));
    assert!(got.windows(21).any(|w| w == b"storage\nUntypedStorage"[..21].as_ref()));
}

/// Batches of 1000; `list` and `dict` mark every one, other objects leave out the mark before a last single item.
#[test]
fn batches() {
    let count = |bytes: &[u8], opcode: Opcode| bytes.iter().filter(|&&b| b == opcode as u8).count();
    let list = |n: usize| {
        dump(|b| {
            let items = (0..n).map(|_| b.none()).collect();
            b.list(items)
        })
    };
    assert_eq!(count(&list(1000), Opcode::Appends), 1);
    assert_eq!(count(&list(1001), Opcode::Appends), 2);
    assert_eq!(count(&list(1001), Opcode::Append), 0);
    let ordered = |n: usize| {
        dump(|b| {
            let items = (0..n).map(|_| (b.none(), b.none())).collect();
            b.ordered_dict(items)
        })
    };
    // The letters of the class name contain `s` and `u` no matter the items.
    let base = ordered(0);
    let set_items = |n| count(&ordered(n), Opcode::SetItems) - count(&base, Opcode::SetItems);
    let set_item = |n| count(&ordered(n), Opcode::SetItem) - count(&base, Opcode::SetItem);
    assert_eq!((set_items(1000), set_item(1000)), (1, 0));
    assert_eq!((set_items(2001), set_item(2001)), (2, 1));
}

#[test]
fn long_memo_indices() {
    let got = dump(|b| {
        let strings: Vec<_> = (0..300).map(|i| b.str(i.to_string())).collect();
        let mut items = strings.clone();
        items.push(strings[299]);
        b.list(items)
    });
    assert!(got.windows(5).any(|w| w == [Opcode::LongBinPut as u8, 44, 1, 0, 0]));
    assert!(got.ends_with(&[Opcode::LongBinGet as u8, 44, 1, 0, 0, b'e', b'.']));
}

#[test]
fn depth_is_no_problem() {
    let got = dump(|b| {
        let mut id = b.none();
        for _ in 0..200_000 {
            id = b.list(vec![id]);
        }
        id
    });
    let pickle = Unpickler::new().load(&got).unwrap();
    assert_eq!(pickle.nodes().len(), 200_000 + 4);
}

#[test]
fn impossible_cycles_are_errors() {
    // A set inside a tuple inside the set.
    let nodes = vec![Value::Set(vec![NodeId(1)]), Value::Tuple(vec![NodeId(0)])];
    let pickle = Pickle::new(nodes, NodeId(1)).unwrap();
    assert!(Pickler::new().dump(&pickle).is_err());
    // A tuple inside itself does not even get that far.
    assert!(Pickle::new(vec![Value::Tuple(vec![NodeId(0)])], NodeId(0)).is_err());
    assert!(Pickle::new(vec![Value::PersistentId(NodeId(0))], NodeId(0)).is_err());
    assert!(Pickle::new(vec![], NodeId(0)).is_err());
}

#[test]
fn a_persistent_id_used_twice_is_written_twice() {
    let got = dump(|b| {
        let storage = TensorRecord::contiguous("int8", "0", "cpu", &[1]).storage;
        let id = b.storage(&storage);
        b.list(vec![id, id])
    });
    assert_eq!(got.iter().filter(|&&b| b == Opcode::BinPersId as u8).count(), 2);
}
