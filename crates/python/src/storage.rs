//! `ptr.UntypedStorage`: the bytes behind tensors.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use c10::{DataPtr, DeviceType, Storage};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PySlice, PyString, PyTuple};

use crate::convert::{device, scalar};
use crate::raw::objects::{self, intern, NewError, Number};
use crate::raw::Res;

/// The bytes behind one or more tensors. Objects for the same bytes are equal.
#[pyclass(name = "UntypedStorage", module = "ptr", subclass, frozen, weakref, dict, skip_from_py_object)]
pub(crate) struct PyStorage {
    /// Absent, as zeroed memory has it, only where CPython (3.11, 3.12) frees the new object before it is filled: there
    /// was no memory for its `__dict__`.
    storage: Option<Storage>,
    /// Whether this is the object in the storage's slot.
    attached: AtomicBool,
}

impl From<Storage> for PyStorage {
    fn from(storage: Storage) -> PyStorage {
        PyStorage { storage: Some(storage), attached: AtomicBool::new(false) }
    }
}

impl Drop for PyStorage {
    fn drop(&mut self) {
        // The object is dying: nobody may find it from here on. Its count of the storage goes after this.
        if *self.attached.get_mut() {
            self.storage().as_intrusive_ptr().pyobj_slot().clear();
        }
    }
}

/// Makes this the object of its storage, so that it stays while anything holds the storage (Note [The PyObject owns the
/// target] in c10). The result is the object that the storage has, which is another one if that was first.
fn attach<'py>(object: &Bound<'py, PyStorage>) -> Bound<'py, PyAny> {
    let this = object.get();
    if !this.attached.load(Ordering::Relaxed) {
        // SAFETY: the object holds a count of the storage, and the caller a reference to the object.
        match unsafe { this.storage().as_intrusive_ptr().init_pyobj(object.as_ptr().cast()) } {
            Ok(()) => this.attached.store(true, Ordering::Relaxed),
            // SAFETY: an object in the slot is alive while the interpreter's lock is held and the storage is.
            Err(first) => unsafe { return Bound::from_borrowed_ptr(object.py(), first.cast()) },
        }
    }
    object.clone().into_any()
}

