//! `SymInt`: an integer that may be symbolic, in one word.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::Arc;

use crate::core::sym_bool::SymBool;
use crate::core::sym_float::SymFloat;
use crate::core::sym_node::{ConstantIntNode, SymNode, SymNodeImpl};
use crate::{Error, Result};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("SymInt keeps a tagged pointer in an i64; it needs a 64-bit target");

/// An integer that may be symbolic. Sizes, strides and offsets of operators' schemas are of this type.
///
/// Note `[SymInt's word]`: an integer of at least -2^62 is the word itself. Words below that are tagged pointers to
/// a node: bits 63..61 are 1, 0, 1 and the lower 61 hold the address. The few integers below -2^62 live in a heap
/// constant. So `is_heap_allocated` is one comparison, and a plain size costs as much as an i64.
///
/// Arithmetic is checked: `sym_add` and its kin return an error on overflow. There are therefore no operators
/// `+ - *`. Adding 0 and multiplying by 1 give the same node, so that shapes stay recognisable. Comparison with `==` never guards; see `PartialEq` below.
#[repr(transparent)]
pub struct SymInt {
    /// An integer without provenance, or an `Arc<SymNode>`'s address with the tag.
    data: *mut (),
    _owns: PhantomData<Arc<SymNode>>,
}

// SAFETY: the word is either an integer or an Arc of a value that is Send and Sync.
unsafe impl Send for SymInt {}
// SAFETY: as for Send; a shared SymInt is only read or its Arc cloned.
unsafe impl Sync for SymInt {}

/// The largest integer that is not its own word.
const MAX_UNREPRESENTABLE_INT: i64 = -(1 << 62) - 1;
const TAG: usize = 0b101 << 61;
const ADDRESS_MASK: usize = (1 << 61) - 1;

impl SymInt {
    /// Zero.
    pub const ZERO: SymInt = SymInt::inline(0);
    /// One.
    pub const ONE: SymInt = SymInt::inline(1);

    const fn inline(value: i64) -> SymInt {
        SymInt { data: std::ptr::without_provenance_mut(value as usize), _owns: PhantomData }
    }

    /// A symbolic integer; an expression whose value is known becomes that integer.
    pub fn from_node(node: SymNode) -> Result<SymInt> {
        if !node.is_int() {
            return Err(Error::type_(format!("SymInt: expected an integer node, got {node}")));
        }
        Ok(match node.maybe_as_int() {
            Some(value) => SymInt::from(value),
            None => SymInt::from_node_unchecked(node),
        })
    }

    fn from_node_unchecked(node: SymNode) -> SymInt {
        let raw = Arc::into_raw(Arc::new(node)) as *mut ();
        debug_assert_eq!(raw.addr() & !ADDRESS_MASK, 0, "user-space addresses are below 2^61");
        SymInt { data: raw.map_addr(|address| address | TAG), _owns: PhantomData }
    }

    /// True if the word points to a node: symbolic, or a constant below -2^62.
    #[inline]
    pub fn is_heap_allocated(&self) -> bool {
        self.data.addr() as i64 <= MAX_UNREPRESENTABLE_INT
    }

    /// True if the value is an expression with unknowns.
    #[inline]
    pub fn is_symbolic(&self) -> bool {
        self.node_ref().is_some_and(|node| node.is_symbolic())
    }

    #[inline]
    fn raw_node(&self) -> Option<*const SymNode> {
        self.is_heap_allocated()
            .then(|| self.data.map_addr(|address| address & ADDRESS_MASK).cast_const().cast::<SymNode>())
    }

    /// The node, if there is one.
    #[inline]
    pub fn node_ref(&self) -> Option<&SymNode> {
        // SAFETY: a tagged word owns one count of the Arc it points to, so the node lives as long as self.
        self.raw_node().map(|raw| unsafe { &*raw })
    }

