//! Puts values together for writing.

use std::collections::HashMap;

use super::records::{StorageRecord, TensorRecord};
use super::value::{Construct, NodeId, Object, Pickle, Value};
use crate::dtype::{element_size, storage_type_of_dtype};
use crate::error::{error, Result};

/// Collects nodes; every method returns the id of the node it made, and using an id twice is what sharing is.
///
/// Lists and dicts can be made empty and filled later, which is how a value comes to contain itself.
#[derive(Clone, Debug, Default)]
pub struct PickleBuilder {
    nodes: Vec<Value>,
    globals: HashMap<(String, String), NodeId>,
    interned: HashMap<String, NodeId>,
}

impl PickleBuilder {
    /// An empty arena.
    pub fn new() -> Self {
        PickleBuilder::default()
    }

    /// The pickle with `root` as its value. An error when an id belongs to another arena and is out of range here.
    pub fn finish(self, root: NodeId) -> Result<Pickle> {
        Pickle::new(self.nodes, root)
    }

    /// Any value.
    pub fn push(&mut self, value: Value) -> NodeId {
        // 2^32 nodes would need more than 160 GB; saturating keeps `finish` responsible for the error.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(value);
        id
    }

    /// `None`.
    pub fn none(&mut self) -> NodeId {
        self.push(Value::None)
    }

    /// `bool`.
    pub fn bool(&mut self, value: bool) -> NodeId {
        self.push(Value::Bool(value))
    }

    /// `int`.
    pub fn int(&mut self, value: i64) -> NodeId {
        self.push(Value::Int(value))
    }

    /// `int` from little-endian two's complement of any length.
    pub fn int_from_le_bytes(&mut self, bytes: &[u8]) -> NodeId {
        self.push(super::number::int_from_le_bytes(bytes))
    }

    /// `float`.
    pub fn float(&mut self, value: f64) -> NodeId {
        self.push(Value::Float(value))
    }

    /// `complex`.
    pub fn complex(&mut self, re: f64, im: f64) -> NodeId {
        self.push(Value::Complex(re, im))
    }

    /// A new `str` object.
    pub fn str(&mut self, text: impl Into<String>) -> NodeId {
        self.push(Value::Str(text.into()))
    }

    /// The `str` of this text that every use shares, as Python's interned literals are.
    pub fn interned(&mut self, text: &str) -> NodeId {
        if let Some(&id) = self.interned.get(text) {
            return id;
        }
        let id = self.str(text);
        self.interned.insert(text.to_owned(), id);
        id
    }

    /// `bytes`.
    pub fn bytes(&mut self, bytes: impl Into<Vec<u8>>) -> NodeId {
        self.push(Value::Bytes(bytes.into()))
    }

    /// `bytearray`.
    pub fn bytearray(&mut self, bytes: impl Into<Vec<u8>>) -> NodeId {
        self.push(Value::ByteArray(bytes.into()))
    }

    /// `list`.
    pub fn list(&mut self, items: Vec<NodeId>) -> NodeId {
        self.push(Value::List(items))
    }

    /// `tuple`.
    pub fn tuple(&mut self, items: Vec<NodeId>) -> NodeId {
        self.push(Value::Tuple(items))
    }

    /// `dict`.
    pub fn dict(&mut self, items: Vec<(NodeId, NodeId)>) -> NodeId {
        self.push(Value::Dict(items))
    }

    /// `set`.
    pub fn set(&mut self, items: Vec<NodeId>) -> NodeId {
        self.push(Value::Set(items))
    }

    /// `frozenset`.
    pub fn frozenset(&mut self, items: Vec<NodeId>) -> NodeId {
        self.push(Value::FrozenSet(items))
    }

    /// Appends to a node that [`list`](Self::list) made, or to the list part of an object.
    pub fn append(&mut self, list: NodeId, item: NodeId) -> Result<()> {
        match self.nodes.get_mut(list.index()) {
            Some(Value::List(items)) => items.push(item),
            Some(Value::Object(object)) => object.list_items.push(item),
            other => return Err(unexpected("a list", other)),
        }
        Ok(())
    }

    /// Sets an item of a node that [`dict`](Self::dict) or [`ordered_dict`](Self::ordered_dict) made.
    pub fn set_item(&mut self, dict: NodeId, key: NodeId, value: NodeId) -> Result<()> {
        match self.nodes.get_mut(dict.index()) {
            Some(Value::Dict(items)) => items.push((key, value)),
            Some(Value::Object(object)) => object.dict_items.push((key, value)),
            other => return Err(unexpected("a dict", other)),
        }
        Ok(())
    }

    /// Gives an object the state that `__setstate__` or the update of `__dict__` receives.
    pub fn set_state(&mut self, object: NodeId, state: NodeId) -> Result<()> {
        match self.nodes.get_mut(object.index()) {
            Some(Value::Object(object)) => object.state = Some(state),
            other => return Err(unexpected("an object", other)),
        }
        Ok(())
    }

