//! Reads pickles of protocols 0 to 5 into an arena, without calling anything.

use std::collections::HashMap;

use super::allow_list::GlobalPolicy;
use super::compat;
use super::number;
use super::opcode::Opcode;
use super::text;
use super::value::{Construct, NodeId, Object, Pickle, Value};
use crate::error::{error, Result, SerializeError};
use crate::limits::{self, Limits};
use crate::memory::{check_copies, reserve, reserve_entry};

/// Protocols above this are unknown.
const HIGHEST_PROTOCOL: u8 = 5;

/// Immutable values that occur often share one node each, which also bounds what one byte of a file can allocate.
const NONE: NodeId = NodeId(0);
const TRUE: NodeId = NodeId(1);
const FALSE: NodeId = NodeId(2);
const EMPTY_TUPLE: NodeId = NodeId(3);

/// Reads pickles under a policy and limits.
#[derive(Clone, Debug, Default)]
pub struct Unpickler {
    policy: GlobalPolicy,
    limits: Limits,
}

impl Unpickler {
    /// A reader that lets only PyTorch's weights-only globals through.
    pub fn new() -> Self {
        Unpickler::default()
    }

    /// Which globals to let through.
    #[must_use]
    pub fn policy(mut self, policy: GlobalPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Bounds to keep.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads the pickle at the start of `input`. What follows it is ignored, as in Python.
    pub fn load(&self, input: &[u8]) -> Result<Pickle> {
        Ok(self.load_prefix(input)?.0)
    }

    /// Reads the pickle at the start of `input` and says how many bytes it took.
    pub fn load_prefix(&self, input: &[u8]) -> Result<(Pickle, usize)> {
        let mut machine = Machine {
            input,
            position: 0,
            nodes: vec![Value::None, Value::Bool(true), Value::Bool(false), Value::Tuple(Vec::new())],
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            fold_budget: input.len().saturating_mul(2),
            policy: &self.policy,
            limits: &self.limits,
        };
        loop {
            let start = machine.position;
            match machine.step() {
                Ok(None) => {}
                Ok(Some(root)) => {
                    let position = machine.position;
                    return Ok((Pickle::from_parts(machine.nodes, root), position));
                }
                Err(error) => return Err(error.at(start as u64)),
            }
        }
    }
}

struct Machine<'a> {
    input: &'a [u8],
    position: usize,
    nodes: Vec<Value>,
    stack: Vec<NodeId>,
    /// Stack heights at the open marks.
    marks: Vec<usize>,
    memo: HashMap<usize, NodeId>,
    /// Items that may still be copied when a call is folded into a value. A real pickle has written every one of them out and
    /// copies it twice at most (a `bytearray` of protocol 2 is text, then bytes, then itself), so it cannot need more than twice
    /// its length, while a hostile one could copy the same list again and again.
    fold_budget: usize,
    policy: &'a GlobalPolicy,
    limits: &'a Limits,
}

impl<'a> Machine<'a> {
    /// Executes one opcode; the root after `STOP`.
    fn step(&mut self) -> Result<Option<NodeId>> {
        // An opcode adds one of each at most, but for items, which come from the stack.
        reserve(&mut self.nodes, 1)?;
        reserve(&mut self.stack, 1)?;
        reserve(&mut self.marks, 1)?;
        reserve_entry(&mut self.memo)?;
        let byte = self.byte()?;
        let opcode = Opcode::from_byte(byte).ok_or_else(|| {
            error!(Unpickling, "byte {byte:#04x} is no pickle opcode; the pickle is damaged")
        })?;
        self.execute(opcode).map_err(|e| match opcode {
            Opcode::Global | Opcode::StackGlobal | Opcode::Inst => e,
            _ => SerializeError::new(e.kind(), format!("{}: {}", opcode.name(), e.message())),
        })
    }

