//! `SymNodeImpl` and `SymNode`: the value behind a symbolic integer, float or boolean.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{Error, Result};

fn nyi<T>(node: &(impl SymNodeImpl + ?Sized), method: &str) -> Result<T> {
    Err(Error::not_implemented(format!("SymNode.{method}(): not implemented for {}", node.str())))
}

macro_rules! default_binary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        fn $name(&self, _other: &SymNode) -> Result<SymNode> {
            nyi(self, stringify!($name))
        })*
    };
}

macro_rules! default_unary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        fn $name(&self) -> Result<SymNode> {
            nyi(self, stringify!($name))
        })*
    };
}

/// A symbolic value: an expression over unknown sizes, kept by whoever traces (a ShapeEnv in Python, for instance).
///
/// Binary methods are called with nodes of the same implementation: constants are wrapped first with
/// `wrap_int`, `wrap_float` or `wrap_bool`. What a node cannot do is a NotImplementedError by default.
pub trait SymNodeImpl: Send + Sync {
    /// True if this is an integer.
    fn is_int(&self) -> bool {
        false
    }
    /// True if this is a boolean.
    fn is_bool(&self) -> bool {
        false
    }
    /// True if this is a float.
    fn is_float(&self) -> bool {
        false
    }
    /// True if this stands for the ragged size of a nested tensor.
    fn is_nested_int(&self) -> bool {
        false
    }
    /// True if the value is known and fixed.
    fn is_constant(&self) -> bool {
        false
    }
    /// True if the value is an expression with unknowns.
    fn is_symbolic(&self) -> bool {
        true
    }
    /// True if an example value is known.
    fn has_hint(&self) -> bool {
        false
    }

    default_binary! {
        /// `self + other`.
        add;
        /// `self - other`.
        sub;
        /// `self * other`.
        mul;
        /// `self / other`, a float.
        truediv;
        /// `self // other`, rounded down.
        floordiv;
        /// `self % other`, with the sign of `other`.
        modulo;
        /// `self ** other`.
        pow;
        /// `self == other`.
        eq;
        /// `self != other`.
        ne;
        /// `self < other`.
        lt;
        /// `self <= other`.
        le;
        /// `self > other`.
        gt;
        /// `self >= other`.
        ge;
        /// The smaller.
        sym_min;
        /// The larger.
        sym_max;
        /// Both, of booleans.
        sym_and;
        /// Either, of booleans.
        sym_or;
    }

    default_unary! {
        /// `-self`.
        neg;
        /// The least integer not below.
        ceil;
        /// The greatest integer not above.
        floor;
        /// The negation of a boolean.
        sym_not;
        /// As a float.
        sym_float;
        /// The same value as another node.
        clone_node;
    }

    /// `then_value` where this boolean holds, else `else_value`.
    fn sym_ite(&self, _then_value: &SymNode, _else_value: &SymNode) -> Result<SymNode> {
        nyi(self, "sym_ite")
    }
    /// A constant of this implementation.
    fn wrap_int(&self, _value: i64) -> Result<SymNode> {
        nyi(self, "wrap_int")
    }
    /// A constant of this implementation.
    fn wrap_float(&self, _value: f64) -> Result<SymNode> {
        nyi(self, "wrap_float")
    }
    /// A constant of this implementation.
    fn wrap_bool(&self, _value: bool) -> Result<SymNode> {
        nyi(self, "wrap_bool")
    }

    /// The integer, recording that the trace depends on it.
    fn guard_int(&self, _file: &str, _line: u32) -> Result<i64> {
        nyi(self, "guard_int")
    }
    /// The boolean, recording that the trace depends on it.
    fn guard_bool(&self, _file: &str, _line: u32) -> Result<bool> {
        nyi(self, "guard_bool")
    }
    /// The float, recording that the trace depends on it.
    fn guard_float(&self, _file: &str, _line: u32) -> Result<f64> {
        nyi(self, "guard_float")
    }
    /// As `guard_bool`, and sizes of 0 and 1 may be treated like any other size.
    fn guard_size_oblivious(&self, file: &str, line: u32) -> Result<bool> {
        self.guard_bool(file, line)
    }
    /// As `guard_bool`, but false where deciding would need data.
    fn guard_or_false(&self, file: &str, line: u32) -> Result<bool> {
        self.guard_bool(file, line)
    }
    /// As `guard_bool`, but true where deciding would need data.
    fn guard_or_true(&self, file: &str, line: u32) -> Result<bool> {
        self.guard_bool(file, line)
    }
    /// True only if the boolean is known to hold without a guard.
    fn statically_known_true(&self, file: &str, line: u32) -> Result<bool> {
        self.guard_bool(file, line)
    }
    /// Takes the boolean for true, to be checked at run time.
    fn expect_true(&self, file: &str, line: u32) -> Result<bool> {
        self.guard_bool(file, line)
    }

    /// The integer if it is known without a guard.
    fn maybe_as_int(&self) -> Option<i64> {
        None
    }
    /// The constant, if this is an integer constant.
    fn constant_int(&self) -> Option<i64> {
        None
    }
    /// The constant, if this is a boolean constant.
    fn constant_bool(&self) -> Option<bool> {
        None
    }
    /// Which ragged size, of nested integers.
    fn nested_int(&self) -> Option<i64> {
        None
    }
    /// By how much a ragged size is multiplied.
    fn nested_int_coeff(&self) -> Option<i64> {
        None
    }

    /// The expression as text.
    fn str(&self) -> String;
    /// For implementations to recognise their own.
    fn as_any(&self) -> &dyn Any;
}

/// A shared, immutable symbolic value.
#[derive(Clone)]
pub struct SymNode(Arc<dyn SymNodeImpl>);

impl SymNode {
    /// Shares a value.
    pub fn new(node: impl SymNodeImpl + 'static) -> SymNode {
        SymNode(Arc::new(node))
    }

    /// The implementation, if it is a `T`.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref::<T>()
    }

    /// How many owners the value has.
    pub fn strong_count(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// True if both are the same object.
    pub fn ptr_eq(&self, other: &SymNode) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::ops::Deref for SymNode {
    type Target = dyn SymNodeImpl;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl From<Arc<dyn SymNodeImpl>> for SymNode {
    fn from(node: Arc<dyn SymNodeImpl>) -> SymNode {
        SymNode(node)
    }
}

impl fmt::Display for SymNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.str())
    }
}

impl fmt::Debug for SymNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymNode({})", self.0.str())
    }
}

/// An integer constant as a node: integers that a `SymInt` cannot hold in its word, and constants where a node is asked for.
#[derive(Debug)]
pub struct ConstantIntNode(pub i64);

impl SymNodeImpl for ConstantIntNode {
    fn is_int(&self) -> bool {
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
    fn wrap_int(&self, value: i64) -> Result<SymNode> {
        Ok(SymNode::new(ConstantIntNode(value)))
    }
    fn guard_int(&self, _file: &str, _line: u32) -> Result<i64> {
        Ok(self.0)
    }
    fn maybe_as_int(&self) -> Option<i64> {
        Some(self.0)
    }
    fn constant_int(&self) -> Option<i64> {
        Some(self.0)
    }
    fn str(&self) -> String {
        self.0.to_string()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