    /// The node, or a constant of `base`'s implementation.
    pub fn wrap_node(&self, base: &SymNode) -> Result<SymNode> {
        match self.maybe_as_int() {
            Some(value) => base.wrap_int(value),
            None => Ok(self.to_node()),
        }
    }

    /// The node, made if there is none.
    pub fn to_node(&self) -> SymNode {
        match self.node_ref() {
            Some(node) => node.clone(),
            None => SymNode::new(ConstantIntNode(self.as_int_unchecked())),
        }
    }

    /// The word as an integer: the value of a `SymInt` that is not heap allocated, else meaningless.
    #[inline]
    pub fn as_int_unchecked(&self) -> i64 {
        self.data.addr() as i64
    }

    /// The value, if it is known without a guard.
    #[inline]
    pub fn maybe_as_int(&self) -> Option<i64> {
        match self.node_ref() {
            None => Some(self.as_int_unchecked()),
            Some(node) => node.maybe_as_int(),
        }
    }

    /// The value; the trace records that it depends on it.
    #[inline]
    #[track_caller]
    pub fn guard_int(&self) -> Result<i64> {
        match self.node_ref() {
            None => Ok(self.as_int_unchecked()),
            Some(node) => {
                let caller = Location::caller();
                node.guard_int(caller.file(), caller.line())
            }
        }
    }

    /// The value if it is known, else an error that names what was being done.
    pub fn expect_int(&self, what: &str) -> Result<i64> {
        self.maybe_as_int().ok_or_else(|| {
            Error::runtime(format!("{what}: expected a concrete integer, got the symbolic integer {self}"))
        })
    }

    /// True if an example value is known.
    pub fn has_hint(&self) -> bool {
        self.node_ref().is_none_or(|node| node.has_hint())
    }

    /// Both operands as integers, or both as nodes of one implementation.
    fn operands(&self, other: &SymInt) -> Result<Operands> {
        match (self.maybe_as_int(), other.maybe_as_int()) {
            (Some(a), Some(b)) => Ok(Operands::Ints(a, b)),
            (None, _) => {
                let a = self.to_node();
                let b = other.wrap_node(&a)?;
                Ok(Operands::Nodes(a, b))
            }
            (Some(_), None) => {
                let b = other.to_node();
                let a = self.wrap_node(&b)?;
                Ok(Operands::Nodes(a, b))
            }
        }
    }

    fn arithmetic(
        &self,
        other: &SymInt,
        symbol: &str,
        ints: fn(i64, i64) -> Option<i64>,
        nodes: fn(&dyn SymNodeImpl, &SymNode) -> Result<SymNode>,
    ) -> Result<SymInt> {
        match self.operands(other)? {
            Operands::Ints(a, b) => match ints(a, b) {
                Some(value) => Ok(SymInt::from(value)),
                None => Err(arithmetic_error(a, symbol, b)),
            },
            Operands::Nodes(a, b) => SymInt::from_node(nodes(&*a, &b)?),
        }
    }

    fn comparison(
        &self,
        other: &SymInt,
        ints: fn(&i64, &i64) -> bool,
        nodes: fn(&dyn SymNodeImpl, &SymNode) -> Result<SymNode>,
    ) -> Result<SymBool> {
        match self.operands(other)? {
            Operands::Ints(a, b) => Ok(SymBool::from(ints(&a, &b))),
            Operands::Nodes(a, b) => SymBool::from_node(nodes(&*a, &b)?),
        }
    }

    /// `self + other`; an error on overflow.
    pub fn sym_add(&self, other: &SymInt) -> Result<SymInt> {
        if *other == 0 {
            return Ok(self.clone());
        }
        if *self == 0 {
            return Ok(other.clone());
        }
        self.arithmetic(other, "+", i64::checked_add, |a, b| a.add(b))
    }

    /// `self - other`; an error on overflow.
    pub fn sym_sub(&self, other: &SymInt) -> Result<SymInt> {
        if *other == 0 {
            return Ok(self.clone());
        }
        self.arithmetic(other, "-", i64::checked_sub, |a, b| a.sub(b))
    }

