//! Stacks and values, for extensions.

use std::ffi::c_void;

use crate::error::{check, Error, Result};
use crate::table::{Abi, AbiStack, AbiStr, AbiTensor, AbiValue, Payload, Tag};
use crate::tensor::Tensor;

/// A value read from a stack or to be pushed on one.
#[derive(Clone)]
pub enum Value {
    /// An absent optional.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// An integer.
    Int(i64),
    /// A real number.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// A complex number.
    Complex(f64, f64),
    /// A string.
    Str(String),
    /// An enumeration: dtype, layout, memory format or device, in the interface's numbering.
    Enum(Tag, i64),
    /// Integers.
    IntList(Vec<i64>),
    /// Real numbers.
    DoubleList(Vec<f64>),
    /// Tensors, `None` for absent ones.
    TensorList(Vec<Option<Tensor>>),
    /// A value this interface cannot express.
    Other,
}

impl Value {
    /// The tensor held.
    pub fn tensor(self) -> Result<Tensor> {
        match self {
            Value::Tensor(t) => Ok(t),
            _ => Err(Error::runtime("expected a tensor")),
        }
    }

    /// The real number held; integers widen.
    pub fn double(self) -> Result<f64> {
        match self {
            Value::Double(v) => Ok(v),
            Value::Int(v) => Ok(v as f64),
            _ => Err(Error::runtime("expected a number")),
        }
    }

    /// The integers held.
    pub fn int_list(self) -> Result<Vec<i64>> {
        match self {
            Value::IntList(v) => Ok(v),
            _ => Err(Error::runtime("expected a list of integers")),
        }
    }
}

/// The arguments and returns of a call.
pub struct Stack {
    pub(crate) table: &'static Abi,
    pub(crate) raw: *mut AbiStack,
    owned: bool,
}

impl Stack {
    pub(crate) fn new(table: &'static Abi) -> Stack {
        // SAFETY: no arguments; the stack is ours until dropped.
        Stack { table, raw: unsafe { (table.stack_new)() }, owned: true }
    }

    pub(crate) fn borrowed(table: &'static Abi, raw: *mut AbiStack) -> Stack {
        Stack { table, raw, owned: false }
    }

