//! Objects of Python's own types, made without a panic.
//!
//! # Note [Objects when memory is exhausted]
//!
//! PyO3 takes the making of a string, number, tuple, list or dict for something that cannot fail, and panics when
//! CPython has no memory for it. Such a panic becomes a `MemoryError` (`crates/pyo3/src/contain.rs`), after a report to
//! `sys.unraisablehook` and to the panic hook. So this crate makes objects with the functions here, names attributes with
//! [`intern!`], makes errors with [`NewError`], and returns [`Text`] and [`Number`] where PyO3 would convert.
//! `clippy.toml` forbids the others.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
    PyType,
};
use pyo3::{PyClass, PyClassInitializer, PyTypeInfo};

use super::{owned, Res};

/// Takes a new object of type `T`.
///
/// # Safety
///
/// `object` is null with an exception set, or a new reference to an instance of `T`.
#[inline]
unsafe fn made<T>(py: Python<'_>, object: *mut ffi::PyObject) -> PyResult<Bound<'_, T>> {
    // SAFETY: passed on to the caller.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked()) }
}

pub(crate) fn string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: a string's address and length; the result is a new string.
    unsafe { made(py, ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t)) }
}

/// A string that is equal to others by address.
pub(crate) fn interned<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    let mut object = string(py, text)?.into_ptr();
    // SAFETY: a string whose reference is taken and replaced by that of the interned one. (If there is no memory to
    // enter it into the table it stays as it is.)
    unsafe {
        ffi::PyUnicode_InternInPlace(&raw mut object);
        made(py, object)
    }
}

/// An interned string that is made at the first use: the fallible form of PyO3's macro of this name.
macro_rules! intern {
    ($py:expr, $text:expr) => {{
        static NAME: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::types::PyString>> = pyo3::sync::PyOnceLock::new();
        let py: pyo3::Python<'_> = $py;
        NAME.get_or_try_init(py, || crate::raw::objects::interned(py, $text).map(pyo3::Bound::unbind))
            .map(|name| name.bind(py))
    }};
}
pub(crate) use intern;

pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: a slice's address and length; the result is a new `bytes`.
    unsafe { made(py, ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t)) }
}

pub(crate) fn bytearray<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    // SAFETY: as for `bytes`; the result is a new `bytearray`.
    unsafe {
        made(py, ffi::PyByteArray_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t))
    }
}

/// True or False, which exist already.
#[inline]
pub(crate) fn boolean(py: Python<'_>, value: bool) -> Bound<'_, PyAny> {
    // SAFETY: static objects of the interpreter.
    unsafe { Bound::from_borrowed_ptr(py, if value { ffi::Py_True() } else { ffi::Py_False() }) }
}

#[inline]
pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: the result is a new int.
    unsafe { made(py, ffi::PyLong_FromLongLong(value)) }
}

#[inline]
pub(crate) fn unsigned(py: Python<'_>, value: u64) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: the result is a new int.
    unsafe { made(py, ffi::PyLong_FromUnsignedLongLong(value)) }
}

#[inline]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyFloat>> {
    // SAFETY: the result is a new float.
    unsafe { made(py, ffi::PyFloat_FromDouble(value)) }
}

pub(crate) fn complex(py: Python<'_>, re: f64, im: f64) -> PyResult<Bound<'_, PyComplex>> {
    // SAFETY: the result is a new complex number.
    unsafe { made(py, ffi::PyComplex_FromDoubles(re, im)) }
}

pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the result is a new dict.
    unsafe { made(py, ffi::PyDict_New()) }
}

/// The values of a dict, as they are now.
pub(crate) fn dict_values<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: a dict; the result is a new list.
    unsafe { made(dict.py(), ffi::PyDict_Values(dict.as_ptr())) }
}

pub(crate) fn empty_list(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: the result is a new list.
    unsafe { made(py, ffi::PyList_New(0)) }
}

pub(crate) fn empty_set(py: Python<'_>) -> PyResult<Bound<'_, PySet>> {
    // SAFETY: the result is a new set.
    unsafe { made(py, ffi::PySet_New(std::ptr::null_mut())) }
}

pub(crate) fn frozenset<'py>(items: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyFrozenSet>> {
    // SAFETY: the tuple is alive; the result is a new set of its items.
    unsafe { made(items.py(), ffi::PyFrozenSet_New(items.as_ptr())) }
}

/// What is an object already, so that it takes no memory to put it into a tuple.
pub(crate) trait Item<'py> {
    fn object(self) -> Bound<'py, PyAny>;
}

impl<'py, T> Item<'py> for Bound<'py, T> {
    fn object(self) -> Bound<'py, PyAny> {
        self.into_any()
    }
}

impl<'py, T> Item<'py> for &Bound<'py, T> {
    fn object(self) -> Bound<'py, PyAny> {
        self.as_any().clone()
    }
}

