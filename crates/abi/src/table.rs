//! The table itself. Everything here is `repr(C)` and only ever grows at the end.

use std::ffi::{c_void, CStr};

/// Changes when the meaning or the order of existing fields changes: extensions then refuse to load.
pub const VERSION: u32 = 1;

/// The name of the PyCapsule, an attribute of `ptr._C`, that holds a pointer to the [`Abi`].
pub const CAPSULE_NAME: &CStr = c"ptr._C._abi";

/// A tensor. A pointer to it owns one reference where a function says so.
#[repr(C)]
pub struct AbiTensor {
    _opaque: [u8; 0],
}

/// An operator; valid for the life of the process.
#[repr(C)]
pub struct AbiOp {
    _opaque: [u8; 0],
}

/// A set of registrations.
#[repr(C)]
pub struct AbiLibrary {
    _opaque: [u8; 0],
}

/// The arguments and returns of a boxed call.
#[repr(C)]
pub struct AbiStack {
    _opaque: [u8; 0],
}

/// An error. Functions that can fail return null for success, else an error that the caller owns.
#[repr(C)]
pub struct AbiError {
    _opaque: [u8; 0],
}

/// A borrowed UTF-8 string.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiStr {
    /// First byte; may be dangling when `len` is 0.
    pub data: *const u8,
    /// Bytes.
    pub len: usize,
}

/// What an [`AbiValue`] holds.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// Nothing (an absent optional).
    None = 0,
    /// `payload.tensor`, an owned reference.
    Tensor = 1,
    /// `payload.int`.
    Int = 2,
    /// `payload.double`.
    Double = 3,
    /// `payload.int`, 0 or 1.
    Bool = 4,
    /// `payload.complex`.
    Complex = 5,
    /// `payload.string`, borrowed from the stack slot it came from.
    Str = 6,
    /// `payload.int`: PyTorch's number of the dtype.
    ScalarType = 7,
    /// `payload.int`: PyTorch's number of the layout.
    Layout = 8,
    /// `payload.int`: PyTorch's number of the memory format.
    MemoryFormat = 9,
    /// `payload.int`: device type in the high 32 bits, index in the low 32 (−1 for none).
    Device = 10,
    /// `payload.list`: `len` values of type `i64`.
    IntList = 11,
    /// `payload.list`: `len` values of type `f64`.
    DoubleList = 12,
    /// `payload.list`: `len` pointers to tensors, null for an absent one; references stay with the slot.
    TensorList = 13,
    /// A value of a type this interface cannot express: it can be moved, not read.
    Other = 14,
}

/// The contents of an [`AbiValue`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    /// Integers, booleans, enumerations, devices.
    pub int: i64,
    /// Real numbers.
    pub double: f64,
    /// Real and imaginary part.
    pub complex: [f64; 2],
    /// A tensor.
    pub tensor: *mut AbiTensor,
    /// A string.
    pub string: AbiStr,
    /// A list: first element and count.
    pub list: (*const c_void, usize),
}

/// A tagged value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiValue {
    /// A [`Tag`].
    pub tag: u32,
    /// Zero.
    pub reserved: u32,
    /// What the tag says.
    pub payload: Payload,
}

/// A boxed kernel: pops the operator's arguments from the stack and pushes its returns.
pub type AbiKernel = unsafe extern "C" fn(
    context: *mut c_void,
    op: *const AbiOp,
    keyset: u64,
    stack: *mut AbiStack,
) -> *mut AbiError;

/// An allocator of a device type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiAllocator {
    /// Handed to both functions; must be usable from any thread.
    pub context: *mut c_void,
    /// Returns memory aligned to 64 bytes, or null when there is none.
    pub allocate: unsafe extern "C" fn(context: *mut c_void, nbytes: usize) -> *mut c_void,
    /// Frees what `allocate` returned.
    pub free: unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, nbytes: usize),
}

/// The functions. All are thread-safe, none unwinds, and none may be null.
#[repr(C)]
pub struct Abi {
    /// [`VERSION`] of the process.
    pub version: u32,
    /// `size_of::<Abi>()` in the process: later fields than this are absent.
    pub size: u32,

    // ---- errors
    /// Makes an error of a kind (`abi::ErrorKind` as a number) and a message.
    pub error_new: unsafe extern "C" fn(kind: u32, message: AbiStr) -> *mut AbiError,
    /// Its kind.
    pub error_kind: unsafe extern "C" fn(error: *const AbiError) -> u32,
    /// Its message, valid as long as the error.
    pub error_message: unsafe extern "C" fn(error: *const AbiError) -> AbiStr,
    /// Frees it.
    pub error_free: unsafe extern "C" fn(error: *mut AbiError),

    // ---- tensors
    /// Another owned reference.
    pub tensor_clone: unsafe extern "C" fn(tensor: *mut AbiTensor) -> *mut AbiTensor,
    /// Gives an owned reference back.
    pub tensor_free: unsafe extern "C" fn(tensor: *mut AbiTensor),
    /// Dimensions.
    pub tensor_dim: unsafe extern "C" fn(tensor: *const AbiTensor) -> i64,
    /// Writes `dim` sizes; fails for tensors whose sizes are symbolic.
    pub tensor_sizes: unsafe extern "C" fn(tensor: *const AbiTensor, out: *mut i64) -> *mut AbiError,
    /// Writes `dim` strides, in elements.
    pub tensor_strides: unsafe extern "C" fn(tensor: *const AbiTensor, out: *mut i64) -> *mut AbiError,
    /// PyTorch's number of the dtype.
    pub tensor_dtype: unsafe extern "C" fn(tensor: *const AbiTensor) -> u32,
    /// Device type in the high 32 bits, index in the low 32.
    pub tensor_device: unsafe extern "C" fn(tensor: *const AbiTensor) -> i64,
    /// Address of element 0; null when there is no memory. Valid as long as the tensor's storage.
    pub tensor_data: unsafe extern "C" fn(tensor: *const AbiTensor) -> *mut c_void,
    /// An uninitialized strided tensor on a device whose allocator is registered.
    pub tensor_empty_strided: unsafe extern "C" fn(
        sizes: *const i64,
        strides: *const i64,
        dim: usize,
        dtype: u32,
        device: i64,
        out: *mut *mut AbiTensor,
    ) -> *mut AbiError,

