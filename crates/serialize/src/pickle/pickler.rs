//! Writes pickles of protocol 2, opcode for opcode as CPython does.

use std::collections::HashMap;

use super::compat;
use super::number;
use super::opcode::Opcode;
use super::value::{Construct, NodeId, Object, Pickle, Value};
use crate::error::{error, Result};
use crate::memory::{check_copies, reserve, reserve_entry};

/// Items between a mark and the opcode that consumes them.
const BATCH: usize = 1000;

/// Writes protocol 2, the protocol of `torch.save`.
#[derive(Clone, Debug, Default)]
pub struct Pickler {}

impl Pickler {
    /// A writer.
    pub fn new() -> Self {
        Pickler {}
    }

    /// The bytes of `pickle`.
    pub fn dump(&self, pickle: &Pickle) -> Result<Vec<u8>> {
        let mut writer = Writer {
            pickle,
            out: Vec::new(),
            work: vec![Task::Save(pickle.root())],
            memo: HashMap::new(),
            globals: HashMap::new(),
            latin1: None,
            memo_len: 0,
            open: HashMap::new(),
        };
        writer.op(Opcode::Proto);
        writer.out.push(2);
        while let Some(task) = writer.work.pop() {
            writer.run(task)?;
        }
        writer.op(Opcode::Stop);
        Ok(writer.out)
    }
}

/// A task writes fewer bytes than this, but for texts, big numbers and names.
const TASK: usize = 64;

/// What remains to be written; a stack of these stands in for recursion.
#[derive(Clone, Copy)]
enum Task {
    Save(NodeId),
    Op(Opcode),
    /// `PUT` of an object that has no node of its own.
    PutAnonymous,
    /// The opcodes that close the node, once its parts are written.
    CloseTuple(NodeId),
    CloseSet(NodeId),
    ConstructObject(NodeId),
    /// The items of the node from an index on.
    Items(NodeId, usize),
}

struct Writer<'a> {
    pickle: &'a Pickle,
    out: Vec<u8>,
    work: Vec<Task>,
    memo: HashMap<NodeId, u32>,
    /// Memo entries of globals, which are one object in Python however many nodes name them.
    globals: HashMap<(&'a str, &'a str), u32>,
    /// The encoding name that every `bytes` shares.
    latin1: Option<u32>,
    memo_len: u32,
    /// For nodes that are memoized only when complete: how many nodes the memo had at their last entry. Entering again
    /// without a new one in between means that the value contains itself in a way Python cannot build.
    open: HashMap<NodeId, usize>,
}

impl<'a> Writer<'a> {
    fn run(&mut self, task: Task) -> Result<()> {
        // What a task writes and enters, but for texts and items.
        reserve(&mut self.out, TASK)?;
        reserve(&mut self.work, 8)?;
        reserve_entry(&mut self.memo)?;
        reserve_entry(&mut self.globals)?;
        reserve_entry(&mut self.open)?;
        match task {
            Task::Save(id) => self.save(id),
            Task::Op(opcode) => {
                self.op(opcode);
                Ok(())
            }
            Task::PutAnonymous => self.put().map(drop),
            Task::CloseTuple(id) => self.close_tuple(id),
            Task::CloseSet(id) => {
                self.op(Opcode::Tuple1);
                self.put()?;
                self.close_reduce(id, Opcode::Reduce).map(drop)
            }
            Task::ConstructObject(id) => self.construct_object(id),
            Task::Items(id, start) => {
                reserve(&mut self.work, 2 * BATCH)?;
                self.items(id, start);
                Ok(())
            }
        }
    }