    /// `self * other`; an error on overflow.
    pub fn sym_mul(&self, other: &SymInt) -> Result<SymInt> {
        if *other == 1 {
            return Ok(self.clone());
        }
        if *self == 1 {
            return Ok(other.clone());
        }
        self.arithmetic(other, "*", i64::checked_mul, |a, b| a.mul(b))
    }

    /// `self // other`, rounded down as in Python; an error on division by zero or overflow.
    pub fn sym_floordiv(&self, other: &SymInt) -> Result<SymInt> {
        if *other == 1 {
            return Ok(self.clone());
        }
        self.arithmetic(other, "//", checked_floor_div, |a, b| a.floordiv(b))
    }

    /// `self % other`, with the sign of `other` as in Python; an error on division by zero.
    pub fn sym_mod(&self, other: &SymInt) -> Result<SymInt> {
        self.arithmetic(other, "%", checked_floor_mod, |a, b| a.modulo(b))
    }

    /// The smaller.
    pub fn sym_min(&self, other: &SymInt) -> Result<SymInt> {
        self.arithmetic(other, "min", |a, b| Some(a.min(b)), |a, b| a.sym_min(b))
    }

    /// The larger.
    pub fn sym_max(&self, other: &SymInt) -> Result<SymInt> {
        self.arithmetic(other, "max", |a, b| Some(a.max(b)), |a, b| a.sym_max(b))
    }

    /// `-self`; an error on overflow.
    pub fn sym_neg(&self) -> Result<SymInt> {
        match self.maybe_as_int() {
            Some(value) => match value.checked_neg() {
                Some(negated) => Ok(SymInt::from(negated)),
                None => Err(arithmetic_error(0, "-", value)),
            },
            None => SymInt::from_node(self.to_node().neg()?),
        }
    }

    /// As a float.
    pub fn to_sym_float(&self) -> Result<SymFloat> {
        match self.maybe_as_int() {
            Some(value) => Ok(SymFloat::from(value as f64)),
            None => SymFloat::from_node(self.to_node().sym_float()?),
        }
    }

    /// `self == other`.
    pub fn sym_eq(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::eq, |a, b| a.eq(b))
    }

    /// `self != other`.
    pub fn sym_ne(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::ne, |a, b| a.ne(b))
    }

    /// `self < other`.
    pub fn sym_lt(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::lt, |a, b| a.lt(b))
    }

    /// `self <= other`.
    pub fn sym_le(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::le, |a, b| a.le(b))
    }

    /// `self > other`.
    pub fn sym_gt(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::gt, |a, b| a.gt(b))
    }

    /// `self >= other`.
    pub fn sym_ge(&self, other: &SymInt) -> Result<SymBool> {
        self.comparison(other, i64::ge, |a, b| a.ge(b))
    }

    /// `self == other`, guarding if that is needed to know.
    #[track_caller]
    pub fn guard_eq(&self, other: &SymInt) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        self.sym_eq(other)?.guard_bool()
    }

    /// `self < other`, guarding if that is needed to know.
    #[track_caller]
    pub fn guard_lt(&self, other: &SymInt) -> Result<bool> {
        self.sym_lt(other)?.guard_bool()
    }
}

enum Operands {
    Ints(i64, i64),
    Nodes(SymNode, SymNode),
}

#[cold]
fn arithmetic_error(a: i64, symbol: &str, b: i64) -> Error {
    if b == 0 && (symbol == "//" || symbol == "%") {
        return Error::new(crate::ErrorKind::Runtime, format!("SymInt: {a} {symbol} {b}: division by zero"));
    }
    Error::runtime(format!("SymInt: {a} {symbol} {b} overflows a 64-bit integer"))
}

pub(crate) fn checked_floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let rounds_up = a % b != 0 && (a < 0) != (b < 0);
    Some(if rounds_up { quotient - 1 } else { quotient })
}

