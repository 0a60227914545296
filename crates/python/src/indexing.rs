//! `x[index]` and `x[index] = value`.
//!
//! An index is taken apart into views (`select`, `slice`, `unsqueeze`), which are applied at once, and tensors, which are
//! left for one call of `index` or `index_put_` on the resulting view.

use ::ops::at;
use c10::{Scalar, ScalarType, SymInt, Tensor};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::convert::{scalar, warnings};
use crate::ops::torch_function;
use crate::raw::objects::NewError;
use crate::raw::{borrow, check_memory_for, check_memory_for_items, guard, guard_int, token, Raised, Res};
use crate::tensor::{self, to, Target};

/// Longer sequences are never taken for tuples.
const MAX_TUPLE_LIKE: usize = 32;

/// What an index comes down to.
struct Sliced {
    view: Tensor,
    /// Tensor indices by dimension of the view.
    indices: SmallVec<[Option<Tensor>; 4]>,
}

fn select(tensor: &Tensor, dim: i64, index: i64, shown_dim: i64) -> Res<Tensor> {
    if tensor.dim() == 0 {
        let text = "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a \
                    0-dim tensor to a number";
        return Err(PyIndexError::error(text).into());
    }
    if let Ok(sizes) = tensor.sizes() {
        // Several ellipses stand for the rest of the dimensions each.
        let Some(&size) = sizes.get(dim as usize) else {
            let text = format!("too many indices for tensor of dimension {}", tensor.dim());
            return Err(PyIndexError::error(text).into());
        };
        if index >= size || index < -size {
            let text = format!("index {index} is out of bounds for dimension {shown_dim} with size {size}");
            return Err(PyIndexError::error(text).into());
        }
    }
    Ok(at::select_int(tensor, dim, &SymInt::from(index))?)
}

fn slice(tensor: &Tensor, dim: i64, slice: &Bound<'_, PyAny>) -> Res<Tensor> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: a slice object and places for three numbers.
    if unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut stop, &mut step) } < 0 {
        // SAFETY: CPython has set the exception.
        return Err(unsafe { Raised::already_set() });
    }
    if step <= 0 {
        return Err(PyValueError::error("step must be greater than zero").into());
    }
    if dim >= tensor.dim() {
        let text = if tensor.dim() == 0 {
            "slice() cannot be applied to a 0-dim tensor.".to_owned()
        } else {
            format!("too many indices for tensor of dimension {}", tensor.dim())
        };
        return Err(PyIndexError::error(text).into());
    }
    if start == 0 && step == 1 && tensor.sizes().is_ok_and(|s| stop as i64 >= s[dim as usize]) {
        // `:` changes nothing.
        return Ok(tensor.clone());
    }
    let (start, stop, step) =
        (SymInt::from(start as i64), SymInt::from(stop as i64), SymInt::from(step as i64));
    Ok(at::slice_tensor(tensor, dim, Some(&start), Some(&stop), &step)?)
}

fn is_ellipsis(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the singleton is alive.
    std::ptr::eq(object.as_ptr(), unsafe { ffi::Py_Ellipsis() })
}

fn is_mask(dtype: ScalarType) -> bool {
    matches!(dtype, ScalarType::Bool | ScalarType::Byte)
}

/// How many dimensions of the tensor an item of an index uses up.
fn dims_used(item: &Bound<'_, PyAny>) -> i64 {
    if item.is_none() || is_ellipsis(item) || item.is_instance_of::<PyBool>() {
        return 0;
    }
    match tensor::get(item) {
        Some(index) if is_mask(index.dtype()) => index.dim(),
        _ => 1,
    }
}

/// `True` keeps the new dimension of size one, `False` drops it: as an index, `[0]` or `[]`.
fn bool_index(value: bool) -> Res<Tensor> {
    let index = c10::empty_cpu(&[i64::from(value)], ScalarType::Long)?;
    if value {
        // SAFETY: a fresh tensor with one element.
        unsafe { index.data_ptr().cast::<i64>().write(0) };
    }
    Ok(index)
}

/// A nested sequence as a tensor index: a mask if all of it is, else integers.
fn sequence_index(py: Python<'_>, tensor: &Tensor, data: &Bound<'_, PyAny>) -> Res<Tensor> {
    let index = crate::data::new_tensor(py, data, None, Some(c10::Device::new(c10::DeviceType::CPU, -1)))?;
    let dtype = if is_mask(index.dtype()) { index.dtype() } else { ScalarType::Long };
    to(py, &index, Target { dtype: Some(dtype), device: Some(tensor.device()), ..Target::default() })
}

