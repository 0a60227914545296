//! `_C._ArchiveWriter`: writes a checkpoint to a path or to a Python file object.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use c10::{DeviceType, StoragePin};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use serialize::{ArchiveWriter, AtomicFile, SerializeError};

use super::error::{io_error, to_python};
use crate::raw::objects::{self, intern, NewError, Number};
use crate::raw::{Res, TextArgument};

/// A Python file object as a sink.
struct PyFile(Py<PyAny>);

impl Write for PyFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let data_object = objects::bytes(py, data).map_err(io::Error::other)?;
            let written = self
                .0
                .bind(py)
                .call_method1(intern!(py, "write")?, (data_object,))
                .map_err(io::Error::other)?;
            // Raw files may write less; others write everything and may return nothing.
            Ok(written.extract::<usize>().map_or(data.len(), |n| n.min(data.len())))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| match self.0.bind(py).call_method0(intern!(py, "flush")?) {
            Ok(_) => Ok(()),
            // A sink that cannot be flushed needs no flushing.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyAttributeError>(py) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        })
    }
}

enum Sink {
    /// Replaces the file when everything is written; until then the old one stays.
    Path(ArchiveWriter<BufWriter<AtomicFile>>),
    File(ArchiveWriter<BufWriter<PyFile>>),
}

impl Sink {
    fn write_preamble(&mut self, pickle: &[u8]) -> Result<(), SerializeError> {
        match self {
            Sink::Path(writer) => writer.write_preamble(pickle),
            Sink::File(writer) => writer.write_preamble(pickle),
        }
    }

    fn write_storage(&mut self, key: &str, data: &[u8]) -> Result<(), SerializeError> {
        match self {
            Sink::Path(writer) => writer.write_storage(key, data),
            Sink::File(writer) => writer.write_storage(key, data),
        }
    }

    fn write_record(&mut self, name: &str, data: &[u8]) -> Result<(), SerializeError> {
        match self {
            Sink::Path(writer) => writer.write_record(name, data),
            Sink::File(writer) => writer.write_record(name, data),
        }
    }

    fn commit(self) -> Result<(), SerializeError> {
        match self {
            Sink::Path(writer) => writer.commit(),
            Sink::File(writer) => {
                writer.finish()?.flush().map_err(|e| SerializeError::io("flush the file", e))
            }
        }
    }
}

/// An archive that is being written.
#[pyclass(name = "_ArchiveWriter", module = "ptr._C", frozen, skip_from_py_object)]
struct PyArchiveWriter {
    sink: Mutex<Option<Sink>>,
}

impl PyArchiveWriter {
    fn with(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut Sink) -> Result<(), SerializeError> + Send,
    ) -> PyResult<()> {
        // Taken out meanwhile: a Python file object may come back here.
        let Some(mut sink) = self.sink.lock().take() else {
            return Err(PyRuntimeError::error("the archive is closed, or in use"));
        };
        let result = py.detach(|| body(&mut sink));
        *self.sink.lock() = Some(sink);
        result.map_err(|e| to_python(&e))
    }
}

#[pymethods]
impl PyArchiveWriter {
    /// Starts an archive that will replace the file at `path`.
    #[staticmethod]
    fn to_path(path: PathBuf) -> PyResult<Self> {
        let writer = ArchiveWriter::create(path).map_err(|e| to_python(&e))?;
        Ok(PyArchiveWriter { sink: Mutex::new(Some(Sink::Path(writer))) })
    }

    /// Starts an archive that is written to a file object.
    #[staticmethod]
    fn to_file(file: Py<PyAny>) -> PyResult<Self> {
        let writer =
            ArchiveWriter::new(BufWriter::new(PyFile(file)), "archive").map_err(|e| to_python(&e))?;
        Ok(PyArchiveWriter { sink: Mutex::new(Some(Sink::File(writer))) })
    }

    /// The pickle and what describes the format.
    fn write_preamble(&self, py: Python<'_>, pickle: &[u8]) -> PyResult<()> {
        self.with(py, |sink| sink.write_preamble(pickle))
    }

    /// The bytes of a storage.
    fn write_storage(&self, py: Python<'_>, key: TextArgument<'_>, storage: &Bound<'_, PyAny>) -> Res<()> {
        // `write` of a file object may resize the storage that is being written.
        let bytes = StorageBytes::whole(storage)?;
        Ok(self.with(py, |sink| sink.write_storage(&key, bytes.as_slice()))?)
    }

