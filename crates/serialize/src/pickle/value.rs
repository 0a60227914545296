//! The values of a pickle, as an arena.
//!
//! Objects that a pickle mentions twice are one node here, lists and dicts may contain themselves, and dropping or
//! walking a tree of any depth uses no call stack.

use std::collections::HashMap;

use crate::error::{error, Result};

/// The index of a node in its [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The position in [`Pickle::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One Python value; what it contains is named by id.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `bool`.
    Bool(bool),
    /// An `int` of at most 64 bits.
    Int(i64),
    /// Any other `int`: two's complement, little-endian, as short as possible.
    BigInt(Vec<u8>),
    /// `float`.
    Float(f64),
    /// `complex`.
    Complex(f64, f64),
    /// `str`.
    Str(String),
    /// A `str` with lone surrogates, in the extension of UTF-8 that Python calls `surrogatepass`.
    SurrogateStr(Vec<u8>),
    /// `bytes`.
    Bytes(Vec<u8>),
    /// `bytearray`.
    ByteArray(Vec<u8>),
    /// `list`.
    List(Vec<NodeId>),
    /// `tuple`.
    Tuple(Vec<NodeId>),
    /// `dict`, in order; a later equal key replaces an earlier one.
    Dict(Vec<(NodeId, NodeId)>),
    /// `set`.
    Set(Vec<NodeId>),
    /// `frozenset`.
    FrozenSet(Vec<NodeId>),
    /// A class or function by name. PyTorch's modules are spelled `torch…`.
    Global {
        /// The module.
        module: Box<str>,
        /// The name in it; with dots for a nested one.
        name: Box<str>,
    },
    /// The result of calling something, with what was then put into it.
    Object(Box<Object>),
    /// A reference to something outside the pickle: for checkpoints, the tuple that describes a storage.
    PersistentId(NodeId),
}

/// How an [`Object`] comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Construct {
    /// `callable(*args)`.
    Reduce,
    /// `callable.__new__(callable, *args)`.
    NewObj,
    /// `callable.__new__(callable, *args, **kwargs)`.
    NewObjEx,
}

/// An object and the steps that make it, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// How it is made from `callable` and `args`.
    pub construct: Construct,
    /// Usually a [`Value::Global`].
    pub callable: NodeId,
    /// A [`Value::Tuple`].
    pub args: NodeId,
    /// A [`Value::Dict`], for [`Construct::NewObjEx`].
    pub kwargs: Option<NodeId>,
    /// Values to append.
    pub list_items: Vec<NodeId>,
    /// Items to set.
    pub dict_items: Vec<(NodeId, NodeId)>,
    /// What `__setstate__` or the update of `__dict__` receives.
    pub state: Option<NodeId>,
}

impl Object {
    /// An object with nothing put into it yet.
    pub fn new(construct: Construct, callable: NodeId, args: NodeId) -> Self {
        Object {
            construct,
            callable,
            args,
            kwargs: None,
            list_items: Vec::new(),
            dict_items: Vec::new(),
            state: None,
        }
    }
}

/// An arena of values and its root.
#[derive(Clone, Debug)]
pub struct Pickle {
    nodes: Vec<Value>,
    root: NodeId,
}

impl Pickle {
    /// Checks that every id is in range, and that a tuple, frozenset, persistent id or call comes after the nodes it is
    /// made from. Lists, dicts, sets and what is put into an object later may refer to any node.
    pub fn new(nodes: Vec<Value>, root: NodeId) -> Result<Self> {
        let count = nodes.len();
        let check = |id: NodeId| {
            if id.index() < count {
                return Ok(());
            }
            Err(error!(Pickling, "node {} does not exist, there are {count}", id.0))
        };
        check(root)?;
        for (index, node) in nodes.iter().enumerate() {
            node.for_each_child(check)?;
            let before = |id: NodeId| {
                if id.index() < index {
                    return Ok(());
                }
                Err(error!(Pickling, "a {} is made from a value that does not exist yet", node.type_name()))
            };
            match node {
                Value::Object(object) => {
                    before(object.callable)?;
                    before(object.args)?;
                    object.kwargs.map_or(Ok(()), before)?;
                }
                Value::Tuple(_) | Value::FrozenSet(_) | Value::PersistentId(_) => {
                    node.for_each_child(before)?;
                }
                _ => {}
            }
        }
        Ok(Pickle { nodes, root })
    }

    /// For callers that only hand out ids of existing nodes.
    pub(crate) fn from_parts(nodes: Vec<Value>, root: NodeId) -> Self {
        Pickle { nodes, root }
    }

    /// The value that was pickled.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// All nodes, by id. Some may be unreachable from the root.
    pub fn nodes(&self) -> &[Value] {
        &self.nodes
    }

    /// The node `id`, which must come from this pickle.
    pub fn get(&self, id: NodeId) -> &Value {
        &self.nodes[id.index()]
    }

    /// All ids, in the order in which the pickle creates the nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The text of a `str`, or of a Python 2 string that is ASCII.
    pub fn as_str(&self, id: NodeId) -> Option<&str> {
        match self.get(id) {
            Value::Str(s) => Some(s),
            Value::Bytes(b) if b.is_ascii() => std::str::from_utf8(b).ok(),
            _ => None,
        }
    }