    fn save(&mut self, id: NodeId) -> Result<()> {
        if let Some(&index) = self.memo.get(&id) {
            self.get(index);
            return Ok(());
        }
        match self.pickle.get(id) {
            Value::None => self.op(Opcode::None),
            Value::Bool(true) => self.op(Opcode::NewTrue),
            Value::Bool(false) => self.op(Opcode::NewFalse),
            Value::Int(value) => self.int(*value),
            Value::BigInt(bytes) => self.long(number::minimal(bytes))?,
            Value::Float(value) => self.float(*value),
            Value::Complex(re, im) => {
                self.global("builtins", "complex")?;
                self.float(*re);
                self.float(*im);
                self.op(Opcode::Tuple2);
                self.put()?;
                self.op(Opcode::Reduce);
                self.put_node(id)?;
            }
            Value::Str(text) => {
                self.str(text.as_bytes())?;
                self.put_node(id)?;
            }
            Value::SurrogateStr(bytes) => {
                self.str(bytes)?;
                self.put_node(id)?;
            }
            Value::Bytes(bytes) => {
                self.bytes(bytes)?;
                self.put_node(id)?;
            }
            Value::ByteArray(bytes) => {
                self.global("builtins", "bytearray")?;
                if bytes.is_empty() {
                    self.op(Opcode::EmptyTuple);
                } else {
                    self.bytes(bytes)?;
                    self.put()?;
                    self.op(Opcode::Tuple1);
                    self.put()?;
                }
                self.op(Opcode::Reduce);
                self.put_node(id)?;
            }
            Value::List(_) => {
                self.op(Opcode::EmptyList);
                self.put_node(id)?;
                self.work.push(Task::Items(id, 0));
            }
            Value::Dict(_) => {
                self.op(Opcode::EmptyDict);
                self.put_node(id)?;
                self.work.push(Task::Items(id, 0));
            }
            Value::Tuple(items) if items.is_empty() => self.op(Opcode::EmptyTuple),
            Value::Tuple(items) => {
                self.enter(id)?;
                self.work.push(Task::CloseTuple(id));
                self.work.extend(items.iter().rev().map(|&i| Task::Save(i)));
                if items.len() > 3 {
                    self.op(Opcode::Mark);
                }
            }
            Value::Set(_) | Value::FrozenSet(_) => {
                self.enter(id)?;
                let name = self.pickle.get(id).type_name();
                self.global("builtins", name)?;
                self.op(Opcode::EmptyList);
                self.work.push(Task::CloseSet(id));
                self.work.push(Task::Items(id, 0));
                self.work.push(Task::PutAnonymous);
            }
            Value::Global { module, name } => self.global(module, name)?,
            Value::Object(object) => {
                self.enter(id)?;
                if object.construct == Construct::NewObjEx {
                    return Err(error!(
                        Pickling,
                        "an object made by `__new__` with keyword arguments cannot be written with protocol 2"
                    ));
                }
                self.work.push(Task::ConstructObject(id));
                self.work.push(Task::Save(object.args));
                self.work.push(Task::Save(object.callable));
            }
            Value::PersistentId(inner) => {
                // Not memoized and so not entered: a cycle through it passes a tuple, which is.
                if matches!(self.pickle.get(*inner), Value::PersistentId(_)) {
                    return Err(error!(
                        Pickling,
                        "a persistent id must be a plain value, got another persistent id"
                    ));
                }
                self.work.push(Task::Op(Opcode::BinPersId));
                self.work.push(Task::Save(*inner));
            }
        }
        Ok(())
    }

    fn enter(&mut self, id: NodeId) -> Result<()> {
        if self.open.insert(id, self.memo.len()) == Some(self.memo.len()) {
            return Err(error!(
                Pickling,
                "a {} contains itself through nothing but immutable values",
                self.pickle.get(id).type_name()
            ));
        }
        Ok(())
    }

    fn close_tuple(&mut self, id: NodeId) -> Result<()> {
        let count = match self.pickle.get(id) {
            Value::Tuple(items) => items.len(),
            _ => 0,
        };
        // The tuple was reached again from inside and is complete by now: keep that one.
        if let Some(&index) = self.memo.get(&id) {
            if count > 3 {
                self.op(Opcode::PopMark);
            } else {
                (0..count).for_each(|_| self.op(Opcode::Pop));
            }
            self.get(index);
            return Ok(());
        }
        self.op(match count {
            1 => Opcode::Tuple1,
            2 => Opcode::Tuple2,
            3 => Opcode::Tuple3,
            _ => Opcode::Tuple,
        });
        self.put_node(id)
    }

    /// Ends a call; false when the object was completed from inside and nothing may be added to it.
    fn close_reduce(&mut self, id: NodeId, opcode: Opcode) -> Result<bool> {
        self.op(opcode);
        if let Some(&index) = self.memo.get(&id) {
            self.op(Opcode::Pop);
            self.get(index);
            return Ok(false);
        }
        self.put_node(id)?;
        Ok(true)
    }

    fn construct_object(&mut self, id: NodeId) -> Result<()> {
        let Some(object) = self.object(id) else {
            return Ok(());
        };
        let opcode = match object.construct {
            Construct::Reduce => Opcode::Reduce,
            Construct::NewObj | Construct::NewObjEx => Opcode::NewObj,
        };
        if self.close_reduce(id, opcode)? {
            if let Some(state) = object.state {
                self.work.push(Task::Op(Opcode::Build));
                self.work.push(Task::Save(state));
            }
            self.work.push(Task::Items(id, 0));
        }
        Ok(())
    }

