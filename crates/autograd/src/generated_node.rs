//! [`GeneratedNode`]: the backward node of every operator that has a [`DerivativeEntry`].

use std::any::Any;
use std::borrow::Cow;

use c10::{bail, Result, Tensor};
use dispatch::{Dispatcher, IValue};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::backward_ctx::BackwardCtx;
use crate::derivative_entry::{DerivativeEntry, SavedArg};
use crate::edge::VariableList;
use crate::node::{Node, NodeFunction};
use crate::saved_meta::SavedMeta;
use crate::saved_variable::{SavedValue, SavedVariable, SavedVariableRef};

/// What one [`SavedArg`] kept.
pub(crate) enum Slot {
    /// Nothing: no wanted gradient needs it.
    Unneeded,
    /// A tensor. The lock is held only to copy the handle out.
    Variable(Mutex<SavedVariable>),
    /// A list of tensors.
    List(Box<[Mutex<SavedVariable>]>),
    /// An argument that isn't a tensor.
    Value(IValue),
    /// A fact about a tensor.
    Meta(SavedMeta),
}

/// Most formulas need one or two things.
pub(crate) type Slots = SmallVec<[Slot; 2]>;

/// The function of a node that a table entry describes.
pub(crate) struct GeneratedNode {
    pub(crate) entry: &'static DerivativeEntry,
    pub(crate) slots: Slots,
    /// For entries with `Tensor[]` arguments: where each differentiable argument's edges begin, and the end. Empty when
    /// every argument has one edge.
    pub(crate) edge_starts: Box<[u32]>,
}

impl GeneratedNode {
    /// The edges of the `k`-th differentiable argument.
    #[inline]
    pub(crate) fn edges_of(&self, k: usize) -> std::ops::Range<usize> {
        if self.edge_starts.is_empty() {
            k..k + 1
        } else {
            self.edge_starts[k] as usize..self.edge_starts[k + 1] as usize
        }
    }

    pub(crate) fn saved_cell(&self, slot: usize, index: usize) -> Option<&Mutex<SavedVariable>> {
        match self.slots.get(slot)? {
            Slot::Variable(cell) if index == 0 => Some(cell),
            Slot::List(cells) => cells.get(index),
            _ => None,
        }
    }

    /// The name under which users see a slot: the argument's or return's.
    fn slot_name(&self, saved: &SavedArg) -> Option<String> {
        let (name, overload) = self.entry.op.split_once('.').unwrap_or((self.entry.op, ""));
        let op = Dispatcher::find_schema(name, overload)?;
        let (schema, info) = (op.schema().ok()?, op.info().ok()?);
        Some(match *saved {
            SavedArg::Input { arg, .. } | SavedArg::Value { arg } => schema.arguments.get(arg)?.name.clone(),
            SavedArg::Output { ret, .. } if schema.returns.is_empty() => {
                schema.arguments.get(*info.mutated.get(ret)?)?.name.clone()
            }
            SavedArg::Output { ret, .. } => match schema.returns.get(ret)?.name.as_str() {
                "" if schema.returns.len() == 1 => "result".to_owned(),
                "" => format!("result{ret}"),
                name => name.to_owned(),
            },
            SavedArg::Meta { arg, what, .. } => {
                format!("{}_{}", schema.arguments.get(arg)?.name, what.shown())
            }
        })
    }

    fn slot_by_name(&self, name: &str) -> Option<usize> {
        self.entry.saved.iter().position(|saved| self.slot_name(saved).is_some_and(|n| n == name))
    }

    fn slot_value(&self, node: &Node, slot: &Slot) -> Result<SavedValue> {
        Ok(match slot {
            Slot::Unneeded => SavedValue::None,
            Slot::Variable(cell) => {
                let saved = cell.lock().clone();
                saved.unpack(Some(node))?.map_or(SavedValue::None, SavedValue::Tensor)
            }
            Slot::List(cells) => {
                let unpack = |cell: &Mutex<SavedVariable>| {
                    let saved = cell.lock().clone();
                    saved.unpack(Some(node))
                };
                SavedValue::TensorList(cells.iter().map(unpack).collect::<Result<_>>()?)
            }
            Slot::Value(value) => SavedValue::Value(value.clone()),
            Slot::Meta(SavedMeta::SymInts(values)) => SavedValue::SymSizes(values.to_vec()),
            Slot::Meta(meta) => SavedValue::Meta(meta.clone()),
        })
    }
}

impl NodeFunction for GeneratedNode {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.entry.node_name)
    }

    fn apply(&self, node: &Node, grads: VariableList) -> Result<VariableList> {
        if grads.len() < node.num_inputs() {
            bail!(
                Runtime,
                "{}: expected {} gradients, got {}",
                self.entry.node_name,
                node.num_inputs(),
                grads.len()
            );
        }
        let none = || SmallVec::from_elem(None, node.num_outputs());
        if grads.iter().all(Option::is_none) {
            return Ok(none());
        }
        let mut ctx = BackwardCtx::new(node, self, &grads, none());
        (self.entry.backward)(&mut ctx)?;
        Ok(ctx.into_outputs())
    }

    fn release_variables(&self) {
        for slot in &self.slots {
            let cells = match slot {
                Slot::Variable(cell) => std::slice::from_ref(cell),
                Slot::List(cells) => cells,
                _ => continue,
            };
            for cell in cells {
                let released = {
                    let mut saved = cell.lock();
                    let released = saved.clone();
                    saved.reset_data();
                    released
                };
                drop(released);
            }
        }
    }

    fn saved_attributes(&self) -> Vec<String> {
        self.entry.saved.iter().filter_map(|saved| self.slot_name(saved)).collect()
    }

    fn saved_attribute(&self, node: &Node, name: &str) -> Option<Result<SavedValue>> {
        let slot = self.slot_by_name(name)?;
        Some(self.slot_value(node, self.slots.get(slot)?))
    }

    fn raw_saved(&self, node: &Node, name: &str) -> Option<Vec<SavedVariableRef>> {
        let slot = self.slot_by_name(name)?;
        let count = match self.slots.get(slot)? {
            Slot::Variable(_) => 1,
            Slot::List(cells) => cells.len(),
            _ => return None,
        };
        Some((0..count).map(|index| SavedVariableRef::new(node.clone(), slot, index)).collect())
    }

    fn visit_saved(&self, visit: &mut dyn FnMut(&Tensor)) {
        for slot in &self.slots {
            match slot {
                Slot::Variable(cell) => {
                    if let Some(tensor) = cell.try_lock().as_ref().and_then(|saved| saved.peek()) {
                        visit(tensor);
                    }
                }
                Slot::List(cells) => {
                    for cell in cells {
                        if let Some(tensor) = cell.try_lock().as_ref().and_then(|saved| saved.peek()) {
                            visit(tensor);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