    /// Another record.
    fn write_record(&self, py: Python<'_>, name: TextArgument<'_>, data: &[u8]) -> PyResult<()> {
        self.with(py, |sink| sink.write_record(&name, data))
    }

    /// Finishes the archive and, for a path, puts it in place.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(sink) = self.sink.lock().take() else {
            return Err(PyRuntimeError::error("the archive is closed, or in use"));
        };
        py.detach(|| sink.commit()).map_err(|e| to_python(&e))
    }

    /// Gives up: the file that was there stays.
    fn abandon(&self) {
        let sink = self.sink.lock().take();
        drop(sink);
    }
}

/// Bytes of a storage, which stay where they are: see c10's Note [Pinned storages].
struct StorageBytes {
    pin: StoragePin,
    start: usize,
    nbytes: usize,
}

impl StorageBytes {
    fn whole(object: &Bound<'_, PyAny>) -> Res<StorageBytes> {
        let Some(storage) = crate::storage::extract(object) else {
            let found = object.get_type().name()?;
            return Err(PyTypeError::error(format!("write_storage: expected a storage, got {found}")).into());
        };
        if storage.device().type_ != DeviceType::CPU {
            let text =
                format!("write_storage: expected a storage on the CPU, got one on {}", storage.device());
            return Err(PyRuntimeError::error(text).into());
        }
        let pin = storage.pin();
        Ok(StorageBytes { start: 0, nbytes: pin.storage().nbytes(), pin })
    }

    fn new(object: &Bound<'_, PyAny>, start: usize, nbytes: usize) -> Res<StorageBytes> {
        let whole = StorageBytes::whole(object)?;
        if start.checked_add(nbytes).is_none_or(|end| end > whole.nbytes) {
            let text = format!(
                "write_storage: expected a range within {} bytes, got {nbytes} from {start} on",
                whole.nbytes
            );
            return Err(PyRuntimeError::error(text).into());
        }
        Ok(StorageBytes { start, nbytes, ..whole })
    }

    fn as_slice(&self) -> &[u8] {
        if self.nbytes == 0 {
            return &[];
        }
        // SAFETY: a storage on the host has these bytes, which the pin keeps. A concurrent writer could tear what is
        // saved, as in PyTorch.
        unsafe {
            std::slice::from_raw_parts(self.pin.storage().const_data().wrapping_add(self.start), self.nbytes)
        }
    }
}

/// A file that replaces the one at its path when it is committed; until then the old one stays.
#[pyclass(name = "_AtomicFile", module = "ptr._C", frozen, skip_from_py_object)]
struct PyAtomicFile {
    file: Mutex<Option<BufWriter<AtomicFile>>>,
}

const CLOSED: &str = "the file is closed";

#[pymethods]
impl PyAtomicFile {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let file = AtomicFile::create(path).map_err(|e| to_python(&e))?;
        Ok(PyAtomicFile { file: Mutex::new(Some(BufWriter::new(file))) })
    }

    /// Writes all of `data`.
    fn write(&self, data: &[u8]) -> PyResult<Number<usize>> {
        match self.file.lock().as_mut() {
            Some(file) => {
                file.write_all(data).map_err(|e| io_error(&e.to_string(), &e))?;
                Ok(Number(data.len()))
            }
            None => Err(PyRuntimeError::error(CLOSED)),
        }
    }

    /// Writes `nbytes` bytes of a storage on the host, from `start` on.
    fn write_storage(
        &self,
        py: Python<'_>,
        storage: &Bound<'_, PyAny>,
        start: usize,
        nbytes: usize,
    ) -> Res<()> {
        let bytes = StorageBytes::new(storage, start, nbytes)?;
        // Taken out meanwhile: other threads run.
        let Some(mut file) = self.file.lock().take() else {
            return Err(PyRuntimeError::error(CLOSED).into());
        };
        let result = py.detach(|| file.write_all(bytes.as_slice()));
        *self.file.lock() = Some(file);
        Ok(result.map_err(|e| io_error(&e.to_string(), &e))?)
    }

    /// Does nothing: what is written counts when it is committed.
    fn flush(&self) {}

    /// Puts the file in place.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.file.lock().take() else { return Err(PyRuntimeError::error(CLOSED)) };
        py.detach(|| {
            let file = file.into_inner().map_err(|e| SerializeError::io("write the file", e.into_error()))?;
            file.commit()
        })
        .map_err(|e| to_python(&e))
    }

    /// Gives up: the file that was there stays.
    fn abandon(&self) {
        let file = self.file.lock().take();
        drop(file);
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyAtomicFile>()?;
    module.add_class::<PyArchiveWriter>()
}
