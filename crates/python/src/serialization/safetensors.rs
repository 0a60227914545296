//! `_C._SafetensorsReader` and `_C._safetensors_header`: the headers of safetensors files, and the bytes behind them.
//!
//! The format's own crate parses, checks and writes headers; what a file says is believed only after that.

use std::collections::HashMap as StdHashMap;
use std::fs::File;
use std::path::PathBuf;

use ::safetensors::tensor::{Metadata, TensorInfo};
use ::safetensors::{Dtype, SafeTensorError, SafeTensors};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serialize::{Bytes, SerializeError};

use super::error::to_python;
use super::reader;
use crate::convert::errors;
use crate::raw::objects::{self, NewError};
use crate::raw::{Res, TextArgument};

/// The length of the header comes first, in as many bytes.
const LEN_BYTES: usize = size_of::<u64>();
/// Longer headers are refused by everybody's readers.
const MAX_HEADER: usize = 100_000_000;

fn bad_file(error: &SafeTensorError) -> PyErr {
    PyValueError::error(format!("not a safetensors file: {error}"))
}

/// An opened file.
#[pyclass(name = "_SafetensorsReader", module = "ptr._C", frozen, skip_from_py_object)]
struct Reader {
    /// What comes after the header.
    data: Bytes,
    metadata: Metadata,
}

impl Reader {
    fn new(bytes: &Bytes) -> PyResult<Reader> {
        let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| bad_file(&e))?;
        let data = bytes.slice(LEN_BYTES + header..bytes.len()).map_err(|e| to_python(&e))?;
        Ok(Reader { data, metadata })
    }
}

#[pymethods]
impl Reader {
    /// Opens a file, which is mapped.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let text = format!("open {}", path.display());
            let file = File::open(&path).map_err(|e| to_python(&SerializeError::io(&text, e)))?;
            Reader::new(&Bytes::map(&file).map_err(|e| to_python(&e))?)
        })
    }

    /// Opens a file that is in memory.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let data = c10::try_collect(data.iter().copied()).map_err(errors::to_python)?;
        Reader::new(&Bytes::from_vec(data))
    }

    /// For each tensor, in the order of the file: its name, dtype, sizes, and where its bytes begin and end.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = objects::empty_list(py)?;
        for name in self.metadata.offset_keys() {
            let Some(info) = self.metadata.info(&name) else { continue };
            let size = |i: usize| Ok(objects::unsigned(py, info.shape[i] as u64)?.into_ptr());
            let (start, end) = info.data_offsets;
            let entry = [
                objects::string(py, &name)?.into_any(),
                objects::string(py, &format!("{:?}", info.dtype))?.into_any(),
                objects::tuple_of(py, info.shape.len(), size)?,
                objects::unsigned(py, start as u64)?.into_any(),
                objects::unsigned(py, end as u64)?.into_any(),
            ];
            list.append(objects::tuple(py, entry)?)?;
        }
        Ok(list)
    }

    /// The texts that the file carries, or `None`.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(texts) = self.metadata.metadata() else { return Ok(None) };
        let dict = objects::dict(py)?;
        for (key, value) in texts {
            dict.set_item(objects::string(py, key)?, objects::string(py, value)?)?;
        }
        Ok(Some(dict))
    }

    /// The bytes from `start` to `end` as a storage: over the map if `shared` and the address is a multiple of `align`,
    /// otherwise a copy.
    fn storage<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
        align: usize,
        shared: bool,
    ) -> Res<Bound<'py, PyAny>> {
        let bytes = self.data.slice(start..end).map_err(|e| to_python(&e))?;
        let is_aligned = (bytes.as_ptr() as usize).is_multiple_of(align.max(1));
        let storage = if shared && bytes.is_mapped() && is_aligned {
            reader::over_map(bytes)
        } else {
            py.detach(|| reader::copy_of(&bytes))?
        };
        crate::storage::wrap(py, storage)
    }
}

/// The header (with its length) of a file for tensors of the given names, dtypes, sizes and numbers of bytes, and the names
/// in the order in which their bytes have to follow.
#[pyfunction]
fn _safetensors_header<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyList>,
    metadata: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut infos: Vec<(String, TensorInfo)> = Vec::new();
    for entry in tensors.iter() {
        let entry = entry.cast::<PyTuple>()?;
        let name = entry.get_item(0)?.extract::<TextArgument<'_>>()?.to_string();
        let dtype = entry.get_item(1)?.extract::<TextArgument<'_>>()?.to_string();
        let dtype: Dtype = serde_json::from_str(&format!("{dtype:?}"))
            .map_err(|_| PyValueError::error(format!("safetensors has no dtype {dtype}")))?;
        let shape = entry.get_item(2)?.extract::<Vec<usize>>()?;
        let nbytes = entry.get_item(3)?.extract::<usize>()?;
        infos.push((name, TensorInfo { dtype, shape, data_offsets: (0, nbytes) }));
    }
    // The widest first, so that every tensor is aligned; then by name, so that a file depends on its content only.
    infos.sort_by(|(name, info), (other_name, other)| {
        other.dtype.cmp(&info.dtype).then_with(|| name.cmp(other_name))
    });
    let mut end = 0_usize;
    for (name, info) in &mut infos {
        let start = end;
        end = start
            .checked_add(info.data_offsets.1)
            .ok_or_else(|| PyValueError::error(format!("the tensors up to {name} have too many bytes")))?;
        info.data_offsets = (start, end);
    }
    let names = objects::list_of(py, infos.len(), |i| Ok(objects::string(py, &infos[i].0)?.into_ptr()))?;
    let texts = match metadata {
        None => None,
        Some(dict) => {
            let mut texts = StdHashMap::new();
            for (key, value) in dict.iter() {
                let key = key.extract::<TextArgument<'_>>()?.to_string();
                texts.insert(key, value.extract::<TextArgument<'_>>()?.to_string());
            }
            Some(texts.into_iter().collect())
        }
    };
    let metadata = Metadata::new(texts, infos).map_err(|e| bad_file(&e))?;
    let text = serde_json::to_string(&metadata).map_err(|e| PyValueError::error(e.to_string()))?;
    let mut header = vec![0; LEN_BYTES];
    header.extend_from_slice(text.as_bytes());
    header.resize(header.len().next_multiple_of(LEN_BYTES), b' ');
    let len = header.len() - LEN_BYTES;
    if len > MAX_HEADER {
        let text = format!("the header of the file would have {len} bytes; {MAX_HEADER} are allowed");
        return Err(PyValueError::error(text));
    }
    header[..LEN_BYTES].copy_from_slice(&(len as u64).to_le_bytes());
    objects::tuple(py, [objects::bytes(py, &header)?.into_any(), names.into_any()])
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Reader>()?;
    module.add_function(wrap_pyfunction!(_safetensors_header, module)?)
}