/// The object of a storage: the one there is, or a new one.
pub(crate) fn wrap(py: Python<'_>, storage: Storage) -> Res<Bound<'_, PyAny>> {
    let found = storage.as_intrusive_ptr().pyobj();
    if !found.is_null() {
        // SAFETY: as in `attach`.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, found.cast()) });
    }
    Ok(attach(&Bound::new(py, PyStorage::from(storage))?))
}

/// The storage that an object is, or that a typed storage wraps.
pub(crate) fn extract(object: &Bound<'_, PyAny>) -> Option<Storage> {
    let inner = match object.cast::<PyStorage>() {
        Ok(storage) => storage.clone(),
        Err(_) => object.getattr(intern!(object.py(), "_untyped_storage").ok()?).ok()?.cast_into().ok()?,
    };
    // A storage that Python made has its object from when others may hold it.
    attach(&inner);
    Some(inner.get().storage().clone())
}

impl PyStorage {
    fn storage(&self) -> &Storage {
        match &self.storage {
            Some(storage) => storage,
            None => unreachable!("an object that somebody sees has been filled"),
        }
    }

    /// The bytes, for reading.
    fn bytes(&self) -> Res<&[u8]> {
        if self.storage().device().type_ != DeviceType::CPU {
            let text = format!(
                "UntypedStorage: reading bytes needs a storage on the CPU, got one on {}",
                self.storage().device()
            );
            return Err(c10::Error::not_implemented(text).into());
        }
        let len = self.storage().nbytes();
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: a storage on the host has `nbytes` bytes; they are copied out before Python code runs again.
        Ok(unsafe { std::slice::from_raw_parts(self.storage().const_data(), len) })
    }

    /// Writes bytes from `offset` on.
    fn write(&self, offset: usize, bytes: &[u8]) -> Res<()> {
        self.bytes()?;
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.storage().nbytes()) {
            return Err(PyIndexError::error("UntypedStorage: bytes do not fit").into());
        }
        self.storage().materialize()?;
        // SAFETY: checked above; the source is not this storage or may overlap it.
        unsafe {
            std::ptr::copy(bytes.as_ptr(), self.storage().data_ptr().wrapping_add(offset), bytes.len())
        };
        Ok(())
    }

    /// The position that a number stands for.
    fn position(&self, key: &Bound<'_, PyAny>) -> Res<usize> {
        let len = self.storage().nbytes() as i64;
        let index = scalar::to_i64(key)?;
        let wrapped = if index < 0 { index + len } else { index };
        if wrapped < 0 || wrapped >= len {
            let text = format!("index {index} out of range for storage of size {len}");
            return Err(PyIndexError::error(text).into());
        }
        Ok(wrapped as usize)
    }

    /// Where a slice begins, and how many bytes it has.
    fn range(&self, slice: &Bound<'_, PySlice>) -> Res<(usize, usize)> {
        let indices = slice.indices(self.storage().nbytes() as isize)?;
        if indices.step != 1 {
            let text =
                format!("Trying to slice with a step of {}, but only a step of 1 is supported", indices.step);
            return Err(PyRuntimeError::error(text).into());
        }
        Ok((indices.start as usize, indices.slicelength))
    }

    /// The bytes of a range as a storage of their own, which keeps them alive.
    fn slice(&self, start: usize, len: usize) -> Res<Storage> {
        self.storage().materialize()?;
        // The pin keeps the bytes where they are if this storage is resized.
        let pin = self.storage().pin();
        let nbytes = self.storage().nbytes();
        // The bounds were Python objects, whose conversion may have changed the size.
        if start.checked_add(len).is_none_or(|end| end > nbytes) {
            let text =
                format!("slice {start}:{} is out of bounds for a storage of {nbytes} bytes", start + len);
            return Err(PyIndexError::error(text).into());
        }
        let data = self.storage().data_ptr().wrapping_add(start);
        let data = DataPtr::from_owner(data, pin, self.storage().device());
        let slice = Storage::from_data_ptr(data, len, self.storage().allocator(), false);
        c10::check_memory()?;
        Ok(slice)
    }

    /// Sets bytes of the storage to a value; without memory there is nothing to set.
    fn fill(&self, start: usize, len: usize, value: u8) -> Res<()> {
        if self.storage().device().type_ == DeviceType::Meta {
            return Ok(());
        }
        let nbytes = self.bytes()?.len();
        if start.checked_add(len).is_none_or(|end| end > nbytes) {
            return Err(PyIndexError::error("UntypedStorage: bytes do not fit").into());
        }
        self.storage().materialize()?;
        // SAFETY: checked above.
        unsafe { self.storage().data_ptr().wrapping_add(start).write_bytes(value, len) };
        Ok(())
    }
}

/// What is wrong with a key that is neither a number nor a slice.
fn bad_key(key: &Bound<'_, PyAny>) -> Res<String> {
    Ok(format!("can't index a ptr.UntypedStorage with {}", key.get_type().name()?))
}

/// The value of a byte, `None` for what is no integer. Values out of range wrap around, as in PyTorch.
fn byte(value: &Bound<'_, PyAny>) -> Res<Option<u8>> {
    if !scalar::is_int_like(value) && !value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    Ok(Some(scalar::to_i64(value)? as u8))
}

/// [`byte`], or the error that `text` begins.
fn byte_or(value: &Bound<'_, PyAny>, text: &str) -> Res<u8> {
    match byte(value)? {
        Some(byte) => Ok(byte),
        None => {
            let text = format!("{text}, but got {}", value.get_type().name()?);
            Err(PyRuntimeError::error(text).into())
        }
    }
}

/// A size in bytes.
fn size_of(size: &Bound<'_, PyAny>, name: &str) -> Res<usize> {
    if !scalar::is_int_like(size) {
        let text = format!("{name} expects an int, but got {}", size.get_type().name()?);
        return Err(PyRuntimeError::error(text).into());
    }
    usize::try_from(scalar::to_i64(size)?).map_err(|_| {
        PyRuntimeError::error(format!("{name}: the size must not be negative, got {size}")).into()
    })
}

