//! `_C._ArchiveReader`: an opened checkpoint file of either format.

use std::path::PathBuf;

use c10::{DataPtr, Device, DeviceType, Storage};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serialize::{
    Archive, ByteOrder, Bytes, FileKind, GlobalPolicy, OpenOptions, Pickler, StorageRecord, Unpickler,
};

use super::error::to_python;
use super::unpickle::{self, Callbacks};
use crate::convert::errors;
use crate::raw::objects::{self, Number, Text, Texts};
use crate::raw::{Res, TextArgument};

/// An opened checkpoint.
#[pyclass(name = "_ArchiveReader", module = "ptr._C", frozen, skip_from_py_object)]
struct ArchiveReader {
    archive: Archive,
    mmap: bool,
}

#[pymethods]
impl ArchiveReader {
    /// Opens a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, mmap: bool) -> PyResult<Self> {
        // Mapped in any case: pages are read when they are copied. Without `mmap` nothing keeps the file.
        let options = OpenOptions { verify_storages: !mmap, ..OpenOptions::default() };
        let archive = py.detach(|| Archive::open_with(path, options)).map_err(|e| to_python(&e))?;
        Ok(ArchiveReader { archive, mmap })
    }

    /// Opens a file that is in memory.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let data = c10::try_collect(data.iter().copied()).map_err(errors::to_python)?;
        let archive = py.detach(|| Archive::from_vec(data)).map_err(|e| to_python(&e))?;
        Ok(ArchiveReader { archive, mmap: false })
    }

    /// `"zip"` or `"legacy"`.
    #[getter]
    fn kind(&self) -> Text<&'static str> {
        Text(match self.archive.kind() {
            FileKind::Legacy => "legacy",
            _ => "zip",
        })
    }

    /// How many bytes of the file a legacy stream takes; `None` for an archive.
    #[getter]
    fn stream_len(&self) -> Option<Number<usize>> {
        self.archive.stream_len().map(Number)
    }

    /// `"little"` or `"big"`.
    #[getter]
    fn byteorder(&self) -> Text<&'static str> {
        Text(match self.archive.byte_order() {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        })
    }

    /// The pickle as it is in the file.
    fn pickle_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, &self.archive.pickle_bytes().map_err(|e| to_python(&e))?)
    }

    /// Names of all records.
    fn record_names(&self) -> Texts<&str> {
        Texts(self.archive.record_names().collect())
    }

    /// Whether there is a record of this name.
    fn has_record(&self, name: TextArgument<'_>) -> bool {
        self.archive.has_record(&name)
    }

    /// The content of a record.
    fn record<'py>(&self, py: Python<'py>, name: TextArgument<'_>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, &self.archive.record(&name).map_err(|e| to_python(&e))?)
    }

    /// Names of the globals that the pickle mentions and a weights-only load refuses.
    fn unsafe_globals(&self) -> PyResult<Texts<String>> {
        let pickle = self.archive.load_with(&GlobalPolicy::any()).map_err(|e| to_python(&e))?;
        let mut names = Vec::new();
        for id in pickle.ids() {
            if let Some((module, name)) = pickle.as_global(id) {
                let full_name = format!("{module}.{name}");
                if !serialize::is_allowed(module, name) && !names.contains(&full_name) {
                    names.push(full_name);
                }
            }
        }
        Ok(Texts(names))
    }

    /// Reads the pickle, which may name only what weights consist of and the names in `safe_globals`.
    fn load_weights<'py>(
        &self,
        py: Python<'py>,
        safe_globals: Vec<String>,
        find_global: &Bound<'py, PyAny>,
        persistent_load: &Bound<'py, PyAny>,
        new_object: &Bound<'py, PyAny>,
        set_state: &Bound<'py, PyAny>,
    ) -> Res<Bound<'py, PyAny>> {
        let policy = safe_globals.into_iter().fold(GlobalPolicy::weights_only(), GlobalPolicy::allow);
        let pickle = py.detach(|| self.archive.load_with(&policy)).map_err(|e| to_python(&e))?;
        unpickle::build(py, &pickle, &Callbacks { find_global, persistent_load, new_object, set_state })
    }

    /// The bytes of a storage on the host, in this machine's byte order: `numel` elements of the storage class's dtype.
    /// `element_dtype` is the dtype of the tensors over it, which decides what to swap.
    fn read_storage<'py>(
        &self,
        py: Python<'py>,
        key: TextArgument<'_>,
        storage_type: TextArgument<'_>,
        dtype: TextArgument<'_>,
        numel: u64,
        element_dtype: TextArgument<'_>,
    ) -> Res<Bound<'py, PyAny>> {
        let record = StorageRecord {
            storage_type: storage_type.to_string(),
            dtype: dtype.to_string(),
            key: key.to_string(),
            location: "cpu".to_owned(),
            numel,
            view: None,
        };
        let bytes = py
            .detach(|| self.archive.native_storage_for(&record, &element_dtype))
            .map_err(|e| to_python(&e))?;
        let storage =
            if self.mmap && bytes.is_mapped() { over_map(bytes) } else { py.detach(|| copy_of(&bytes))? };
        crate::storage::wrap(py, storage)
    }
}

/// A storage over a private map: writes copy pages and never reach the file.
pub(super) fn over_map(bytes: Bytes) -> Storage {
    let (data, nbytes) = (bytes.as_ptr().cast_mut(), bytes.len());
    let data = DataPtr::from_owner(data, bytes, Device::new(DeviceType::CPU, -1));
    Storage::from_data_ptr(data, nbytes, None, false)
}

pub(super) fn copy_of(bytes: &Bytes) -> c10::Result<Storage> {
    // Not resizable: a tensor of the file that reaches over the end of its storage is an error, not a larger storage.
    let storage = Storage::new(bytes.len(), c10::get_allocator(DeviceType::CPU)?, false)?;
    if !bytes.is_empty() {
        // SAFETY: a fresh storage of this many bytes.
        unsafe { std::ptr::copy_nonoverlapping(Bytes::as_ptr(bytes), storage.data_ptr(), bytes.len()) };
    }
    Ok(storage)
}

/// A pickle with its globals in PyTorch's spelling, in protocol 2.
#[pyfunction]
fn _normalize_pickle<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let pickle = Unpickler::new().policy(GlobalPolicy::any()).load(data).map_err(|e| to_python(&e))?;
    objects::bytes(py, &Pickler::new().dump(&pickle).map_err(|e| to_python(&e))?)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ArchiveReader>()?;
    module.add_function(wrap_pyfunction!(_normalize_pickle, module)?)
}
