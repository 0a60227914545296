//! `SymBool`: a boolean that may be symbolic.

use std::any::Any;
use std::fmt;
use std::panic::Location;

use crate::core::sym_node::{SymNode, SymNodeImpl};
use crate::{Error, Result};

/// A boolean that may be symbolic.
#[derive(Clone)]
pub enum SymBool {
    /// A known value.
    Bool(bool),
    /// An expression.
    Node(SymNode),
}

impl SymBool {
    /// A symbolic boolean.
    pub fn from_node(node: SymNode) -> Result<SymBool> {
        if !node.is_bool() {
            return Err(Error::type_(format!("SymBool: expected a boolean node, got {node}")));
        }
        Ok(match node.constant_bool() {
            Some(value) => SymBool::Bool(value),
            None => SymBool::Node(node),
        })
    }

    /// True if the value is an expression.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, SymBool::Node(_))
    }

    /// The value, if it is known without a guard.
    pub fn maybe_as_bool(&self) -> Option<bool> {
        match self {
            SymBool::Bool(value) => Some(*value),
            SymBool::Node(node) => node.constant_bool(),
        }
    }

    /// The node, made if there is none.
    pub fn to_node(&self) -> SymNode {
        match self {
            SymBool::Bool(value) => SymNode::new(ConstantBoolNode(*value)),
            SymBool::Node(node) => node.clone(),
        }
    }

    fn with_node(
        &self,
        f: impl FnOnce(&SymNode, &str, u32) -> Result<bool>,
        at: &Location<'_>,
    ) -> Result<bool> {
        match self {
            SymBool::Bool(value) => Ok(*value),
            SymBool::Node(node) => f(node, at.file(), at.line()),
        }
    }

    /// The value; the trace records that it depends on it.
    #[track_caller]
    pub fn guard_bool(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.guard_bool(file, line), Location::caller())
    }

    /// As `guard_bool`, and sizes of 0 and 1 may be treated like any other size.
    #[track_caller]
    pub fn guard_size_oblivious(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.guard_size_oblivious(file, line), Location::caller())
    }

    /// As `guard_bool`, but false where deciding would need data.
    #[track_caller]
    pub fn guard_or_false(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.guard_or_false(file, line), Location::caller())
    }

    /// As `guard_bool`, but true where deciding would need data.
    #[track_caller]
    pub fn guard_or_true(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.guard_or_true(file, line), Location::caller())
    }

    /// True only if the value is known to be true without a guard.
    #[track_caller]
    pub fn statically_known_true(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.statically_known_true(file, line), Location::caller())
    }

    /// Takes the value for true, to be checked at run time; the answer is false if it is known to be false.
    #[track_caller]
    pub fn expect_true(&self) -> Result<bool> {
        self.with_node(|node, file, line| node.expect_true(file, line), Location::caller())
    }

    /// Both.
    pub fn sym_and(&self, other: &SymBool) -> Result<SymBool> {
        match (self, other) {
            (SymBool::Bool(a), b) => Ok(if *a { b.clone() } else { SymBool::Bool(false) }),
            (a, SymBool::Bool(b)) => Ok(if *b { a.clone() } else { SymBool::Bool(false) }),
            (SymBool::Node(a), SymBool::Node(b)) => SymBool::from_node(a.sym_and(b)?),
        }
    }

    /// Either.
    pub fn sym_or(&self, other: &SymBool) -> Result<SymBool> {
        match (self, other) {
            (SymBool::Bool(a), b) => Ok(if *a { SymBool::Bool(true) } else { b.clone() }),
            (a, SymBool::Bool(b)) => Ok(if *b { SymBool::Bool(true) } else { a.clone() }),
            (SymBool::Node(a), SymBool::Node(b)) => SymBool::from_node(a.sym_or(b)?),
        }
    }

    /// The negation.
    pub fn sym_not(&self) -> Result<SymBool> {
        match self {
            SymBool::Bool(value) => Ok(SymBool::Bool(!value)),
            SymBool::Node(node) => SymBool::from_node(node.sym_not()?),
        }
    }
}

impl From<bool> for SymBool {
    fn from(value: bool) -> SymBool {
        SymBool::Bool(value)
    }
}

/// Equality that never guards: equal known values, or the same node.
impl PartialEq for SymBool {
    fn eq(&self, other: &SymBool) -> bool {
        match (self, other) {
            (SymBool::Bool(a), SymBool::Bool(b)) => a == b,
            (SymBool::Node(a), SymBool::Node(b)) => a.ptr_eq(b),
            _ => false,
        }
    }
}

impl fmt::Display for SymBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymBool::Bool(true) => f.write_str("True"),
            SymBool::Bool(false) => f.write_str("False"),
            SymBool::Node(node) => write!(f, "{node}"),
        }
    }
}

impl fmt::Debug for SymBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A boolean constant as a node.
#[derive(Debug)]
pub struct ConstantBoolNode(pub bool);

impl SymNodeImpl for ConstantBoolNode {
    fn is_bool(&self) -> bool {
        true
    }
    fn is_constant(&self) -> bool {
        true
    }
    fn is_symbolic(&self) -> bool {
        false
    }
    fn has_hint(&self) -> bool {
        true
    }
    fn wrap_bool(&self, value: bool) -> Result<SymNode> {
        Ok(SymNode::new(ConstantBoolNode(value)))
    }
    fn guard_bool(&self, _file: &str, _line: u32) -> Result<bool> {
        Ok(self.0)
    }
    fn constant_bool(&self) -> Option<bool> {
        Some(self.0)
    }
    fn str(&self) -> String {
        SymBool::Bool(self.0).to_string()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_decide_without_nodes() {
        let (t, f) = (SymBool::from(true), SymBool::from(false));
        assert_eq!(t.sym_and(&f).unwrap(), f);
        assert_eq!(t.sym_or(&f).unwrap(), t);
        assert_eq!(f.sym_not().unwrap(), t);
        assert!(t.guard_bool().unwrap() && !f.guard_or_true().unwrap());
        assert_eq!(t.to_string(), "True");
    }

    #[test]
    fn constants_collapse_to_values() {
        let node = SymNode::new(ConstantBoolNode(true));
        let b = SymBool::from_node(node).unwrap();
        assert!(!b.is_symbolic());
        assert_eq!(b.maybe_as_bool(), Some(true));
        let int = SymNode::new(crate::core::sym_node::ConstantIntNode(1));
        assert!(SymBool::from_node(int).is_err());
    }
}
