//! `ptr.UntypedStorage`: the bytes behind tensors.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{DeviceType, Storage};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::convert::{device, scalar};
use crate::raw::Res;

/// The bytes behind one or more tensors. Objects for the same bytes are equal.
#[pyclass(name = "UntypedStorage", module = "ptr", subclass, frozen, weakref, dict, skip_from_py_object)]
pub(crate) struct PyStorage {
    storage: Storage,
    /// Whether this is the object in the storage's slot.
    attached: AtomicBool,
}

impl From<Storage> for PyStorage {
    fn from(storage: Storage) -> PyStorage {
        PyStorage { storage, attached: AtomicBool::new(false) }
    }
}

impl Drop for PyStorage {
    fn drop(&mut self) {
        // The object is dying: nobody may find it from here on. Its count of the storage goes after this.
        if *self.attached.get_mut() {
            self.storage.as_intrusive_ptr().pyobj_slot().clear();
        }
    }
}

/// Makes this the object of its storage, so that it stays while anything holds the storage (Note [The PyObject owns the
/// target] in c10). The result is the object that the storage has, which is another one if that was first.
fn attach<'py>(object: &Bound<'py, PyStorage>) -> Bound<'py, PyAny> {
    let this = object.get();
    if !this.attached.load(Ordering::Relaxed) {
        // SAFETY: the object holds a count of the storage, and the caller a reference to the object.
        match unsafe { this.storage.as_intrusive_ptr().init_pyobj(object.as_ptr().cast()) } {
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
        Err(_) => object.getattr(pyo3::intern!(object.py(), "_untyped_storage")).ok()?.cast_into().ok()?,
    };
    // A storage that Python made has its object from when others may hold it.
    attach(&inner);
    Some(inner.get().storage.clone())
}

impl PyStorage {
    /// The bytes, for reading.
    fn bytes(&self) -> Res<&[u8]> {
        if self.storage.device().type_ != DeviceType::CPU {
            let text = format!(
                "UntypedStorage: reading bytes needs a storage on the CPU, got one on {}",
                self.storage.device()
            );
            return Err(c10::Error::not_implemented(text).into());
        }
        let len = self.storage.nbytes();
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: a storage on the host has `nbytes` bytes; they are copied out before Python code runs again.
        Ok(unsafe { std::slice::from_raw_parts(self.storage.const_data(), len) })
    }

    /// Writes bytes from `offset` on.
    fn write(&self, offset: usize, bytes: &[u8]) -> Res<()> {
        self.bytes()?;
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.storage.nbytes()) {
            return Err(PyIndexError::new_err("UntypedStorage: bytes do not fit").into());
        }
        self.storage.materialize()?;
        // SAFETY: checked above; the source is not this storage or may overlap it.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.storage.data_ptr().wrapping_add(offset), bytes.len()) };
        Ok(())
    }

    fn index(&self, index: isize) -> Res<usize> {
        let len = self.storage.nbytes() as isize;
        let wrapped = if index < 0 { index + len } else { index };
        if wrapped < 0 || wrapped >= len {
            let text = format!("index {index} out of range for storage of size {len}");
            return Err(PyIndexError::new_err(text).into());
        }
        Ok(wrapped as usize)
    }
}

/// A value of a byte.
fn byte(value: &Bound<'_, PyAny>) -> Res<u8> {
    match u8::try_from(scalar::to_i64(value)?) {
        Ok(byte) => Ok(byte),
        Err(_) => Err(PyValueError::new_err("UntypedStorage: a value must be in range(0, 256)").into()),
    }
}

#[pymethods]
impl PyStorage {
    /// Makes a storage of `size` uninitialized bytes, or with the given bytes.
    #[new]
    #[pyo3(signature = (size = None, *, device = None))]
    fn new(size: Option<&Bound<'_, PyAny>>, device: Option<&Bound<'_, PyAny>>) -> Res<PyStorage> {
        let device = match device {
            Some(object) => device::extract(object)?,
            None => c10::Device::new(DeviceType::CPU, -1),
        };
        let allocator = c10::get_allocator(device.type_)?;
        let make =
            |nbytes| Ok::<_, crate::raw::Raised>(PyStorage::from(Storage::new(nbytes, allocator, true)?));
        let Some(size) = size else { return make(0) };
        if scalar::is_int_like(size) {
            return match usize::try_from(scalar::to_i64(size)?) {
                Ok(nbytes) => make(nbytes),
                Err(_) => Err(PyValueError::new_err("UntypedStorage(): size must not be negative").into()),
            };
        }
        let values = size.try_iter()?.map(|v| byte(&v?)).collect::<Res<Vec<u8>>>()?;
        let storage = make(values.len())?;
        storage.write(0, &values)?;
        Ok(storage)
    }