    /// How many values there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        // SAFETY: `raw` is a live stack.
        unsafe { (self.table.stack_len)(self.raw) }
    }

    /// Copies the value at `index`; 0 is the oldest.
    pub fn get(&self, index: usize) -> Result<Value> {
        let mut value = AbiValue { tag: 0, reserved: 0, payload: Payload { int: 0 } };
        // SAFETY: `raw` is live and `value` writable; what it borrows from the slot is copied below, before
        // anything can change the stack. The tag says which field of the payload is set.
        unsafe {
            check(self.table, (self.table.stack_get)(self.raw, index, &mut value))?;
            let payload = value.payload;
            Ok(match value.tag {
                t if t == Tag::None as u32 => Value::None,
                t if t == Tag::Tensor as u32 => Value::Tensor(self.share(payload.tensor)),
                t if t == Tag::Int as u32 => Value::Int(payload.int),
                t if t == Tag::Double as u32 => Value::Double(payload.double),
                t if t == Tag::Bool as u32 => Value::Bool(payload.int != 0),
                t if t == Tag::Complex as u32 => Value::Complex(payload.complex[0], payload.complex[1]),
                t if t == Tag::Str as u32 => Value::Str(payload.string.get().to_owned()),
                t if t == Tag::ScalarType as u32 => Value::Enum(Tag::ScalarType, payload.int),
                t if t == Tag::Layout as u32 => Value::Enum(Tag::Layout, payload.int),
                t if t == Tag::MemoryFormat as u32 => Value::Enum(Tag::MemoryFormat, payload.int),
                t if t == Tag::Device as u32 => Value::Enum(Tag::Device, payload.int),
                t if t == Tag::IntList as u32 => Value::IntList(copy_list(payload.list)),
                t if t == Tag::DoubleList as u32 => Value::DoubleList(copy_list(payload.list)),
                t if t == Tag::TensorList as u32 => Value::TensorList(
                    copy_list::<*mut AbiTensor>(payload.list)
                        .into_iter()
                        .map(|raw| (!raw.is_null()).then(|| self.share(raw)))
                        .collect(),
                ),
                _ => Value::Other,
            })
        }
    }

    /// A new reference to a tensor that a slot owns.
    ///
    /// # Safety
    /// `raw` must be live.
    unsafe fn share(&self, raw: *mut AbiTensor) -> Tensor {
        // SAFETY: the caller's promise; the clone is owned.
        unsafe { Tensor::from_raw(self.table, (self.table.tensor_clone)(raw)) }
    }

    /// Pushes a value.
    pub fn push(&mut self, value: Value) -> Result<()> {
        let table = self.table;
        let raw = self.raw;
        // SAFETY: `raw` is a live stack, `value` outlives the call.
        with_abi_value(value, |value| check(table, unsafe { (table.stack_push)(raw, value) }))
    }

    /// Replaces the value at `index`.
    pub fn set(&mut self, index: usize, value: Value) -> Result<()> {
        let table = self.table;
        let raw = self.raw;
        // SAFETY: as in `push`.
        with_abi_value(value, |value| check(table, unsafe { (table.stack_set)(raw, index, value) }))
    }

    /// Removes the newest `count` values and returns them, oldest first.
    pub fn pop(&mut self, count: usize) -> Result<Vec<Value>> {
        let first = self
            .len()
            .checked_sub(count)
            .ok_or_else(|| Error::runtime("the stack holds fewer values than asked for"))?;
        let values = (first..self.len()).map(|i| self.get(i)).collect::<Result<Vec<_>>>()?;
        // SAFETY: `raw` is a live stack with at least `count` values.
        check(self.table, unsafe { (self.table.stack_drop)(self.raw, count) })?;
        Ok(values)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: made by `stack_new` and freed once.
            unsafe { (self.table.stack_free)(self.raw) }
        }
    }
}

/// # Safety
/// The list must hold `len` elements of type `T`.
unsafe fn copy_list<T: Copy>((data, len): (*const c_void, usize)) -> Vec<T> {
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast::<T>(), len) }.to_vec()
}

fn with_abi_value<R>(value: Value, f: impl FnOnce(*const AbiValue) -> R) -> R {
    let make = |tag: Tag, payload: Payload| AbiValue { tag: tag as u32, reserved: 0, payload };
    let tensors: Vec<*mut AbiTensor>;
    let value = match &value {
        Value::None | Value::Other => make(Tag::None, Payload { int: 0 }),
        Value::Tensor(t) => make(Tag::Tensor, Payload { tensor: t.clone().into_raw() }),
        Value::Int(v) => make(Tag::Int, Payload { int: *v }),
        Value::Double(v) => make(Tag::Double, Payload { double: *v }),
        Value::Bool(v) => make(Tag::Bool, Payload { int: i64::from(*v) }),
        Value::Complex(re, im) => make(Tag::Complex, Payload { complex: [*re, *im] }),
        Value::Str(v) => make(Tag::Str, Payload { string: AbiStr::new(v) }),
        Value::Enum(tag, v) => make(*tag, Payload { int: *v }),
        Value::IntList(v) => make(Tag::IntList, Payload { list: (v.as_ptr().cast(), v.len()) }),
        Value::DoubleList(v) => make(Tag::DoubleList, Payload { list: (v.as_ptr().cast(), v.len()) }),
        Value::TensorList(v) => {
            tensors = v.iter().map(|t| t.as_ref().map_or(std::ptr::null_mut(), |t| t.raw)).collect();
            make(Tag::TensorList, Payload { list: (tensors.as_ptr().cast(), tensors.len()) })
        }
    };
    f(&value)
}