impl<'py, T> Item<'py> for &&Bound<'py, T> {
    fn object(self) -> Bound<'py, PyAny> {
        self.as_any().clone()
    }
}

/// A list of the given items, each a new reference.
pub(crate) fn list_of(
    py: Python<'_>,
    len: usize,
    mut item: impl FnMut(usize) -> Res<*mut ffi::PyObject>,
) -> Res<Bound<'_, PyAny>> {
    // SAFETY: a fresh list, whose items are all set or which is dropped with null items, which lists allow.
    unsafe {
        let list = owned(py, ffi::PyList_New(len as ffi::Py_ssize_t))?;
        for i in 0..len {
            ffi::PyList_SET_ITEM(list.as_ptr(), i as ffi::Py_ssize_t, item(i)?);
        }
        Ok(list)
    }
}

/// A tuple of the given items, each a new reference.
pub(crate) fn tuple_of(
    py: Python<'_>,
    len: usize,
    mut item: impl FnMut(usize) -> Res<*mut ffi::PyObject>,
) -> Res<Bound<'_, PyAny>> {
    // SAFETY: as for `list_of`.
    unsafe {
        let tuple = owned(py, ffi::PyTuple_New(len as ffi::Py_ssize_t))?;
        for i in 0..len {
            ffi::PyTuple_SET_ITEM(tuple.as_ptr(), i as ffi::Py_ssize_t, item(i)?);
        }
        Ok(tuple)
    }
}

/// A tuple of objects that exist.
pub(crate) fn tuple<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item: Item<'py>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut items = items.into_iter();
    Ok(tuple_of(py, items.len(), |_| next_of(&mut items))?.cast_into()?)
}

/// A list of objects that exist.
pub(crate) fn list<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item: Item<'py>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyList>> {
    let mut items = items.into_iter();
    Ok(list_of(py, items.len(), |_| next_of(&mut items))?.cast_into()?)
}

/// The next item, of which an iterator has as many as it says.
fn next_of<'py>(items: &mut impl Iterator<Item: Item<'py>>) -> Res<*mut ffi::PyObject> {
    match items.next() {
        Some(item) => Ok(item.object().into_ptr()),
        None => Err(PyRuntimeError::error("an iterator had fewer items than it said").into()),
    }
}

/// How an exception is made: with its value, at once, so that raising it needs no memory any more.
pub(crate) trait NewError: PyTypeInfo {
    /// An exception with a text. Without memory for it, it is a `MemoryError` instead.
    #[cold]
    fn error(text: impl AsRef<str>) -> PyErr {
        Python::attach(|py| match string(py, text.as_ref()) {
            Ok(text) => error_of(&py.get_type::<Self>(), text.as_any()),
            Err(error) => error,
        })
    }
}

impl<T: PyTypeInfo> NewError for T {}

/// An exception of a class, with a value.
#[cold]
pub(crate) fn error_of(class: &Bound<'_, PyType>, value: &Bound<'_, PyAny>) -> PyErr {
    class.call1((value,)).map_or_else(|error| error, PyErr::from_value)
}

/// A text that a function made by PyO3 returns.
pub(crate) struct Text<T>(pub(crate) T);

impl<'py, T: AsRef<str>> IntoPyObject<'py> for Text<T> {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        string(py, self.0.as_ref())
    }
}

/// A list of texts that a function made by PyO3 returns.
pub(crate) struct Texts<T>(pub(crate) Vec<T>);

impl<'py, T: AsRef<str>> IntoPyObject<'py> for Texts<T> {
    type Target = PyList;
    type Output = Bound<'py, PyList>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let text = |i: usize| Ok(string(py, self.0[i].as_ref())?.into_ptr());
        Ok(list_of(py, self.0.len(), text)?.cast_into()?)
    }
}

/// A list of objects of our own that a function made by PyO3 returns.
pub(crate) struct Objects<T>(pub(crate) Vec<T>);

impl<'py, T: PyClass + Into<PyClassInitializer<T>>> IntoPyObject<'py> for Objects<T> {
    type Target = PyList;
    type Output = Bound<'py, PyList>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let objects = self.0.into_iter().map(|value| Bound::new(py, value)).collect::<PyResult<Vec<_>>>()?;
        list(py, objects)
    }
}

/// A number that a function made by PyO3 returns.
pub(crate) struct Number<T>(pub(crate) T);

macro_rules! numbers {
    ($($type:ty => $object:ty, $make:ident;)*) => {$(
        impl<'py> IntoPyObject<'py> for Number<$type> {
            type Target = $object;
            type Output = Bound<'py, $object>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, $object>> {
                $make(py, self.0.into())
            }
        }
    )*};
}

numbers! {
    i32 => PyInt, int;
    u16 => PyInt, int;
    u32 => PyInt, int;
    i64 => PyInt, int;
    u64 => PyInt, unsigned;
    f64 => PyFloat, float;
}

impl<'py> IntoPyObject<'py> for Number<usize> {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        unsigned(py, self.0 as u64)
    }
}
