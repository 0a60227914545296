//! `SymFloat`: a float that may be symbolic.

use std::fmt;
use std::panic::Location;

use crate::core::sym_bool::SymBool;
use crate::core::sym_node::{SymNode, SymNodeImpl};
use crate::{Error, Result};

/// A float that may be symbolic.
#[derive(Clone)]
pub enum SymFloat {
    /// A known value.
    Float(f64),
    /// An expression.
    Node(SymNode),
}

impl SymFloat {
    /// A symbolic float.
    pub fn from_node(node: SymNode) -> Result<SymFloat> {
        if !node.is_float() {
            return Err(Error::type_(format!("SymFloat: expected a float node, got {node}")));
        }
        Ok(SymFloat::Node(node))
    }

    /// True if the value is an expression.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, SymFloat::Node(_))
    }

    /// The value, if it is known without a guard.
    pub fn maybe_as_float(&self) -> Option<f64> {
        match self {
            SymFloat::Float(value) => Some(*value),
            SymFloat::Node(_) => None,
        }
    }

    /// The value; the trace records that it depends on it.
    #[track_caller]
    pub fn guard_float(&self) -> Result<f64> {
        match self {
            SymFloat::Float(value) => Ok(*value),
            SymFloat::Node(node) => {
                let caller = Location::caller();
                node.guard_float(caller.file(), caller.line())
            }
        }
    }

    fn arithmetic(
        &self,
        other: &SymFloat,
        floats: fn(f64, f64) -> f64,
        nodes: fn(&dyn SymNodeImpl, &SymNode) -> Result<SymNode>,
    ) -> Result<SymFloat> {
        match (self, other) {
            (SymFloat::Float(a), SymFloat::Float(b)) => Ok(SymFloat::Float(floats(*a, *b))),
            (SymFloat::Node(a), b) => SymFloat::from_node(nodes(&**a, &b.wrap_node(a)?)?),
            (a, SymFloat::Node(b)) => SymFloat::from_node(nodes(&*a.wrap_node(b)?, b)?),
        }
    }

    fn comparison(
        &self,
        other: &SymFloat,
        floats: fn(&f64, &f64) -> bool,
        nodes: fn(&dyn SymNodeImpl, &SymNode) -> Result<SymNode>,
    ) -> Result<SymBool> {
        match (self, other) {
            (SymFloat::Float(a), SymFloat::Float(b)) => Ok(SymBool::Bool(floats(a, b))),
            (SymFloat::Node(a), b) => SymBool::from_node(nodes(&**a, &b.wrap_node(a)?)?),
            (a, SymFloat::Node(b)) => SymBool::from_node(nodes(&*a.wrap_node(b)?, b)?),
        }
    }

    fn wrap_node(&self, base: &SymNode) -> Result<SymNode> {
        match self {
            SymFloat::Float(value) => base.wrap_float(*value),
            SymFloat::Node(node) => Ok(node.clone()),
        }
    }

    /// `self + other`.
    pub fn sym_add(&self, other: &SymFloat) -> Result<SymFloat> {
        self.arithmetic(other, |a, b| a + b, |a, b| a.add(b))
    }

    /// `self - other`.
    pub fn sym_sub(&self, other: &SymFloat) -> Result<SymFloat> {
        self.arithmetic(other, |a, b| a - b, |a, b| a.sub(b))
    }

    /// `self * other`.
    pub fn sym_mul(&self, other: &SymFloat) -> Result<SymFloat> {
        self.arithmetic(other, |a, b| a * b, |a, b| a.mul(b))
    }

    /// `self / other`.
    pub fn sym_truediv(&self, other: &SymFloat) -> Result<SymFloat> {
        self.arithmetic(other, |a, b| a / b, |a, b| a.truediv(b))
    }

    /// `-self`.
    pub fn sym_neg(&self) -> Result<SymFloat> {
        match self {
            SymFloat::Float(value) => Ok(SymFloat::Float(-value)),
            SymFloat::Node(node) => SymFloat::from_node(node.neg()?),
        }
    }

    /// `self == other`.
    pub fn sym_eq(&self, other: &SymFloat) -> Result<SymBool> {
        self.comparison(other, f64::eq, |a, b| a.eq(b))
    }

    /// `self < other`.
    pub fn sym_lt(&self, other: &SymFloat) -> Result<SymBool> {
        self.comparison(other, f64::lt, |a, b| a.lt(b))
    }

    /// `self <= other`.
    pub fn sym_le(&self, other: &SymFloat) -> Result<SymBool> {
        self.comparison(other, f64::le, |a, b| a.le(b))
    }
}

impl From<f64> for SymFloat {
    fn from(value: f64) -> SymFloat {
        SymFloat::Float(value)
    }
}

/// Equality that never guards: equal known values, or the same node.
impl PartialEq for SymFloat {
    fn eq(&self, other: &SymFloat) -> bool {
        match (self, other) {
            (SymFloat::Float(a), SymFloat::Float(b)) => a == b,
            (SymFloat::Node(a), SymFloat::Node(b)) => a.ptr_eq(b),
            _ => false,
        }
    }
}

impl fmt::Display for SymFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymFloat::Float(value) => write!(f, "{value:?}"),
            SymFloat::Node(node) => write!(f, "{node}"),
        }
    }
}

impl fmt::Debug for SymFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_compute_as_f64() {
        let (a, b) = (SymFloat::from(1.5), SymFloat::from(-2.0));
        assert_eq!(a.sym_add(&b).unwrap().maybe_as_float(), Some(-0.5));
        assert_eq!(a.sym_sub(&b).unwrap().maybe_as_float(), Some(3.5));
        assert_eq!(a.sym_mul(&b).unwrap().maybe_as_float(), Some(-3.0));
        assert_eq!(a.sym_truediv(&b).unwrap().maybe_as_float(), Some(-0.75));
        assert_eq!(a.sym_neg().unwrap().guard_float().unwrap(), -1.5);
        assert!(b.sym_lt(&a).unwrap().guard_bool().unwrap());
        assert!(!SymFloat::from(f64::NAN).sym_eq(&SymFloat::from(f64::NAN)).unwrap().guard_bool().unwrap());
    }

    #[test]
    fn integer_nodes_are_rejected() {
        let node = SymNode::new(crate::core::sym_node::ConstantIntNode(1));
        assert!(SymFloat::from_node(node).is_err());
    }
}