pub(crate) fn checked_floor_mod(a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    // i64::MIN % -1 is 0; wrapping_rem says so without a trap.
    let remainder = a.wrapping_rem(b);
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

impl From<i64> for SymInt {
    #[inline]
    fn from(value: i64) -> SymInt {
        if value > MAX_UNREPRESENTABLE_INT {
            SymInt::inline(value)
        } else {
            SymInt::from_node_unchecked(SymNode::new(ConstantIntNode(value)))
        }
    }
}

impl From<i32> for SymInt {
    #[inline]
    fn from(value: i32) -> SymInt {
        SymInt::inline(i64::from(value))
    }
}

impl Default for SymInt {
    fn default() -> SymInt {
        SymInt::ZERO
    }
}

impl Clone for SymInt {
    #[inline]
    fn clone(&self) -> SymInt {
        if let Some(raw) = self.raw_node() {
            // SAFETY: a tagged word owns one count of the Arc at this address; the copy owns another.
            unsafe { Arc::increment_strong_count(raw) };
        }
        SymInt { data: self.data, _owns: PhantomData }
    }
}

impl Drop for SymInt {
    #[inline]
    fn drop(&mut self) {
        if let Some(raw) = self.raw_node() {
            // SAFETY: this word owned one count, given back here once.
            unsafe { Arc::decrement_strong_count(raw) };
        }
    }
}

/// Equality that never guards: equal values if both are known, the same node otherwise. Symbolic integers that
/// happen to be equal compare unequal; ask `sym_eq` or `guard_eq` for their values.
impl PartialEq for SymInt {
    #[inline]
    fn eq(&self, other: &SymInt) -> bool {
        match (self.node_ref(), other.node_ref()) {
            (None, None) => self.data == other.data,
            (Some(a), Some(b)) if a.ptr_eq(b) => true,
            _ => match (self.maybe_as_int(), other.maybe_as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }
}

impl Eq for SymInt {}

impl PartialEq<i64> for SymInt {
    #[inline]
    fn eq(&self, other: &i64) -> bool {
        self.maybe_as_int() == Some(*other)
    }
}

impl fmt::Display for SymInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node_ref() {
            None => write!(f, "{}", self.as_int_unchecked()),
            Some(node) => write!(f, "{node}"),
        }
    }
}

impl fmt::Debug for SymInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The sizes as plain integers, if none is heap allocated: a view of the same memory, not a copy.
#[inline]
pub fn as_int_array_ref_slow_opt(values: &[SymInt]) -> Option<&[i64]> {
    if values.iter().any(SymInt::is_heap_allocated) {
        return None;
    }
    // SAFETY: SymInt is one 64-bit word (repr(transparent) over a pointer), and a word that is not heap
    // allocated is the integer itself.
    Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<i64>(), values.len()) })
}

/// The plain integers of a slice, guarding on those that are symbolic.
#[track_caller]
pub fn guard_int_array(values: &[SymInt]) -> Result<crate::DimVector> {
    values.iter().map(SymInt::guard_int).collect()
}

/// The product, checked; 1 for an empty slice.
pub fn sym_multiply_integers(values: &[SymInt]) -> Result<SymInt> {
    let mut product = SymInt::ONE;
    for value in values {
        product = product.sym_mul(value)?;
    }
    Ok(product)
}

/// Takes a `SymInt` apart into its word, for holders that store it in a union. Given back by `from_raw_word`.
impl SymInt {
    /// The word; the caller now owns it.
    pub fn into_raw_word(self) -> *mut () {
        ManuallyDrop::new(self).data
    }