    /// The value of a small `int`.
    pub fn as_int(&self, id: NodeId) -> Option<i64> {
        match *self.get(id) {
            Value::Int(i) => Some(i),
            _ => None,
        }
    }

    /// The items of a `tuple` or `list`.
    pub fn as_sequence(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.get(id) {
            Value::Tuple(items) | Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Module and name of a global.
    pub fn as_global(&self, id: NodeId) -> Option<(&str, &str)> {
        match self.get(id) {
            Value::Global { module, name } => Some((module, name)),
            _ => None,
        }
    }

    /// The items of a `dict`, or of an object that is filled like one (`OrderedDict`).
    pub fn dict_items(&self, id: NodeId) -> Option<&[(NodeId, NodeId)]> {
        match self.get(id) {
            Value::Dict(items) => Some(items),
            Value::Object(object) => Some(&object.dict_items),
            _ => None,
        }
    }

    /// The value under the string `key`.
    pub fn dict_get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        self.dict_items(id)?.iter().rev().find(|(k, _)| self.as_str(*k) == Some(key)).map(|&(_, v)| v)
    }

    /// The callable's name and the arguments, for a node that calls a global.
    pub fn as_call(&self, id: NodeId) -> Option<(&str, &str, &[NodeId])> {
        let Value::Object(object) = self.get(id) else {
            return None;
        };
        let (module, name) = self.as_global(object.callable)?;
        Some((module, name, self.as_sequence(object.args)?))
    }

    /// Whether both describe the same values with the same sharing. Floats are compared by their bits; the identity of
    /// immutable values without contents does not count, as it does not in Python.
    pub fn same_as(&self, other: &Pickle) -> bool {
        let mut pairs: HashMap<NodeId, NodeId> = HashMap::new();
        let mut inverse: HashMap<NodeId, NodeId> = HashMap::new();
        let mut work = vec![(self.root, other.root)];
        while let Some((a, b)) = work.pop() {
            let (left, right) = (self.get(a), other.get(b));
            if !left.same_shape(right) {
                return false;
            }
            let mut left_children = Vec::new();
            let mut right_children = Vec::new();
            left.for_each(|c| left_children.push(c));
            right.for_each(|c| right_children.push(c));
            if left_children.is_empty() && !left.is_mutable() {
                continue;
            }
            match (pairs.insert(a, b), inverse.insert(b, a)) {
                (None, None) => work.extend(left_children.into_iter().zip(right_children)),
                (Some(seen), Some(_)) if seen == b => {}
                _ => return false,
            }
        }
        true
    }
}

impl Value {
    /// Calls `f` with every node this one contains, in order.
    pub fn for_each_child<E>(
        &self,
        mut f: impl FnMut(NodeId) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Value::List(items) | Value::Tuple(items) | Value::Set(items) | Value::FrozenSet(items) => {
                items.iter().try_for_each(|&id| f(id))
            }
            Value::Dict(items) => items.iter().try_for_each(|&(k, v)| {
                f(k)?;
                f(v)
            }),
            Value::Object(object) => {
                f(object.callable)?;
                f(object.args)?;
                object.kwargs.map_or(Ok(()), &mut f)?;
                object.list_items.iter().try_for_each(|&id| f(id))?;
                for &(k, v) in &object.dict_items {
                    f(k)?;
                    f(v)?;
                }
                object.state.map_or(Ok(()), f)
            }
            Value::PersistentId(id) => f(*id),
            _ => Ok(()),
        }
    }

    /// [`for_each_child`](Self::for_each_child) for an `f` that cannot fail.
    pub(crate) fn for_each(&self, mut f: impl FnMut(NodeId)) {
        let Ok(()) = self.for_each_child(|id| {
            f(id);
            Ok::<(), std::convert::Infallible>(())
        });
    }

    /// What Python calls the type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::BigInt(_) => "int",
            Value::Float(_) => "float",
            Value::Complex(..) => "complex",
            Value::Str(_) | Value::SurrogateStr(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::ByteArray(_) => "bytearray",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Set(_) => "set",
            Value::FrozenSet(_) => "frozenset",
            Value::Global { .. } => "global",
            Value::Object(_) => "object",
            Value::PersistentId(_) => "persistent id",
        }
    }

    fn is_mutable(&self) -> bool {
        matches!(
            self,
            Value::ByteArray(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Object(_)
        )
    }

    /// Equal but for the ids of what is inside.
    fn same_shape(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Complex(a, b), Value::Complex(c, d)) => {
                (a.to_bits(), b.to_bits()) == (c.to_bits(), d.to_bits())
            }
            (Value::List(a), Value::List(b))
            | (Value::Tuple(a), Value::Tuple(b))
            | (Value::Set(a), Value::Set(b))
            | (Value::FrozenSet(a), Value::FrozenSet(b)) => a.len() == b.len(),
            (Value::Dict(a), Value::Dict(b)) => a.len() == b.len(),
            (Value::Object(a), Value::Object(b)) => {
                a.construct == b.construct
                    && a.kwargs.is_some() == b.kwargs.is_some()
                    && a.list_items.len() == b.list_items.len()
                    && a.dict_items.len() == b.dict_items.len()
                    && a.state.is_some() == b.state.is_some()
            }
            (Value::PersistentId(_), Value::PersistentId(_)) => true,
            _ => self == other,
        }
    }
}
