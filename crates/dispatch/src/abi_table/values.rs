//! Values across the interface.

use std::ffi::c_void;
use std::sync::Arc;

use abi::{AbiStr, AbiTensor, AbiValue, Payload, Tag};
use c10::{as_int_array_ref_slow_opt, Error, Layout, MemoryFormat, Result, Tensor};
use num_complex::Complex64;

use super::tensors;
use crate::boxing::IValue;

// A list of tensors is handed out as it lies in memory, so both types must be one pointer, null for `None`.
const _: () = assert!(std::mem::size_of::<Tensor>() == std::mem::size_of::<*mut AbiTensor>());
const _: () = assert!(std::mem::size_of::<Option<Tensor>>() == std::mem::size_of::<*mut AbiTensor>());

/// Describes a value in place: pointers in the result borrow from `value`.
pub(super) fn describe(value: &IValue) -> AbiValue {
    let make = |tag: Tag, payload: Payload| AbiValue { tag: tag as u32, reserved: 0, payload };
    let int = |tag: Tag, v: i64| make(tag, Payload { int: v });
    let list = |tag: Tag, data: *const c_void, len: usize| make(tag, Payload { list: (data, len) });
    match value {
        IValue::None => int(Tag::None, 0),
        IValue::Tensor(t) => make(Tag::Tensor, Payload { tensor: t.as_ptr().cast_mut().cast() }),
        IValue::Int(v) => int(Tag::Int, *v),
        IValue::Double(v) => make(Tag::Double, Payload { double: *v }),
        IValue::Bool(v) => int(Tag::Bool, i64::from(*v)),
        IValue::ComplexDouble(v) => make(Tag::Complex, Payload { complex: [v.re, v.im] }),
        IValue::String(v) => make(Tag::Str, Payload { string: AbiStr::new(v) }),
        IValue::ScalarType(v) => int(Tag::ScalarType, *v as i64),
        IValue::Layout(v) => int(Tag::Layout, *v as i64),
        IValue::MemoryFormat(v) => int(Tag::MemoryFormat, *v as i64),
        IValue::Device(v) => int(Tag::Device, tensors::device_to_int(*v)),
        IValue::IntList(v) => list(Tag::IntList, v.as_ptr().cast(), v.len()),
        // A symbolic size cannot cross; one that is a plain number is that number.
        IValue::SymInt(v) => v.maybe_as_int().map_or_else(|| int(Tag::Other, 0), |v| int(Tag::Int, v)),
        IValue::SymIntList(v) => match as_int_array_ref_slow_opt(v) {
            Some(v) => list(Tag::IntList, v.as_ptr().cast(), v.len()),
            None => int(Tag::Other, 0),
        },
        IValue::DoubleList(v) => list(Tag::DoubleList, v.as_ptr().cast(), v.len()),
        IValue::TensorList(v) => list(Tag::TensorList, v.as_ptr().cast(), v.len()),
        IValue::OptionalTensorList(v) => list(Tag::TensorList, v.as_ptr().cast(), v.len()),
        _ => int(Tag::Other, 0),
    }
}

/// Reads a value, taking over a tensor's reference and copying strings and lists.
///
/// # Safety
/// The payload must be what the tag says.
pub(super) unsafe fn read(value: &AbiValue) -> Result<IValue> {
    let payload = &value.payload;
    // SAFETY: the caller's promise, for every field read below.
    unsafe {
        Ok(match value.tag {
            t if t == Tag::None as u32 => IValue::None,
            t if t == Tag::Tensor as u32 => IValue::Tensor(tensors::from_raw(payload.tensor)),
            t if t == Tag::Int as u32 => IValue::Int(payload.int),
            t if t == Tag::Double as u32 => IValue::Double(payload.double),
            t if t == Tag::Bool as u32 => IValue::Bool(payload.int != 0),
            t if t == Tag::Complex as u32 => {
                IValue::ComplexDouble(Complex64::new(payload.complex[0], payload.complex[1]))
            }
            t if t == Tag::Str as u32 => IValue::from(payload.string.get()),
            t if t == Tag::ScalarType as u32 => IValue::ScalarType(tensors::dtype_from_int(payload.int)?),
            t if t == Tag::Layout as u32 => match Layout::try_from(payload.int as i8) {
                Ok(layout) => IValue::Layout(layout),
                Err(_) => return Err(unreadable(value)),
            },
            t if t == Tag::MemoryFormat as u32 => match MemoryFormat::try_from(payload.int as i8) {
                Ok(format) => IValue::MemoryFormat(format),
                Err(_) => return Err(unreadable(value)),
            },
            t if t == Tag::Device as u32 => IValue::Device(tensors::device_from_int(payload.int)?),
            t if t == Tag::IntList as u32 => IValue::IntList(Arc::from(slice::<i64>(payload.list))),
            t if t == Tag::DoubleList as u32 => IValue::DoubleList(Arc::from(slice::<f64>(payload.list))),
            t if t == Tag::TensorList as u32 => {
                let raw = slice::<*mut AbiTensor>(payload.list);
                let share =
                    |raw: *mut AbiTensor| (!raw.is_null()).then(|| Tensor::clone(&*tensors::peek(raw)));
                let tensors: Vec<Option<Tensor>> = raw.iter().map(|&raw| share(raw)).collect();
                match tensors.iter().cloned().collect::<Option<Vec<Tensor>>>() {
                    Some(all) => IValue::TensorList(Arc::from(all)),
                    None => IValue::OptionalTensorList(Arc::from(tensors)),
                }
            }
            _ => return Err(unreadable(value)),
        })
    }
}

#[cold]
fn unreadable(value: &AbiValue) -> Error {
    Error::runtime(format!("a value with tag {} cannot be read across the stable ABI", value.tag))
}

/// # Safety
/// The list must hold `len` values of type `T` that live for `'a`.
unsafe fn slice<'a, T>((data, len): (*const c_void, usize)) -> &'a [T] {
    match len {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(data.cast(), len) },
    }
}