    /// A class or function.
    pub fn global(&mut self, module: &str, name: &str) -> NodeId {
        let key = (module.to_owned(), name.to_owned());
        if let Some(&id) = self.globals.get(&key) {
            return id;
        }
        let id = self.push(Value::Global { module: module.into(), name: name.into() });
        self.globals.insert(key, id);
        id
    }

    /// The result of calling the global with `args`.
    pub fn call(&mut self, module: &str, name: &str, args: Vec<NodeId>) -> NodeId {
        let callable = self.global(module, name);
        self.object(Construct::Reduce, callable, args)
    }

    /// An object of `callable` with `args`.
    pub fn object(&mut self, construct: Construct, callable: NodeId, args: Vec<NodeId>) -> NodeId {
        let args = self.tuple(args);
        self.push(Value::Object(Box::new(Object::new(construct, callable, args))))
    }

    /// A reference to something outside the pickle.
    pub fn persistent_id(&mut self, id: NodeId) -> NodeId {
        self.push(Value::PersistentId(id))
    }

    /// `collections.OrderedDict`.
    pub fn ordered_dict(&mut self, items: Vec<(NodeId, NodeId)>) -> NodeId {
        let id = self.call("collections", "OrderedDict", Vec::new());
        if let Some(Value::Object(object)) = self.nodes.get_mut(id.index()) {
            object.dict_items = items;
        }
        id
    }

    /// A tuple of integers.
    pub fn int_tuple(&mut self, values: &[i64]) -> NodeId {
        let items = values.iter().map(|&v| self.int(v)).collect();
        self.tuple(items)
    }

    /// `torch.Size`.
    pub fn size(&mut self, sizes: &[i64]) -> NodeId {
        let tuple = self.int_tuple(sizes);
        self.call("torch", "Size", vec![tuple])
    }

    /// A `torch.dtype` by its name without `torch.`.
    pub fn dtype(&mut self, name: &str) -> NodeId {
        self.global("torch", name)
    }

    /// `torch.device`.
    pub fn device(&mut self, kind: &str, index: Option<i64>) -> NodeId {
        let mut args = vec![self.str(kind)];
        args.extend(index.map(|i| self.int(i)));
        self.call("torch", "device", args)
    }

    /// A `torch.layout` by its full name (`"torch.strided"`).
    pub fn layout(&mut self, full_name: &str) -> NodeId {
        let name = self.str(full_name);
        self.call("torch.serialization", "_get_layout", vec![name])
    }

    /// A storage, as the reference that the persistent id of PyTorch is.
    pub fn storage(&mut self, record: &StorageRecord) -> NodeId {
        let module = match record.storage_type.as_str() {
            "UntypedStorage" | "TypedStorage" => "torch.storage",
            _ => "torch",
        };
        let items = vec![
            self.interned("storage"),
            self.global(module, &record.storage_type),
            self.interned(&record.key),
            self.interned(&record.location),
            self.int(i64::try_from(record.numel).unwrap_or(i64::MAX)),
        ];
        let id = self.tuple(items);
        self.persistent_id(id)
    }

    /// A strided tensor: `_rebuild_tensor_v2`, or `_rebuild_tensor_v3` for a dtype without a storage class.
    pub fn tensor(&mut self, record: &TensorRecord) -> NodeId {
        let mut storage = record.storage.clone();
        let typed = storage_type_of_dtype(&record.dtype);
        match typed {
            Some(storage_type) => storage.storage_type = storage_type.to_owned(),
            None if storage.storage_type != "UntypedStorage" => {
                let size = element_size(&record.dtype).unwrap_or(1) as u64;
                storage.numel = storage.numel.saturating_mul(size);
                storage.storage_type = "UntypedStorage".to_owned();
            }
            None => {}
        }
        let mut args = vec![
            self.storage(&storage),
            self.int(record.storage_offset),
            self.int_tuple(&record.size),
            self.int_tuple(&record.stride),
            self.bool(record.requires_grad),
            self.ordered_dict(Vec::new()),
        ];
        let name = match typed {
            Some(_) => "_rebuild_tensor_v2",
            None => {
                args.push(self.dtype(&record.dtype));
                "_rebuild_tensor_v3"
            }
        };
        args.extend(record.metadata);
        self.call("torch._utils", name, args)
    }

    /// `torch.nn.Parameter` around a tensor.
    pub fn parameter(&mut self, data: NodeId, requires_grad: bool) -> NodeId {
        let args = vec![data, self.bool(requires_grad), self.ordered_dict(Vec::new())];
        self.call("torch._utils", "_rebuild_parameter", args)
    }
}

fn unexpected(expected: &str, got: Option<&mut Value>) -> crate::error::SerializeError {
    let got = got.map_or("nothing", |value| value.type_name());
    error!(Pickling, "expected {expected}, got {got}")
}