fn invalid_index(item: &Bound<'_, PyAny>) -> Raised {
    match item.get_type().name() {
        Ok(name) => PyIndexError::error(format!(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {name})"
        ))
        .into(),
        Err(error) => error.into(),
    }
}

fn record(indices: &mut SmallVec<[Option<Tensor>; 4]>, index: Tensor, dim: &mut i64) {
    indices.resize((*dim as usize).max(indices.len()), None);
    indices.push(Some(index));
    *dim += 1;
}

/// Applies the items of an index.
fn apply(py: Python<'_>, tensor: &Tensor, items: &[Bound<'_, PyAny>]) -> Res<Sliced> {
    let used: i64 = items.iter().map(dims_used).sum();
    if used > tensor.dim() {
        let text = format!("too many indices for tensor of dimension {}", tensor.dim());
        return Err(PyIndexError::error(text).into());
    }
    let mut sliced = Sliced { view: tensor.clone(), indices: SmallVec::new() };
    let mut dim = 0;
    // The dimension of the tensor itself, for messages.
    let mut shown_dim = 0;
    for item in items {
        let used_here = dims_used(item);
        if scalar::is_int(item) {
            sliced.view = select(&sliced.view, dim, scalar::to_i64(item)?, shown_dim)?;
        } else if item.is_instance_of::<PySlice>() {
            sliced.view = slice(&sliced.view, dim, item)?;
            dim += 1;
        } else if is_ellipsis(item) {
            dim += tensor.dim() - used;
            shown_dim += tensor.dim() - used;
        } else if item.is_none() {
            sliced.view = at::unsqueeze(&sliced.view, dim)?;
            dim += 1;
        } else if let Ok(value) = item.cast::<PyBool>() {
            sliced.view = at::unsqueeze(&sliced.view, dim)?;
            record(&mut sliced.indices, bool_index(value.is_true())?, &mut dim);
        } else if let Some(index) = tensor::get(item) {
            apply_tensor(&mut sliced, index, &mut dim, shown_dim)?;
        } else if scalar::is_int_like(item) {
            sliced.view = select(&sliced.view, dim, scalar::to_i64(item)?, shown_dim)?;
        } else if scalar::number_kind(item) == Some(scalar::NumberKind::Bool) {
            sliced.view = at::unsqueeze(&sliced.view, dim)?;
            record(&mut sliced.indices, bool_index(item.is_truthy()?)?, &mut dim);
        } else if is_index_sequence(item) {
            let index = sequence_index(py, tensor, item)?;
            record(&mut sliced.indices, index, &mut dim);
        } else {
            // SAFETY: a live object.
            let index = unsafe { ffi::PyNumber_Index(item.as_ptr()) };
            if index.is_null() {
                // SAFETY: clears what PyNumber_Index has set.
                unsafe { ffi::PyErr_Clear() };
                return Err(invalid_index(item));
            }
            // SAFETY: a new reference.
            let index = unsafe { crate::raw::owned(py, index)? };
            sliced.view = select(&sliced.view, dim, scalar::to_i64(&index)?, shown_dim)?;
        }
        shown_dim += used_here;
    }
    Ok(sliced)
}

fn is_index_sequence(item: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    item.is_instance_of::<PyList>() || unsafe { ffi::PySequence_Check(item.as_ptr()) } != 0
}

fn apply_tensor(sliced: &mut Sliced, index: &Tensor, dim: &mut i64, shown_dim: i64) -> Res<()> {
    if index.dim() == 0 && index.dtype().is_integral(true) {
        let value = tensor::item(index)?;
        if is_mask(index.dtype()) {
            sliced.view = at::unsqueeze(&sliced.view, *dim)?;
            record(&mut sliced.indices, bool_index(value.to_i64()? != 0)?, dim);
        } else {
            sliced.view = select(&sliced.view, *dim, value.to_i64()?, shown_dim)?;
        }
        return Ok(());
    }
    record(&mut sliced.indices, index.clone(), dim);
    Ok(())
}