    /// Takes a word back.
    ///
    /// # Safety
    /// The word must come from `into_raw_word`, each once.
    pub unsafe fn from_raw_word(word: *mut ()) -> SymInt {
        SymInt { data: word, _owns: PhantomData }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::any::Any;

    /// A little symbolic implementation: an expression as text and the value it stands for.
    pub(crate) struct Expr {
        text: String,
        value: Value,
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Value {
        Int(i64),
        Bool(bool),
        Float(f64),
    }

    impl Expr {
        pub(crate) fn int(name: &str, value: i64) -> SymNode {
            Expr::node(name.to_owned(), Value::Int(value))
        }

        fn node(text: String, value: Value) -> SymNode {
            SymNode::new(Expr { text, value })
        }

        fn as_int(&self) -> i64 {
            match self.value {
                Value::Int(v) => v,
                _ => panic!("not an integer"),
            }
        }

        fn binary(&self, op: &str, other: &SymNode, f: fn(i64, i64) -> Value) -> Result<SymNode> {
            let other = other.downcast_ref::<Expr>().expect("operands were not wrapped");
            Ok(Expr::node(format!("({} {op} {})", self.text, other.text), f(self.as_int(), other.as_int())))
        }
    }

    impl SymNodeImpl for Expr {
        fn is_int(&self) -> bool {
            matches!(self.value, Value::Int(_))
        }
        fn is_bool(&self) -> bool {
            matches!(self.value, Value::Bool(_))
        }
        fn is_float(&self) -> bool {
            matches!(self.value, Value::Float(_))
        }
        fn has_hint(&self) -> bool {
            true
        }
        fn add(&self, other: &SymNode) -> Result<SymNode> {
            self.binary("+", other, |a, b| Value::Int(a + b))
        }
        fn sub(&self, other: &SymNode) -> Result<SymNode> {
            self.binary("-", other, |a, b| Value::Int(a - b))
        }
        fn lt(&self, other: &SymNode) -> Result<SymNode> {
            self.binary("<", other, |a, b| Value::Bool(a < b))
        }
        fn eq(&self, other: &SymNode) -> Result<SymNode> {
            self.binary("==", other, |a, b| Value::Bool(a == b))
        }
        fn sym_float(&self) -> Result<SymNode> {
            Ok(Expr::node(format!("float({})", self.text), Value::Float(self.as_int() as f64)))
        }
        fn wrap_int(&self, value: i64) -> Result<SymNode> {
            Ok(Expr::int(&value.to_string(), value))
        }
        fn guard_int(&self, _file: &str, _line: u32) -> Result<i64> {
            Ok(self.as_int())
        }
        fn guard_bool(&self, file: &str, _line: u32) -> Result<bool> {
            assert!(file.ends_with("sym_int.rs"), "guards carry the caller's place, got {file}");
            match self.value {
                Value::Bool(b) => Ok(b),
                _ => panic!("not a boolean"),
            }
        }
        fn guard_float(&self, _file: &str, _line: u32) -> Result<f64> {
            match self.value {
                Value::Float(x) => Ok(x),
                _ => panic!("not a float"),
            }
        }
        fn str(&self) -> String {
            self.text.clone()
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn symbol(name: &str, value: i64) -> SymInt {
        SymInt::from_node(Expr::int(name, value)).unwrap()
    }

    #[test]
    fn is_one_word_and_holds_every_i64() {
        assert_eq!(size_of::<SymInt>(), 8);
        for value in [0, 1, -1, i64::MAX, i64::MIN, -(1 << 62), -(1 << 62) - 1, (1 << 62), -(1 << 61)] {
            let s = SymInt::from(value);
            assert_eq!(s.maybe_as_int(), Some(value));
            assert_eq!(s.guard_int().unwrap(), value);
            assert_eq!(s.is_heap_allocated(), value < -(1 << 62));
            assert!(!s.is_symbolic());
            assert_eq!(s.clone(), s);
            assert_eq!(s.to_string(), value.to_string());
        }
    }

    #[test]
    fn arithmetic_is_checked() {
        let max = SymInt::from(i64::MAX);
        let min = SymInt::from(i64::MIN);
        assert!(max.sym_add(&SymInt::ONE).unwrap_err().to_string().contains("overflows"));
        assert!(min.sym_sub(&SymInt::ONE).is_err());
        assert!(max.sym_mul(&SymInt::from(2)).is_err());
        assert!(min.sym_neg().is_err());
        assert!(min.sym_floordiv(&SymInt::from(-1)).is_err());
        assert!(max.sym_floordiv(&SymInt::ZERO).unwrap_err().to_string().contains("division by zero"));
        assert_eq!(min.sym_mod(&SymInt::from(-1)).unwrap(), 0);
        assert_eq!(min.sym_add(&max).unwrap(), -1);
    }

    #[test]
    fn division_rounds_down_as_python() {
        for (a, b, quotient, remainder) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, 3, 2, 0), (-6, 3, -2, 0)]
        {
            let (a, b) = (SymInt::from(a as i64), SymInt::from(b as i64));
            assert_eq!(a.sym_floordiv(&b).unwrap(), quotient);
            assert_eq!(a.sym_mod(&b).unwrap(), remainder);
        }
    }

    #[test]
    fn symbols_compose_and_constants_are_wrapped_either_side() {
        let s0 = symbol("s0", 5);
        let sum = s0.sym_add(&SymInt::from(3)).unwrap();
        assert_eq!(sum.to_string(), "(s0 + 3)");
        assert!(sum.is_symbolic());
        assert_eq!(sum.maybe_as_int(), None);
        assert_eq!(sum.guard_int().unwrap(), 8);
        let difference = SymInt::from(3).sym_sub(&s0).unwrap();
        assert_eq!(difference.to_string(), "(3 - s0)");
        let huge = SymInt::from(i64::MIN).sym_add(&s0).unwrap();
        assert_eq!(huge.to_string(), format!("({} + s0)", i64::MIN));
        assert!(s0.sym_lt(&SymInt::from(6)).unwrap().guard_bool().unwrap());
        assert!(!s0.guard_eq(&SymInt::from(6)).unwrap());
        assert_eq!(s0.to_sym_float().unwrap().guard_float().unwrap(), 5.0);
        let error = s0.sym_mul(&s0).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NotImplemented);
        assert!(s0.expect_int("view(): size").unwrap_err().to_string().contains("s0"));
    }

    #[test]
    fn equality_does_not_guard() {
        let s0 = symbol("s0", 5);
        assert_eq!(s0, s0.clone());
        assert_ne!(s0, symbol("s0", 5));
        assert_ne!(s0, SymInt::from(5));
        assert_eq!(SymInt::from(i64::MIN), SymInt::from(i64::MIN));
    }

    #[test]
    fn clones_and_drops_balance() {
        let node = Expr::int("s0", 1);
        let inner = node.clone();
        let s = SymInt::from_node(node).unwrap();
        let copies: Vec<SymInt> = (0..10).map(|_| s.clone()).collect();
        let word = s.clone().into_raw_word();
        // SAFETY: the word was just taken from into_raw_word.
        drop(unsafe { SymInt::from_raw_word(word) });
        drop(copies);
        assert_eq!(s.to_string(), "s0");
        drop(s);
        assert_eq!(inner.strong_count(), 1);
    }

    #[test]
    fn slices_of_plain_integers_are_views() {
        let plain = [SymInt::from(2), SymInt::from(3), SymInt::from(-1)];
        assert_eq!(as_int_array_ref_slow_opt(&plain), Some(&[2, 3, -1][..]));
        let mixed = [SymInt::from(2), symbol("s0", 4)];
        assert_eq!(as_int_array_ref_slow_opt(&mixed), None);
        assert_eq!(guard_int_array(&mixed).unwrap().as_slice(), &[2, 4]);
        assert_eq!(sym_multiply_integers(&plain).unwrap(), -6);
    }

    #[test]
    fn nodes_of_the_wrong_kind_are_rejected() {
        let boolean = symbol("s0", 1).sym_lt(&SymInt::ONE).unwrap().to_node();
        assert!(SymInt::from_node(boolean).is_err());
    }
}
