//! Memory that several processes see: `_C._map_file` and `_C._adopt_memory`.

use std::fs::File;
use std::os::fd::BorrowedFd;

use c10::{DataPtr, Device, DeviceType, Storage};
use memmap2::MmapOptions;
use pyo3::prelude::*;

use crate::raw::Res;
use crate::serialization::io_error;

/// A storage over the first `nbytes` bytes of an open file. What is written to it reaches everybody who maps the file if
/// `shared`, and nobody else otherwise. The descriptor may be closed afterwards.
#[pyfunction]
fn _map_file(py: Python<'_>, fd: i32, nbytes: usize, shared: bool, populate: bool) -> Res<Bound<'_, PyAny>> {
    if fd < 0 || nbytes == 0 {
        let text = format!("_map_file(): expected a descriptor and a size, got {fd} and {nbytes}");
        return Err(c10::Error::value(text).into());
    }
    let failed = |error: std::io::Error| io_error(&format!("cannot map a file: {error}"), &error);
    // SAFETY: used within this call only, to duplicate the descriptor, which fails for one that is not open.
    let file = File::from(unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().map_err(failed)?);
    let size = file.metadata().map_err(failed)?.len();
    if size < nbytes as u64 {
        let text = format!("_map_file(): expected a file of at least {nbytes} bytes, got {size}");
        return Err(c10::Error::value(text).into());
    }
    let mut options = MmapOptions::new();
    options.len(nbytes);
    if populate {
        options.populate();
    }
    // SAFETY: tensors are memory that others may write at any time; nothing here reads it through a reference.
    let map = unsafe {
        if shared {
            options.map_mut(&file)
        } else {
            options.map_copy(&file)
        }
    };
    let mut map = map.map_err(failed)?;
    let data = DataPtr::from_owner(map.as_mut_ptr(), map, Device::new(DeviceType::CPU, -1));
    crate::storage::wrap(py, Storage::from_data_ptr(data, nbytes, None, false))
}

/// Makes the memory of `source` that of `storage`, so that all tensors over either see the same bytes.
#[pyfunction]
fn _adopt_memory(storage: &Bound<'_, PyAny>, source: &Bound<'_, PyAny>) -> Res<()> {
    let (Some(storage), Some(source)) = (crate::storage::extract(storage), crate::storage::extract(source))
    else {
        return Err(c10::Error::type_("_adopt_memory(): expected two storages").into());
    };
    source.materialize()?;
    // From here on the bytes of `source` stay where they are, whatever happens to it.
    let pin = source.pin();
    let nbytes = source.nbytes();
    if storage.is_same(&source) || storage.nbytes() != nbytes || storage.device() != source.device() {
        let text = format!(
            "_adopt_memory(): expected two storages of one size and device, got {} bytes on {} and {nbytes} on {}",
            storage.nbytes(),
            storage.device(),
            source.device()
        );
        return Err(c10::Error::value(text).into());
    }
    storage.set_resizable(false);
    let data = DataPtr::from_owner(source.data_ptr(), pin, source.device());
    // SAFETY: as many bytes as before, so no tensor reaches further. As for `resize_`, kernels that run without the
    // interpreter's lock have pinned the old ones, which then outlive them.
    drop(unsafe { storage.set_data_ptr(data, nbytes) }?);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_map_file, module)?)?;
    module.add_function(wrap_pyfunction!(_adopt_memory, module)?)
}