/// Whether a sequence that is no tuple is taken for one: if it has anything in it that a list of numbers has not.
fn is_tuple_like(index: &Bound<'_, PyAny>) -> Res<bool> {
    if tensor::get(index).is_some() || !is_index_sequence(index) || !index.is_instance_of::<PyList>() {
        return Ok(false);
    }
    let len = index.len()?;
    if len >= MAX_TUPLE_LIKE {
        return Ok(false);
    }
    for i in 0..len {
        let item = index.get_item(i)?;
        if tensor::get(&item).is_some()
            || item.is_instance_of::<PySlice>()
            || is_index_sequence(&item)
            || is_ellipsis(&item)
            || item.is_none()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items of an index.
fn items<'py>(index: &Bound<'py, PyAny>) -> Res<SmallVec<[Bound<'py, PyAny>; 4]>> {
    if let Ok(tuple) = index.cast::<PyTuple>() {
        check_memory_for(tuple.len())?;
        return Ok(tuple.iter().collect());
    }
    if is_tuple_like(index)? {
        warnings::warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use \
             x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], \
             which will result either in an error or a different result",
        )?;
        check_memory_for_items(index)?;
        return Ok(index.try_iter()?.collect::<PyResult<_>>()?);
    }
    Ok(SmallVec::from_iter([index.clone()]))
}

fn index_or_raise(sliced: &Sliced) -> Res<Tensor> {
    let indices = on_same_device(sliced)?;
    Ok(at::index_tensor(&sliced.view, &indices)?)
}

/// The tensor indices where the tensor is; those on the host may stay there.
fn on_same_device(sliced: &Sliced) -> Res<SmallVec<[Option<Tensor>; 4]>> {
    let device = sliced.view.device();
    sliced
        .indices
        .iter()
        .map(|index| match index {
            Some(index) if index.device() != device && !device.is_meta() => {
                let target = Target { device: Some(device), ..Target::default() };
                // SAFETY: indexing is called by Python.
                Ok(Some(to(unsafe { token() }, index, target)?))
            }
            other => Ok(other.clone()),
        })
        .collect()
}

fn get_item(py: Python<'_>, tensor: &Tensor, index: &Bound<'_, PyAny>) -> Res<Tensor> {
    let result = if scalar::is_int(index) {
        return select(tensor, 0, scalar::to_i64(index)?, 0);
    } else if index.is_instance_of::<PySlice>() {
        slice(tensor, 0, index)?
    } else if index.is_none() {
        return Ok(at::unsqueeze(tensor, 0)?);
    } else {
        let sliced = apply(py, tensor, &items(index)?)?;
        if !sliced.indices.is_empty() {
            return index_or_raise(&sliced);
        }
        sliced.view
    };
    // An index that changes nothing still gives another tensor.
    if result.is_same(tensor) {
        return Ok(at::alias(tensor)?);
    }
    Ok(result)
}

/// Calls `body` with what the protocol asks about an index: itself, or the items of a tuple or list.
fn for_each_item<'py>(index: &Bound<'py, PyAny>, body: &mut dyn FnMut(&Bound<'py, PyAny>)) {
    if let Ok(tuple) = index.cast::<PyTuple>() {
        tuple.iter().for_each(|item| body(&item));
    } else if let Ok(list) = index.cast::<PyList>() {
        list.iter().for_each(|item| body(&item));
    } else {
        body(index);
    }
}

/// Offers an access to modes and to the classes of the tensors in it. `args` are the index and, if one is assigned, the
/// value.
fn overridden<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    args: &[&Bound<'py, PyAny>],
) -> Res<Option<*mut ffi::PyObject>> {
    if !torch_function::is_offered(object) {
        let mut found = false;
        let mut look = |item: &Bound<'py, PyAny>| {
            found |= tensor::get(item).is_some() && torch_function::overrides(item);
        };
        for_each_item(args[0], &mut look);
        args[1..].iter().for_each(|&value| look(value));
        if !found {
            return Ok(None);
        }
    }
    let mut relevant = vec![object.clone()];
    for_each_item(args[0], &mut |item| relevant.push(item.clone()));
    relevant.extend(args[1..].iter().map(|&value| value.clone()));
    relevant.retain(|item| tensor::get(item).is_some());
    let all: Vec<_> = std::iter::once(object).chain(args.iter().copied()).collect();
    torch_function::handle_special_method(object.py(), name, &all, &relevant.iter().collect::<Vec<_>>())
}