    /// How many bytes there are.
    fn nbytes(&self) -> usize {
        self.storage.nbytes()
    }
    /// How many bytes there are.
    fn size(&self) -> usize {
        self.storage.nbytes()
    }
    /// 1.
    fn element_size(&self) -> usize {
        1
    }
    /// The address of the first byte.
    fn data_ptr(&self) -> Res<usize> {
        self.storage.materialize()?;
        Ok(self.storage.data_ptr() as usize)
    }
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        device::object(py, self.storage.device())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        self.storage.device().is_cuda()
    }
    /// The identity of the bytes.
    #[getter]
    fn _cdata(&self) -> usize {
        self.storage.as_intrusive_ptr().as_ptr() as usize
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
        let host = self.storage.device().type_ == DeviceType::CPU;
        Ok(is_accelerator && host && c10::is_pinned_ptr(self.storage.const_data()))
    }
    /// Whether the size can be changed.
    fn resizable(&self) -> bool {
        self.storage.is_resizable()
    }
    /// Changes the size; the contents stay as far as they fit.
    fn resize_<'py>(slf: Bound<'py, Self>, size: usize) -> Res<Bound<'py, Self>> {
        slf.get().storage.resize(size)?;
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
            return Err(PyTypeError::new_err("copy_(): argument 'source' must be a storage").into());
        };
        let bytes = PyStorage::from(source).bytes()?.to_vec();
        if bytes.len() != slf.get().storage.nbytes() {
            return Err(c10::Error::runtime("copy_(): the storages must have the same size").into());
        }
        slf.get().write(0, &bytes)?;
        Ok(slf)
    }
    /// Sets all bytes to a value.
    fn fill_<'py>(slf: Bound<'py, Self>, value: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let storage = slf.get();
        storage.write(0, &vec![byte(value)?; storage.storage.nbytes()])?;
        Ok(slf)
    }
    /// A copy.
    fn clone(&self) -> Res<PyStorage> {
        let bytes = self.bytes()?;
        let copy = Storage::new(bytes.len(), c10::get_allocator(DeviceType::CPU)?, true)?;
        let copy = PyStorage::from(copy);
        copy.write(0, bytes)?;
        Ok(copy)
    }
    /// The bytes as a list of integers.
    fn tolist(&self) -> Res<Vec<u32>> {
        Ok(self.bytes()?.iter().map(|&b| u32::from(b)).collect())
    }
    /// The bytes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> Res<Bound<'py, pyo3::types::PyBytes>> {
        Ok(pyo3::types::PyBytes::new(py, self.bytes()?))
    }
    /// Overwrites the start with the given bytes.
    fn _write_bytes(&self, bytes: &[u8]) -> Res<()> {
        self.write(0, bytes)
    }
    fn __len__(&self) -> usize {
        self.storage.nbytes()
    }
    fn __getitem__(&self, index: isize) -> Res<u32> {
        Ok(u32::from(self.bytes()?[self.index(index)?]))
    }
    fn __setitem__(&self, index: isize, value: &Bound<'_, PyAny>) -> Res<()> {
        self.write(self.index(index)?, &[byte(value)?])
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyStorage>().is_ok_and(|o| o.get().storage.is_same(&self.storage))
    }
    fn __hash__(&self) -> usize {
        self._cdata() >> 4
    }
    fn __repr__(&self) -> Res<String> {
        let data: String = match self.storage.device().type_ {
            DeviceType::CPU => self.bytes()?.iter().map(|b| format!(" {b}\n")).collect(),
            _ => "...\n".to_owned(),
        };
        let (device, size) = (self.storage.device(), self.storage.nbytes());
        Ok(format!("{data}[ptr.storage.UntypedStorage(device={device}) of size {size}]"))
    }
}

/// Adds the class.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add("StorageBase", module.getattr("UntypedStorage")?)
}