    fn execute(&mut self, opcode: Opcode) -> Result<Option<NodeId>> {
        match opcode {
            Opcode::Stop => return self.pop().map(Some),
            Opcode::Proto => {
                let protocol = self.byte()?;
                if protocol > HIGHEST_PROTOCOL {
                    return Err(error!(
                        Unpickling,
                        "expected a protocol of at most {HIGHEST_PROTOCOL}, got {protocol}"
                    ));
                }
            }
            Opcode::Frame => {
                let nbytes = self.length8()?;
                let left = self.input.len() - self.position;
                if nbytes > left {
                    return Err(error!(
                        Unpickling,
                        "expected a frame of {nbytes} bytes, got {left} before the end"
                    ));
                }
            }
            Opcode::Mark => {
                limits::check("nesting", self.marks.len() + 1, self.limits.max_depth)?;
                self.marks.push(self.stack.len());
            }
            Opcode::Pop => {
                // Python drops a mark when there is nothing above it.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            Opcode::PopMark => {
                let start = self.pop_mark()?;
                self.stack.truncate(start);
            }
            Opcode::Dup => {
                let top = self.top()?;
                self.stack.push(top);
            }

            Opcode::None => self.stack.push(NONE),
            Opcode::NewTrue => self.stack.push(TRUE),
            Opcode::NewFalse => self.stack.push(FALSE),
            Opcode::Int => match self.line()? {
                b"00" => self.stack.push(FALSE),
                b"01" => self.stack.push(TRUE),
                line => {
                    let value = number::int_from_text(line, self.limits)?;
                    self.push(value)?;
                }
            },
            Opcode::Long => {
                let line = self.line()?;
                let value = number::int_from_text(line, self.limits)?;
                self.push(value)?;
            }
            Opcode::BinInt => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(value.into()))?;
            }
            Opcode::BinInt1 => {
                let value = self.byte()?;
                self.push(Value::Int(value.into()))?;
            }
            Opcode::BinInt2 => {
                let value = u16::from_le_bytes(self.array()?);
                self.push(Value::Int(value.into()))?;
            }
            Opcode::Long1 | Opcode::Long4 => {
                let nbytes = match opcode {
                    Opcode::Long1 => self.byte()? as usize,
                    _ => self.length4()?,
                };
                let value = number::int_from_le_bytes(self.take(nbytes)?);
                self.push(value)?;
            }
            Opcode::Float => {
                let line = self.line()?;
                let value = std::str::from_utf8(line)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
                    .ok_or_else(|| {
                        error!(
                            Unpickling,
                            "expected a float, got `{}`",
                            String::from_utf8_lossy(&line[..line.len().min(40)])
                        )
                    })?;
                self.push(Value::Float(value))?;
            }
            Opcode::BinFloat => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(value))?;
            }

            Opcode::String => {
                let line = self.line()?;
                self.push(text::python2_string(text::bytes_from_repr(line)?))?;
            }
            Opcode::BinString => {
                let nbytes = self.length4()?;
                let bytes = self.string(nbytes)?.to_vec();
                self.push(text::python2_string(bytes))?;
            }
            Opcode::ShortBinString => {
                let nbytes = self.byte()? as usize;
                let bytes = self.string(nbytes)?.to_vec();
                self.push(text::python2_string(bytes))?;
            }
            Opcode::Unicode => {
                let line = self.line()?;
                self.push(text::str_from_raw_unicode_escape(line)?)?;
            }
            Opcode::BinUnicode | Opcode::ShortBinUnicode | Opcode::BinUnicode8 => {
                let nbytes = match opcode {
                    Opcode::ShortBinUnicode => self.byte()? as usize,
                    Opcode::BinUnicode => self.length4()?,
                    _ => self.length8()?,
                };
                let value = text::str_from_utf8(self.string(nbytes)?)?;
                self.push(value)?;
            }
            Opcode::BinBytes | Opcode::ShortBinBytes | Opcode::BinBytes8 => {
                let nbytes = match opcode {
                    Opcode::ShortBinBytes => self.byte()? as usize,
                    Opcode::BinBytes => self.length4()?,
                    _ => self.length8()?,
                };
                let bytes = self.string(nbytes)?.to_vec();
                self.push(Value::Bytes(bytes))?;
            }
            Opcode::ByteArray8 => {
                let nbytes = self.length8()?;
                let bytes = self.string(nbytes)?.to_vec();
                self.push(Value::ByteArray(bytes))?;
            }

            Opcode::EmptyList => self.push(Value::List(Vec::new()))?,
            Opcode::EmptyDict => self.push(Value::Dict(Vec::new()))?,
            Opcode::EmptySet => self.push(Value::Set(Vec::new()))?,
            Opcode::EmptyTuple => self.stack.push(EMPTY_TUPLE),
            Opcode::List => {
                let items = self.pop_items()?;
                self.push(Value::List(items))?;
            }
            Opcode::Tuple => {
                let items = self.pop_items()?;
                self.push_tuple(items)?;
            }
            Opcode::Tuple1 | Opcode::Tuple2 | Opcode::Tuple3 => {
                let count = (opcode as u8 - Opcode::Tuple1 as u8) as usize + 1;
                let start = self.reserve(count)?;
                let items = self.stack.split_off(start);
                self.push_tuple(items)?;
            }
            Opcode::Dict => {
                let items = pairs(self.pop_items()?)?;
                self.push(Value::Dict(items))?;
            }
            Opcode::FrozenSet => {
                let items = self.pop_items()?;
                self.push(Value::FrozenSet(items))?;
            }
            Opcode::Append => {
                let item = self.pop()?;
                let list = self.list_target()?;
                reserve(list, 1)?;
                list.push(item);
            }
            Opcode::Appends => {
                let items = self.pop_items()?;
                let list = self.list_target()?;
                reserve(list, items.len())?;
                list.extend(items);
            }
            Opcode::SetItem => {
                let value = self.pop()?;
                let key = self.pop()?;
                let dict = self.dict_target()?;
                reserve(dict, 1)?;
                dict.push((key, value));
            }
            Opcode::SetItems => {
                let items = pairs(self.pop_items()?)?;
                let dict = self.dict_target()?;
                reserve(dict, items.len())?;
                dict.extend(items);
            }
            Opcode::AddItems => {
                let items = self.pop_items()?;
                let top = self.top()?;
                match &mut self.nodes[top.index()] {
                    Value::Set(set) => {
                        reserve(set, items.len())?;
                        set.extend(items);
                    }
                    other => {
                        return Err(error!(Unpickling, "expected a set to add to, got {}", other.type_name()))
                    }
                }
            }

            Opcode::Get | Opcode::BinGet | Opcode::LongBinGet => {
                let index = match opcode {
                    Opcode::Get => self.memo_index()?,
                    Opcode::BinGet => self.byte()? as usize,
                    _ => self.length4()?,
                };
                let id = *self
                    .memo
                    .get(&index)
                    .ok_or_else(|| error!(Unpickling, "memo entry {index} was never stored"))?;
                self.stack.push(id);
            }
            Opcode::Put | Opcode::BinPut | Opcode::LongBinPut | Opcode::Memoize => {
                let index = match opcode {
                    Opcode::Put => self.memo_index()?,
                    Opcode::BinPut => self.byte()? as usize,
                    Opcode::LongBinPut => self.length4()?,
                    _ => self.memo.len(),
                };
                let top = self.top()?;
                self.memo.insert(index, top);
                limits::check("memo entries", self.memo.len(), self.limits.max_memo)?;
            }

            Opcode::Global => {
                let (module, name) = (self.text_line()?, self.text_line()?);
                self.push_global(module, name)?;
            }
            Opcode::StackGlobal => {
                let (name, module) = (self.pop()?, self.pop()?);
                let take = |id: NodeId| match &self.nodes[id.index()] {
                    Value::Str(text) => Ok(text.clone()),
                    other => {
                        Err(error!(Unpickling, "STACK_GLOBAL: expected a str, got {}", other.type_name()))
                    }
                };
                let (module, name) = (take(module)?, take(name)?);
                self.push_global(&module, &name)?;
            }
            Opcode::Reduce => {
                let args = self.pop()?;
                let callable = self.pop()?;
                self.push_object(Construct::Reduce, callable, args, None)?;
            }
            Opcode::NewObj => {
                let args = self.pop()?;
                let class = self.pop()?;
                self.push_object(Construct::NewObj, class, args, None)?;
            }
            Opcode::NewObjEx => {
                let kwargs = self.pop()?;
                let args = self.pop()?;
                let class = self.pop()?;
                self.push_object(Construct::NewObjEx, class, args, Some(kwargs))?;
            }
            Opcode::Inst => {
                let (module, name) = (self.text_line()?, self.text_line()?);
                let items = self.pop_items()?;
                self.push_global(module, name)?;
                let class = self.pop()?;
                self.push_tuple(items)?;
                let args = self.pop()?;
                self.push_object(Construct::Reduce, class, args, None)?;
            }
            Opcode::Obj => {
                let items = self.pop_items()?;
                let Some((&class, items)) = items.split_first() else {
                    return Err(error!(Unpickling, "expected a class after the mark"));
                };
                self.push_tuple(items.to_vec())?;
                let args = self.pop()?;
                self.push_object(Construct::Reduce, class, args, None)?;
            }
            Opcode::Build => {
                let state = self.pop()?;
                let top = self.top()?;
                match &mut self.nodes[top.index()] {
                    Value::Object(object) if object.state.is_none() => object.state = Some(state),
                    Value::Object(_) => return Err(error!(Unpickling, "an object is given its state twice")),
                    other => {
                        return Err(error!(
                            Unpickling,
                            "expected an object to give a state to, got {}",
                            other.type_name()
                        ))
                    }
                }
            }
            Opcode::PersId => {
                let line = self.text_line()?.to_owned();
                if !self.policy.is_any() {
                    return Err(error!(
                        Unpickling,
                        "expected a tuple that describes a storage, got the id `{line}`"
                    ));
                }
                self.push(Value::Str(line))?;
                let id = self.pop()?;
                self.push(Value::PersistentId(id))?;
            }
            Opcode::BinPersId => {
                let id = self.pop()?;
                self.check_persistent_id(id)?;
                self.push(Value::PersistentId(id))?;
            }

            Opcode::Ext1 | Opcode::Ext2 | Opcode::Ext4 | Opcode::NextBuffer | Opcode::ReadOnlyBuffer => {
                return Err(error!(
                    Unpickling,
                    "this opcode refers to data outside the file and is not read; save the object again with \
                     `pickle_protocol=2`"
                ))
            }
        }
        Ok(None)
    }

    fn push(&mut self, value: Value) -> Result<()> {
        limits::check("nodes", self.nodes.len() + 1, self.limits.max_nodes)?;
        let id = u32::try_from(self.nodes.len())
            .map(NodeId)
            .map_err(|_| error!(Limit, "more nodes than can be counted in 32 bits"))?;
        self.nodes.push(value);
        self.stack.push(id);
        Ok(())
    }

    fn push_tuple(&mut self, items: Vec<NodeId>) -> Result<()> {
        if items.is_empty() {
            self.stack.push(EMPTY_TUPLE);
            return Ok(());
        }
        self.push(Value::Tuple(items))
    }

    fn push_global(&mut self, module: &str, name: &str) -> Result<()> {
        let (module, name) = compat::to_python3(module, name);
        let (module, name) = self.policy.resolve(module, name)?;
        self.push(Value::Global { module: module.into(), name: name.into() })
    }

    fn push_object(
        &mut self,
        construct: Construct,
        callable: NodeId,
        args: NodeId,
        kwargs: Option<NodeId>,
    ) -> Result<()> {
        let is_global = matches!(self.nodes[callable.index()], Value::Global { .. });
        if !is_global && !self.policy.is_any() {
            return Err(error!(
                Unpickling,
                "expected a global to call, got {}",
                self.nodes[callable.index()].type_name()
            ));
        }
        if !matches!(self.nodes[args.index()], Value::Tuple(_)) {
            return Err(error!(
                Unpickling,
                "expected a tuple of arguments, got {}",
                self.nodes[args.index()].type_name()
            ));
        }
        if construct == Construct::Reduce {
            if let Some(value) = self.fold(callable, args)? {
                return self.push(value);
            }
        }
        let mut object = Object::new(construct, callable, args);
        object.kwargs = kwargs;
        self.push(Value::Object(Box::new(object)))
    }

    /// The calls by which protocol 2 spells values that have no opcode there: `set([…])`, `_codecs.encode(…)` and the
    /// like become the value. Anything unusual stays a call.
    fn fold(&mut self, callable: NodeId, args: NodeId) -> Result<Option<Value>> {
        let (Value::Global { module, name }, Value::Tuple(args)) =
            (&self.nodes[callable.index()], &self.nodes[args.index()])
        else {
            return Ok(None);
        };
        let arg = |i: usize| args.get(i).map(|id| &self.nodes[id.index()]);
        let value = match (&**module, &**name, args.len()) {
            ("_codecs", "encode", 2) => match (arg(0), arg(1)) {
                (Some(Value::Str(text)), Some(Value::Str(encoding))) if encoding == "latin1" => {
                    text::latin1_encode(text).map(Value::Bytes)
                }
                _ => None,
            },
            ("builtins", "bytes", 0) => Some(Value::Bytes(Vec::new())),
            ("builtins", "bytearray", 0) => Some(Value::ByteArray(Vec::new())),
            ("builtins", "bytearray", 1) => match arg(0) {
                Some(Value::Bytes(bytes)) => Some(Value::ByteArray(bytes.clone())),
                _ => None,
            },
            ("builtins", "complex", 2) => match (arg(0), arg(1)) {
                (Some(&Value::Float(re)), Some(&Value::Float(im))) => Some(Value::Complex(re, im)),
                _ => None,
            },
            ("builtins", "set", 1) => match arg(0) {
                Some(Value::List(items)) => Some(Value::Set(items.clone())),
                _ => None,
            },
            ("builtins", "frozenset", 1) => match arg(0) {
                Some(Value::List(items)) => Some(Value::FrozenSet(items.clone())),
                _ => None,
            },
            _ => None,
        };
        let copied = match &value {
            Some(Value::Bytes(bytes) | Value::ByteArray(bytes)) => bytes.len(),
            Some(Value::Set(items) | Value::FrozenSet(items)) => items.len(),
            _ => 0,
        };
        self.fold_budget = self.fold_budget.checked_sub(copied).ok_or_else(|| {
            error!(Limit, "the pickle copies more items than it contains; it is not from a real checkpoint")
        })?;
        Ok(value)
    }

    /// Weights-only pickles refer to storages and to nothing else.
    fn check_persistent_id(&self, id: NodeId) -> Result<()> {
        if self.policy.is_any() {
            return Ok(());
        }
        let kind = match &self.nodes[id.index()] {
            Value::Tuple(items) => items.first().map(|first| &self.nodes[first.index()]),
            other => {
                return Err(error!(
                    Unpickling,
                    "expected a tuple that describes a storage, got {}",
                    other.type_name()
                ))
            }
        };
        match kind {
            Some(Value::Str(kind)) if kind == "storage" => Ok(()),
            Some(Value::Str(kind)) => {
                Err(error!(Unpickling, "only references to a `storage` are read, got `{kind}`"))
            }
            _ => Err(error!(Unpickling, "only references to a `storage` are read")),
        }
    }

    fn list_target(&mut self) -> Result<&mut Vec<NodeId>> {
        let any = self.policy.is_any();
        let top = self.top()?;
        let node = &mut self.nodes[top.index()];
        let got = node.type_name();
        match node {
            Value::List(items) => Ok(items),
            Value::Object(object) if any => Ok(&mut object.list_items),
            _ => Err(error!(Unpickling, "expected a list to append to, got {got}")),
        }
    }

    fn dict_target(&mut self) -> Result<&mut Vec<(NodeId, NodeId)>> {
        let top = self.top()?;
        let dict_like = self.policy.is_any()
            || match &self.nodes[top.index()] {
                Value::Object(object) => matches!(
                    &self.nodes[object.callable.index()],
                    Value::Global { module, name }
                        if &**module == "collections" && matches!(&**name, "OrderedDict" | "Counter")
                ),
                _ => false,
            };
        let node = &mut self.nodes[top.index()];
        let got = node.type_name();
        match node {
            Value::Dict(items) => Ok(items),
            Value::Object(object) if dict_like => Ok(&mut object.dict_items),
            _ => {
                Err(error!(Unpickling, "expected a dict, OrderedDict or Counter to set items of, got {got}"))
            }
        }
    }

    /// The height that must stay: values below the last mark belong to an outer construct.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    /// Checks that `count` values are above the last mark and says where they start.
    fn reserve(&self, count: usize) -> Result<usize> {
        match self.stack.len().checked_sub(count) {
            Some(start) if start >= self.floor() => Ok(start),
            _ => Err(error!(
                Unpickling,
                "expected {count} value(s) on the stack, got {}",
                self.stack.len() - self.floor()
            )),
        }
    }

    fn top(&self) -> Result<NodeId> {
        Ok(self.stack[self.reserve(1)?])
    }

    fn pop(&mut self) -> Result<NodeId> {
        let start = self.reserve(1)?;
        let id = self.stack[start];
        self.stack.truncate(start);
        Ok(id)
    }

    fn pop_mark(&mut self) -> Result<usize> {
        self.marks.pop().ok_or_else(|| error!(Unpickling, "there is no open mark"))
    }

    /// The values above the last mark, which is dropped.
    fn pop_items(&mut self) -> Result<Vec<NodeId>> {
        let start = self.pop_mark()?;
        check_copies((self.stack.len() - start) * size_of::<NodeId>())?;
        Ok(self.stack.split_off(start))
    }

    fn take(&mut self, nbytes: usize) -> Result<&'a [u8]> {
        let left = self.input.len() - self.position;
        if nbytes > left {
            return Err(error!(Truncated, "the pickle ends early: expected {nbytes} bytes, got {left}"));
        }
        let start = self.position;
        self.position += nbytes;
        Ok(&self.input[start..self.position])
    }

    fn string(&mut self, nbytes: usize) -> Result<&'a [u8]> {
        limits::check("bytes in a string", nbytes, self.limits.max_string)?;
        let bytes = self.take(nbytes)?;
        check_copies(nbytes)?;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn length4(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn length8(&mut self) -> Result<usize> {
        let nbytes = u64::from_le_bytes(self.array()?);
        usize::try_from(nbytes)
            .map_err(|_| error!(Unpickling, "a length of {nbytes} bytes is not addressable"))
    }

    /// Up to the next newline, which is consumed and not part of it.
    fn line(&mut self) -> Result<&'a [u8]> {
        let rest = &self.input[self.position..];
        let end = rest
            .iter()
            .position(|&b| b == b'\n')
            .ok_or_else(|| error!(Truncated, "the pickle ends in the middle of a line"))?;
        limits::check("bytes in a line", end, self.limits.max_string)?;
        check_copies(end)?;
        self.position += end + 1;
        let line = &rest[..end];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn text_line(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.line()?).map_err(|_| error!(Unpickling, "a name in the pickle is not UTF-8"))
    }

    fn memo_index(&mut self) -> Result<usize> {
        let line = self.line()?;
        std::str::from_utf8(line)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| error!(Unpickling, "expected the number of a memo entry"))
    }
}

fn pairs(items: Vec<NodeId>) -> Result<Vec<(NodeId, NodeId)>> {
    if !items.len().is_multiple_of(2) {
        return Err(error!(Unpickling, "expected keys and values in turn, got {} values", items.len()));
    }
    Ok(items.chunks_exact(2).map(|kv| (kv[0], kv[1])).collect())
}

#[cfg(test)]
#[path = "unpickler_tests.rs"]
mod tests;