#[pymethods]
impl PyStorage {
    /// Makes a storage of `size` uninitialized bytes, or with the given bytes.
    #[new]
    #[pyo3(signature = (*args, device = None))]
    fn new(args: &Bound<'_, PyTuple>, device: Option<&Bound<'_, PyAny>>) -> Res<PyStorage> {
        let device = match device {
            Some(object) => device::extract(object)?,
            None => c10::Device::new(DeviceType::CPU, -1),
        };
        let allocator = c10::get_allocator(device.type_)?;
        let make =
            |nbytes| Ok::<_, crate::raw::Raised>(PyStorage::from(Storage::new(nbytes, allocator, true)?));
        if args.len() > 1 {
            let text = format!("UntypedStorage() takes one positional argument, got {}", args.len());
            return Err(PyTypeError::error(text).into());
        }
        let Some(size) = args.iter().next() else { return make(0) };
        if scalar::is_int_like(&size) {
            return make(size_of(&size, "UntypedStorage()")?);
        }
        // SAFETY: a live object.
        let is_sequence = unsafe { pyo3::ffi::PySequence_Check(size.as_ptr()) != 0 };
        if !is_sequence || crate::tensor::get(&size).is_some() {
            let text =
                format!("UntypedStorage(): Expected a sequence type, but got {}", size.get_type().name()?);
            return Err(PyRuntimeError::error(text).into());
        }
        let text = format!("UntypedStorage(): expected the items of a {} to be int", size.get_type().name()?);
        let mut values: Vec<u8> = Vec::new();
        for value in size.try_iter()? {
            values
                .try_reserve(1)
                .map_err(|_| c10::Error::out_of_memory("UntypedStorage(): not enough memory"))?;
            values.push(byte_or(&value?, &text)?);
        }
        let storage = make(values.len())?;
        if device.type_ != DeviceType::Meta {
            storage.write(0, &values)?;
        }
        Ok(storage)
    }