    fn object(&self, id: NodeId) -> Option<&'a Object> {
        match self.pickle.get(id) {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// One batch of items of `id`. `list` and `dict` themselves put a mark before every batch unless they hold a single
    /// item; other objects are iterated, and there any last single item goes without one.
    fn items(&mut self, id: NodeId, start: usize) {
        let none: &'a [NodeId] = &[];
        let (list, dict): (&'a [NodeId], &'a [(NodeId, NodeId)]) = match self.pickle.get(id) {
            Value::List(items) | Value::Set(items) | Value::FrozenSet(items) => (items, &[]),
            Value::Dict(items) => (none, items),
            Value::Object(object) => (&object.list_items, &object.dict_items),
            _ => return,
        };
        // An object may have both; the list items come first.
        let exact = self.object(id).is_none();
        let (start, total, is_dict) = if start < list.len() {
            (start, list.len(), false)
        } else {
            (start - list.len(), dict.len(), true)
        };
        let count = (total - start).min(BATCH);
        if count == 0 {
            return;
        }
        let end = start + count;
        self.work.push(Task::Items(id, if is_dict { list.len() + end } else { end }));
        let single = if exact { total == 1 } else { count == 1 };
        self.work.push(Task::Op(match (is_dict, single) {
            (false, true) => Opcode::Append,
            (false, false) => Opcode::Appends,
            (true, true) => Opcode::SetItem,
            (true, false) => Opcode::SetItems,
        }));
        if is_dict {
            for &(key, value) in dict[start..end].iter().rev() {
                self.work.push(Task::Save(value));
                self.work.push(Task::Save(key));
            }
        } else {
            let items = list[start..end].iter().rev();
            self.work.extend(items.map(|&item| Task::Save(item)));
        }
        if !single {
            self.op(Opcode::Mark);
        }
    }

    fn op(&mut self, opcode: Opcode) {
        self.out.push(opcode as u8);
    }

    fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.op(Opcode::BinInt1);
            self.out.push(byte);
        } else if let Ok(short) = u16::try_from(value) {
            self.op(Opcode::BinInt2);
            self.out.extend_from_slice(&short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(value) {
            self.op(Opcode::BinInt);
            self.out.extend_from_slice(&int.to_le_bytes());
        } else {
            let bytes = value.to_le_bytes();
            let bytes = number::minimal(&bytes);
            self.op(Opcode::Long1);
            self.out.push(bytes.len() as u8);
            self.out.extend_from_slice(bytes);
        }
    }

    fn long(&mut self, bytes: &[u8]) -> Result<()> {
        if let Ok(nbytes) = u8::try_from(bytes.len()) {
            self.op(Opcode::Long1);
            self.out.push(nbytes);
        } else {
            let nbytes = i32::try_from(bytes.len())
                .map_err(|_| error!(Pickling, "an int of {} bytes is too large", bytes.len()))?;
            self.op(Opcode::Long4);
            self.out.extend_from_slice(&nbytes.to_le_bytes());
        }
        reserve(&mut self.out, bytes.len() + TASK)?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn float(&mut self, value: f64) {
        self.op(Opcode::BinFloat);
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    fn str(&mut self, utf8: &[u8]) -> Result<()> {
        let nbytes = u32::try_from(utf8.len())
            .map_err(|_| error!(Pickling, "a str of {} bytes is too long for protocol 2", utf8.len()))?;
        self.op(Opcode::BinUnicode);
        reserve(&mut self.out, utf8.len() + TASK)?;
        self.out.extend_from_slice(&nbytes.to_le_bytes());
        self.out.extend_from_slice(utf8);
        Ok(())
    }

    /// `bytes` as the call that makes them, up to and with its `REDUCE`.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            self.global("builtins", "bytes")?;
            self.op(Opcode::EmptyTuple);
        } else {
            self.global("_codecs", "encode")?;
            check_copies(bytes.len())?;
            let text: String = bytes.iter().map(|&b| char::from(b)).collect();
            self.str(text.as_bytes())?;
            self.put()?;
            match self.latin1 {
                Some(index) => self.get(index),
                None => {
                    self.str(b"latin1")?;
                    self.latin1 = Some(self.put()?);
                }
            }
            self.op(Opcode::Tuple2);
            self.put()?;
        }
        self.op(Opcode::Reduce);
        Ok(())
    }

    fn global<'b: 'a>(&mut self, module: &'b str, name: &'b str) -> Result<()> {
        if let Some(&index) = self.globals.get(&(module, name)) {
            self.get(index);
            return Ok(());
        }
        let (old_module, old_name) = compat::to_python2(module, name);
        for part in [old_module, old_name] {
            if part.is_empty() || part.contains('\n') {
                return Err(error!(Pickling, "`{module}.{name}` is not the name of a global"));
            }
        }
        self.op(Opcode::Global);
        reserve(&mut self.out, old_module.len() + old_name.len() + TASK)?;
        for part in [old_module, old_name] {
            self.out.extend_from_slice(part.as_bytes());
            self.out.push(b'\n');
        }
        let index = self.put()?;
        self.globals.insert((module, name), index);
        Ok(())
    }

    fn put_node(&mut self, id: NodeId) -> Result<()> {
        let index = self.put()?;
        self.memo.insert(id, index);
        Ok(())
    }

    fn put(&mut self) -> Result<u32> {
        let index = self.memo_len;
        self.memo_len =
            index.checked_add(1).ok_or_else(|| error!(Pickling, "more objects than the memo can count"))?;
        match u8::try_from(index) {
            Ok(byte) => {
                self.op(Opcode::BinPut);
                self.out.push(byte);
            }
            Err(_) => {
                self.op(Opcode::LongBinPut);
                self.out.extend_from_slice(&index.to_le_bytes());
            }
        }
        Ok(index)
    }

    fn get(&mut self, index: u32) {
        match u8::try_from(index) {
            Ok(byte) => {
                self.op(Opcode::BinGet);
                self.out.push(byte);
            }
            Err(_) => {
                self.op(Opcode::LongBinGet);
                self.out.extend_from_slice(&index.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
#[path = "pickler_tests.rs"]
mod tests;