/// `x[index]`
pub(crate) unsafe extern "C" fn subscript(
    object: *mut ffi::PyObject,
    index: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type and a live object.
        let (py, object, index_object) =
            unsafe { (token(), borrow(token(), object), borrow(token(), index)) };
        let Some(tensor) = tensor::get(&object) else {
            return Err(PyTypeError::error("the tensor has not been initialized").into());
        };
        if let Some(result) = overridden(&object, "__getitem__", &[&index_object])? {
            return Ok(result);
        }
        let result = get_item(py, tensor, &index_object)?;
        warnings::emit_pending()?;
        tensor::wrap(result)
    })
}

/// What is assigned.
enum NewValue {
    Tensor(Tensor),
    Number(Scalar),
}

fn new_value(tensor: &Tensor, value: &Bound<'_, PyAny>) -> Res<NewValue> {
    if let Some(value) = tensor::get(value) {
        return Ok(NewValue::Tensor(value.clone()));
    }
    if scalar::is_int_like(value) {
        return Ok(NewValue::Number(Scalar::Int(scalar::to_i64(value)?)));
    }
    if scalar::number_kind(value).is_some() {
        return Ok(NewValue::Number(scalar::to_scalar(value)?));
    }
    let (class, kind) = (value.get_type().name()?, tensor::type_string(tensor));
    Err(PyTypeError::error(format!("can't assign a {class} to a {kind}")).into())
}

/// A value without its leading dimensions of size one, so that it can be broadcast to fewer dimensions.
fn without_leading_ones(value: &Tensor) -> Res<Tensor> {
    let sizes = value.sym_sizes();
    let ones = sizes.iter().take_while(|s| s.maybe_as_int() == Some(1)).count();
    if ones == 0 {
        return Ok(value.clone());
    }
    Ok(at::view(value, &sizes[ones..])?)
}

fn copy_to(destination: &Tensor, value: &NewValue) -> Res<()> {
    match value {
        NewValue::Number(number) => at::fill__scalar(destination, number)?,
        NewValue::Tensor(value) if value.dim() == 0 && value.is_cpu() => {
            at::fill__tensor(destination, value)?
        }
        NewValue::Tensor(value) if value.dim() <= destination.dim() => at::copy_(destination, value, false)?,
        NewValue::Tensor(value) => at::copy_(destination, &without_leading_ones(value)?, false)?,
    };
    Ok(())
}

fn set_item(py: Python<'_>, tensor: &Tensor, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Res<()> {
    let value = new_value(tensor, value)?;
    if scalar::is_int(index) {
        return copy_to(&select(tensor, 0, scalar::to_i64(index)?, 0)?, &value);
    }
    if index.is_instance_of::<PySlice>() {
        return copy_to(&slice(tensor, 0, index)?, &value);
    }
    if let Ok(flag) = index.cast::<PyBool>() {
        return if flag.is_true() { copy_to(tensor, &value) } else { Ok(()) };
    }
    if is_ellipsis(index) {
        return copy_to(tensor, &value);
    }
    if index.is_none() {
        return copy_to(&at::unsqueeze(tensor, 0)?, &value);
    }
    let sliced = apply(py, tensor, &items(index)?)?;
    if sliced.indices.is_empty() {
        return copy_to(&sliced.view, &value);
    }
    let value = match value {
        NewValue::Tensor(value) => without_leading_ones(&value)?,
        NewValue::Number(number) => {
            let number = scalar::scalar_to_python(py, &number)?;
            crate::data::new_tensor(py, &number, Some(tensor.dtype()), Some(tensor.device()))?
        }
    };
    let indices = on_same_device(&sliced)?;
    at::index_put_(&sliced.view, &indices, &value, false)?;
    Ok(())
}

/// `x[index] = value`
pub(crate) unsafe extern "C" fn assign_subscript(
    object: *mut ffi::PyObject,
    index: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> std::ffi::c_int {
    guard_int(|| {
        if value.is_null() {
            return Err(PyTypeError::error("Tensor does not support deleting items").into());
        }
        // SAFETY: CPython calls it with an instance of the type and live objects.
        let (py, object, index, value) =
            unsafe { (token(), borrow(token(), object), borrow(token(), index), borrow(token(), value)) };
        let Some(tensor) = tensor::get(&object) else {
            return Err(PyTypeError::error("the tensor has not been initialized").into());
        };
        if let Some(result) = overridden(&object, "__setitem__", &[&index, &value])? {
            // SAFETY: a new reference that is not needed.
            unsafe { ffi::Py_DECREF(result) };
            return Ok(0);
        }
        set_item(py, tensor, &index, &value)?;
        warnings::emit_pending()?;
        Ok(0)
    })
}