    /// How many bytes there are.
    fn nbytes(&self) -> Number<usize> {
        Number(self.storage().nbytes())
    }
    /// How many bytes there are.
    fn size(&self) -> Number<usize> {
        Number(self.storage().nbytes())
    }
    /// 1.
    fn element_size(&self) -> Number<usize> {
        Number(1)
    }
    /// The address of the first byte.
    fn data_ptr(&self) -> Res<Number<usize>> {
        self.storage().materialize()?;
        Ok(Number(self.storage().data_ptr() as usize))
    }
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        device::object(py, self.storage().device())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        self.storage().device().is_cuda()
    }
    /// The identity of the bytes.
    #[getter]
    fn _cdata(&self) -> Number<usize> {
        Number(self.storage().as_intrusive_ptr().as_ptr() as usize)
    }
    #[getter]
    fn _untyped_storage<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        slf
    }
    /// Whether the bytes are page-locked, so that an accelerator (of the given device) may read them directly.
    #[pyo3(signature = (device = None))]
    fn is_pinned(&self, device: Option<&Bound<'_, PyAny>>) -> Res<bool> {
        let device = device.map(device::extract).transpose()?;
        let is_accelerator = device.is_none_or(|d| !matches!(d.type_, DeviceType::CPU | DeviceType::Meta));
        let host = self.storage().device().type_ == DeviceType::CPU;
        Ok(is_accelerator && host && c10::is_pinned_ptr(self.storage().const_data()))
    }
    /// Whether the size can be changed.
    fn resizable(&self) -> bool {
        self.storage().is_resizable()
    }
    /// Changes the size; the contents stay as far as they fit.
    fn resize_<'py>(slf: Bound<'py, Self>, size: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        slf.get().storage().resize(size_of(size, "resize_")?)?;
        Ok(slf)
    }
    /// Copies the bytes of another storage.
    #[pyo3(signature = (source, non_blocking = None))]
    fn copy_<'py>(
        slf: Bound<'py, Self>,
        source: &Bound<'py, PyAny>,
        non_blocking: Option<bool>,
    ) -> Res<Bound<'py, Self>> {
        let _ = non_blocking;
        let Some(source) = extract(source) else {
            return Err(PyTypeError::error("copy_(): argument 'source' must be a storage").into());
        };
        if slf.get().storage().device().type_ == DeviceType::Meta {
            return Ok(slf);
        }
        if source.nbytes() != slf.get().storage().nbytes() {
            return Err(c10::Error::runtime("copy_(): the storages must have the same size").into());
        }
        if !source.is_same(slf.get().storage()) {
            slf.get().write(0, PyStorage::from(source).bytes()?)?;
        }
        Ok(slf)
    }
    /// Sets all bytes to a value.
    fn fill_<'py>(slf: Bound<'py, Self>, value: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let storage = slf.get();
        storage.fill(0, storage.storage().nbytes(), byte_or(value, "fill_ expects int")?)?;
        Ok(slf)
    }
    /// A copy.
    fn clone(&self) -> Res<PyStorage> {
        if self.storage().device().type_ == DeviceType::Meta {
            let allocator = c10::get_allocator(DeviceType::Meta)?;
            return Ok(PyStorage::from(Storage::new(self.storage().nbytes(), allocator, true)?));
        }
        let bytes = self.bytes()?;
        let copy = Storage::new(bytes.len(), c10::get_allocator(DeviceType::CPU)?, true)?;
        let copy = PyStorage::from(copy);
        copy.write(0, bytes)?;
        Ok(copy)
    }
    /// The bytes as a list of integers.
    fn tolist<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        Ok(py.get_type::<PyList>().call1((objects::bytes(py, self.bytes()?)?,))?)
    }
    /// The bytes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyBytes>> {
        Ok(objects::bytes(py, self.bytes()?)?)
    }
    /// Overwrites the start with the given bytes.
    fn _write_bytes(&self, bytes: &[u8]) -> Res<()> {
        self.write(0, bytes)
    }
    fn __len__(&self) -> usize {
        self.storage().nbytes()
    }
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
        if scalar::is_int_like(key) {
            let position = self.position(key)?;
            return Ok(objects::int(key.py(), self.bytes()?[position].into())?.into_any());
        }
        let Ok(slice) = key.cast::<PySlice>() else { return Err(PyTypeError::error(bad_key(key)?).into()) };
        let (start, len) = self.range(slice)?;
        wrap(key.py(), self.slice(start, len)?)
    }
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Res<()> {
        let value = byte_or(value, "can only set storage content with a int types")?;
        if scalar::is_int_like(key) {
            let index = scalar::to_i64(key)?;
            return match usize::try_from(index) {
                Ok(position) if position < self.storage().nbytes() => self.fill(position, 1, value),
                _ => {
                    let text =
                        format!("out of bounds: {index} in a storage of {} bytes", self.storage().nbytes());
                    Err(PyRuntimeError::error(text).into())
                }
            };
        }
        let Ok(slice) = key.cast::<PySlice>() else {
            return Err(PyRuntimeError::error(bad_key(key)?).into());
        };
        let (start, len) = self.range(slice)?;
        self.fill(start, len, value)
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyStorage>().is_ok_and(|o| o.get().storage().is_same(self.storage()))
    }
    fn __hash__(&self) -> usize {
        self._cdata().0 >> 4
    }
    fn __repr__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyString>> {
        const BYTE: usize = " 255\n".len();
        let mut text = String::new();
        let (device, size) = (self.storage().device(), self.storage().nbytes());
        let tail = format!("[ptr.storage.UntypedStorage(device={device}) of size {size}]");
        let shown = if device.type_ == DeviceType::CPU { self.bytes()? } else { &[] };
        let room = shown.len().saturating_mul(BYTE).saturating_add(tail.len() + BYTE);
        text.try_reserve_exact(room).map_err(|_| c10::Error::out_of_memory("repr(): not enough memory"))?;
        for byte in shown {
            // Writing to a string does not fail.
            let _ = writeln!(text, " {byte}");
        }
        if device.type_ != DeviceType::CPU {
            text.push_str("...\n");
        }
        text.push_str(&tail);
        Ok(objects::string(py, &text)?)
    }
}

/// Adds the class.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add("StorageBase", module.getattr(intern!(module.py(), "UntypedStorage")?)?)
}
