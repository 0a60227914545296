//! What checkpoints say about storages and tensors, read out of the pickle and checked.

use super::value::{NodeId, Pickle, Value};
use crate::dtype::{dtype_of_storage_type, element_size, storage_type_of_dtype};
use crate::error::{error, Result};
use crate::limits;

/// Bounds on what is copied out of the arena for one record, since a hostile pickle can refer to the same long value
/// from many records.
const MAX_NAME: usize = 4096;
const MAX_DIM: usize = 1024;

/// What a persistent id says about a storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageRecord {
    /// The class: `"FloatStorage"`, …, or `"UntypedStorage"`.
    pub storage_type: String,
    /// The dtype of the class; `"uint8"` for an untyped one.
    pub dtype: String,
    /// The name of the data: record `data/<key>`.
    pub key: String,
    /// The device the storage was on: `"cpu"`, `"cuda:0"`.
    pub location: String,
    /// Elements of `dtype`.
    pub numel: u64,
    /// In stream files, the part of the keyed storage that this one is a view of.
    pub view: Option<StorageView>,
}

/// A part of another storage (stream files of early versions). The bytes of the record's key are those of the whole;
/// `offset` is to be added to the storage offset of tensors that use the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StorageView {
    /// Names the view.
    pub key: String,
    /// Elements before it.
    pub offset: u64,
    /// Elements in it.
    pub numel: u64,
}

impl StorageRecord {
    /// Bytes of data, if they can be counted.
    pub fn nbytes(&self) -> Result<u64> {
        element_size(&self.dtype).and_then(|size| self.numel.checked_mul(size as u64)).ok_or_else(|| {
            error!(
                Size,
                "storage `{}` has {} elements of {}, whose bytes cannot be counted",
                self.key,
                self.numel,
                self.dtype
            )
        })
    }
}

/// A strided tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRecord {
    /// Where the data is.
    pub storage: StorageRecord,
    /// Type of the elements.
    pub dtype: String,
    /// In elements.
    pub storage_offset: i64,
    /// Sizes.
    pub size: Vec<i64>,
    /// Strides in elements.
    pub stride: Vec<i64>,
    /// Whether it is a leaf that requires grad.
    pub requires_grad: bool,
    /// A dict of flags such as `conj` and `neg`, if there are any.
    pub metadata: Option<NodeId>,
}

impl TensorRecord {
    /// A contiguous tensor that is all of its storage.
    pub fn contiguous(dtype: &str, key: &str, location: &str, size: &[i64]) -> Self {
        let mut stride = vec![1i64; size.len()];
        for i in (1..size.len()).rev() {
            stride[i - 1] = stride[i].saturating_mul(size[i].max(1));
        }
        let numel = size.iter().fold(1i64, |n, &s| n.saturating_mul(s));
        let numel = u64::try_from(numel).unwrap_or(0);
        let (storage_type, storage_dtype, storage_numel) = match storage_type_of_dtype(dtype) {
            Some(storage_type) => (storage_type, dtype, numel),
            None => {
                let size = element_size(dtype).unwrap_or(1) as u64;
                ("UntypedStorage", "uint8", numel.saturating_mul(size))
            }
        };
        TensorRecord {
            storage: StorageRecord {
                storage_type: storage_type.to_owned(),
                dtype: storage_dtype.to_owned(),
                key: key.to_owned(),
                location: location.to_owned(),
                numel: storage_numel,
                view: None,
            },
            dtype: dtype.to_owned(),
            storage_offset: 0,
            size: size.to_vec(),
            stride,
            requires_grad: false,
            metadata: None,
        }
    }

    /// Checks that every element lies in the storage.
    fn check(&self) -> Result<()> {
        let outside = || {
            error!(
                Size,
                "a {} tensor of size {:?}, stride {:?} and storage offset {} does not fit its storage `{}` of {} {} \
                 elements",
                self.dtype,
                self.size,
                self.stride,
                self.storage_offset,
                self.storage.key,
                self.storage.numel,
                self.storage.dtype
            )
        };
        let negative = |values: &[i64]| values.iter().any(|&v| v < 0);
        if self.size.len() != self.stride.len()
            || negative(&self.size)
            || negative(&self.stride)
            || self.storage_offset < 0
        {
            return Err(outside());
        }
        if self.size.contains(&0) {
            return Ok(());
        }
        let last =
            self.size.iter().zip(&self.stride).try_fold(self.storage_offset, |last, (&size, &stride)| {
                last.checked_add((size - 1).checked_mul(stride)?)
            });
        let element_size = element_size(&self.dtype).ok_or_else(outside)? as u64;
        let storage_numel = match &self.storage.view {
            Some(view) => view.numel,
            None => self.storage.numel,
        };
        let storage_nbytes = StorageRecord { numel: storage_numel, ..self.storage.clone() }.nbytes()?;
        match last {
            Some(last) if (last as u64) < storage_nbytes / element_size => Ok(()),
            _ => Err(outside()),
        }
    }
}