    // ---- stacks
    /// An empty stack.
    pub stack_new: unsafe extern "C" fn() -> *mut AbiStack,
    /// Frees a stack made by `stack_new`.
    pub stack_free: unsafe extern "C" fn(stack: *mut AbiStack),
    /// How many values it holds.
    pub stack_len: unsafe extern "C" fn(stack: *const AbiStack) -> usize,
    /// Borrows the value at `index` (0 is the oldest); a tensor in it stays with the slot.
    pub stack_get:
        unsafe extern "C" fn(stack: *const AbiStack, index: usize, out: *mut AbiValue) -> *mut AbiError,
    /// Replaces the value at `index`, taking a tensor's reference and copying strings and lists.
    pub stack_set:
        unsafe extern "C" fn(stack: *mut AbiStack, index: usize, value: *const AbiValue) -> *mut AbiError,
    /// Pushes a value, taking a tensor's reference and copying strings and lists.
    pub stack_push: unsafe extern "C" fn(stack: *mut AbiStack, value: *const AbiValue) -> *mut AbiError,
    /// Drops the newest `count` values.
    pub stack_drop: unsafe extern "C" fn(stack: *mut AbiStack, count: usize) -> *mut AbiError,

    // ---- operators
    /// The operator of a name and overload; null if there is none.
    pub op_find: unsafe extern "C" fn(name: AbiStr, overload: AbiStr) -> *const AbiOp,
    /// `aten::add.Tensor`, valid for the life of the process.
    pub op_name: unsafe extern "C" fn(op: *const AbiOp) -> AbiStr,
    /// How many arguments and returns its schema has.
    pub op_arity:
        unsafe extern "C" fn(op: *const AbiOp, arguments: *mut usize, returns: *mut usize) -> *mut AbiError,
    /// Calls it with the newest values of the stack.
    pub op_call: unsafe extern "C" fn(op: *const AbiOp, stack: *mut AbiStack) -> *mut AbiError,
    /// Goes on with a call, considering only the keys in `keyset`.
    pub op_redispatch:
        unsafe extern "C" fn(op: *const AbiOp, keyset: u64, stack: *mut AbiStack) -> *mut AbiError,
    /// The keys below (with less priority than) a key, as a set; 0 for an unknown name.
    pub keyset_below: unsafe extern "C" fn(key: AbiStr) -> u64,
    /// Includes and excludes keys on this thread and writes what they were before; to be undone with `keys_restore`.
    pub keys_change: unsafe extern "C" fn(include: u64, exclude: u64, before: *mut [u64; 2]),
    /// Undoes `keys_change`.
    pub keys_restore: unsafe extern "C" fn(before: *const [u64; 2]),
    /// The set that holds one key; 0 for an unknown name.
    pub keyset_of: unsafe extern "C" fn(key: AbiStr) -> u64,

    // ---- registration
    /// A library: kind 0 defines, 1 implements, 2 adds to a namespace.
    pub library_new:
        unsafe extern "C" fn(kind: u32, namespace: AbiStr, out: *mut *mut AbiLibrary) -> *mut AbiError,
    /// Takes all its registrations back.
    pub library_free: unsafe extern "C" fn(library: *mut AbiLibrary),
    /// Defines an operator.
    pub library_def: unsafe extern "C" fn(library: *mut AbiLibrary, schema: AbiStr) -> *mut AbiError,
    /// Registers a kernel. `drop_context`, if any, is called with `context` if the registration fails; a
    /// registered kernel lives as long as the process, because a call may still run it.
    pub library_impl: unsafe extern "C" fn(
        library: *mut AbiLibrary,
        name: AbiStr,
        key: AbiStr,
        kernel: AbiKernel,
        context: *mut c_void,
        drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut AbiError,
    /// Registers the kernel of all operators that have none for `key`.
    pub library_fallback: unsafe extern "C" fn(
        library: *mut AbiLibrary,
        key: AbiStr,
        kernel: AbiKernel,
        context: *mut c_void,
        drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut AbiError,

    // ---- devices
    /// Registers the allocator of a device type (PyTorch's number) and how many devices of it there are.
    pub device_register:
        unsafe extern "C" fn(device_type: i32, devices: u32, allocator: AbiAllocator) -> *mut AbiError,
    /// Names the device type `PrivateUse1`, as `ptr.device("<name>")` spells it.
    pub device_rename: unsafe extern "C" fn(name: AbiStr) -> *mut AbiError,
    /// A ready kernel that copies the arguments to the CPU, runs the operator there and copies the results back.
    pub cpu_fallback: AbiKernel,

    // ---- gradients
    /// Records how a call is differentiated: the newest `outputs` values of the stack, made from the `inputs`
    /// values below them, become outputs of a graph node. In the backward pass `backward` finds the outputs'
    /// gradients on its stack (none where there is none) and replaces them by the inputs' gradients; its `op` is
    /// null. Where no input requires a gradient nothing is recorded and the context is dropped at once.
    pub autograd_record: unsafe extern "C" fn(
        stack: *mut AbiStack,
        inputs: usize,
        outputs: usize,
        name: AbiStr,
        backward: AbiKernel,
        context: *mut c_void,
        drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut AbiError,
}