impl Pickle {
    /// What a [`Value::PersistentId`] node says about a storage; `None` for any other node, and for a reference to
    /// something else (the source of a module, in old stream files).
    pub fn storage_record(&self, id: NodeId) -> Result<Option<StorageRecord>> {
        let Value::PersistentId(inner) = self.get(id) else {
            return Ok(None);
        };
        let bad = |what: &str| {
            error!(
                Unpickling,
                "a reference to a storage must be ('storage', class, key, location, numel): {what}"
            )
        };
        let Some(items) = self.as_sequence(*inner) else {
            return Ok(None);
        };
        if items.first().and_then(|&kind| self.as_str(kind)) != Some("storage") {
            return Ok(None);
        }
        let (class, key, location, numel, view) = match *items {
            [_, class, key, location, numel] => (class, key, location, numel, None),
            [_, class, key, location, numel, view] => (class, key, location, numel, Some(view)),
            _ => return Err(bad("it has another length")),
        };
        let (_, storage_type) = self.as_global(class).ok_or_else(|| bad("the class is not a global"))?;
        let dtype = dtype_of_storage_type(storage_type)
            .ok_or_else(|| bad(&format!("`{storage_type}` is no storage class")))?;
        let count = |id: NodeId| {
            self.as_int(id)
                .and_then(|n| u64::try_from(n).ok())
                .ok_or_else(|| bad("a count is not a non-negative int"))
        };
        let text = |id: NodeId| {
            let text = self.as_str(id).ok_or_else(|| bad("key and location must be str"))?;
            limits::check("bytes in the name of a storage", text.len(), MAX_NAME)?;
            Ok(text.to_owned())
        };
        let view = match view.map(|view| (view, self.get(view))) {
            None | Some((_, Value::None)) => None,
            Some((view, _)) => match self.as_sequence(view) {
                Some(&[key, offset, numel]) => {
                    Some(StorageView { key: text(key)?, offset: count(offset)?, numel: count(numel)? })
                }
                _ => return Err(bad("the view is not (key, offset, numel)")),
            },
        };
        let numel = count(numel)?;
        if let Some(view) = &view {
            let end = view.offset.checked_add(view.numel);
            if end.is_none_or(|end| end > numel) {
                return Err(error!(
                    Size,
                    "a view of elements {}.. ({} of them) does not fit its storage of {numel} elements",
                    view.offset,
                    view.numel
                ));
            }
        }
        Ok(Some(StorageRecord {
            storage_type: storage_type.to_owned(),
            dtype: dtype.to_owned(),
            key: text(key)?,
            location: text(location)?,
            numel,
            view,
        }))
    }

    /// What a call of `torch._utils._rebuild_tensor` (or `_v2`, `_v3`) says; `None` for any other node.
    ///
    /// The tensor is checked to lie in the storage as the pickle describes it; that the file has that many bytes is
    /// checked by [`Archive::storage_for`](crate::Archive::storage_for).
    pub fn tensor_record(&self, id: NodeId) -> Result<Option<TensorRecord>> {
        let Some(("torch._utils", name, args)) = self.as_call(id) else {
            return Ok(None);
        };
        let (head, dtype, metadata) = match (name, args.len()) {
            ("_rebuild_tensor", 4) => (args, None, None),
            ("_rebuild_tensor_v2", 6) => (args, None, None),
            ("_rebuild_tensor_v2", 7) => (args, None, Some(args[6])),
            ("_rebuild_tensor_v3", 7) => (args, Some(args[6]), None),
            ("_rebuild_tensor_v3", 8) => (args, Some(args[6]), Some(args[7])),
            ("_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3", n) => {
                return Err(error!(Unpickling, "{name} does not take {n} arguments"))
            }
            _ => return Ok(None),
        };
        let bad = |argument: &str, expected: &str, got: NodeId| {
            error!(
                Unpickling,
                "{name}: argument `{argument}` must be {expected}, got {}",
                self.get(got).type_name()
            )
        };
        let storage = self.storage_record(head[0])?.ok_or_else(|| bad("storage", "a storage", head[0]))?;
        let ints = |argument: &str, id: NodeId| -> Result<Vec<i64>> {
            let items = self.as_sequence(id).unwrap_or_default();
            limits::check("dimensions of a tensor", items.len(), MAX_DIM)?;
            self.as_sequence(id)
                .and_then(|items| items.iter().map(|&i| self.as_int(i)).collect())
                .ok_or_else(|| bad(argument, "a tuple of ints", id))
        };
        let dtype = match dtype {
            None => storage.dtype.clone(),
            Some(id) => match self.as_global(id) {
                Some(("torch", dtype)) if element_size(dtype).is_some() => dtype.to_owned(),
                _ => return Err(bad("dtype", "a torch.dtype", id)),
            },
        };
        let record = TensorRecord {
            dtype,
            storage_offset: self.as_int(head[1]).ok_or_else(|| bad("storage_offset", "an int", head[1]))?,
            size: ints("size", head[2])?,
            stride: ints("stride", head[3])?,
            requires_grad: match head.get(4).map(|&id| self.get(id)) {
                None => false,
                Some(&Value::Bool(flag)) => flag,
                Some(_) => return Err(bad("requires_grad", "a bool", head[4])),
            },
            metadata: metadata.filter(|&id| !matches!(self.get(id), Value::None)),
            storage,
        };
        record.check()?;
        Ok(Some(record))
    }

    /// Every storage that the pickle refers to, once per node that refers to it.
    pub fn storage_records(&self) -> impl Iterator<Item = Result<StorageRecord>> + '_ {
        self.ids().filter_map(|id| self.storage_record(id).transpose())
    }
}
