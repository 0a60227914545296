//! A little shape environment for tests: symbols with an example value, and a record of what was asked of them.
//!
//! Expressions are polynomials over atoms (symbols, and quotients, remainders, minima and maxima that do not simplify), so
//! that equal shapes are recognised as equal without a guard, as a real environment does.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use c10::{ConstantBoolNode, Error, Result, SymInt, SymNode, SymNodeImpl};

/// Least and greatest value.
type Range = (i128, i128);

/// A product of atoms, sorted.
type Monomial = Vec<String>;

#[derive(Clone, Copy)]
struct Atom {
    hint: i64,
    range: Range,
}

#[derive(Default)]
struct State {
    atoms: BTreeMap<String, Atom>,
    guards: Vec<String>,
    expectations: Vec<String>,
    undecided: bool,
}

/// Where symbols are made and guards end up.
#[derive(Clone, Default)]
pub struct ShapeEnv(Arc<Mutex<State>>);

impl ShapeEnv {
    /// An environment without symbols.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A size that is known to be at least 2: smaller ones are specialized by whoever traces, as in PyTorch.
    pub fn size(&self, name: &str, hint: i64) -> SymInt {
        self.symbol(name, hint, 2)
    }

    /// A symbol that is known to be at least `min`.
    pub fn symbol(&self, name: &str, hint: i64, min: i64) -> SymInt {
        let poly = self.atom(name.to_owned(), hint, (i128::from(min), i128::from(i32::MAX)));
        self.int(poly).unwrap_or(SymInt::ZERO)
    }

    /// What has been decided, each once.
    pub fn guards(&self) -> Vec<String> {
        self.state().guards.clone()
    }

    /// What has been expected, each once.
    pub fn expectations(&self) -> Vec<String> {
        self.state().expectations.clone()
    }

    /// Whether guards fail, as where a value is not known yet.
    #[allow(dead_code, reason = "not every crate that includes this file asks for it")]
    pub fn set_undecided(&self, undecided: bool) {
        self.state().undecided = undecided;
    }

    /// Forgets guards and expectations.
    pub fn clear(&self) {
        let mut state = self.state();
        state.guards.clear();
        state.expectations.clear();
    }

    fn atom(&self, name: String, hint: i64, range: Range) -> Poly {
        self.state().atoms.insert(name.clone(), Atom { hint, range });
        Poly(BTreeMap::from([(vec![name], 1)]))
    }

    fn node(&self, value: Value) -> SymNode {
        SymNode::new(Expr { env: self.clone(), value })
    }

    fn int(&self, poly: Poly) -> Result<SymInt> {
        SymInt::from_node(self.node(Value::Int(poly)))
    }

    /// The example value of a polynomial, and its range.
    fn evaluate(&self, poly: &Poly) -> (i64, Range) {
        let state = self.state();
        let (mut hint, mut range) = (0_i64, (0_i128, 0_i128));
        for (monomial, &coefficient) in &poly.0 {
            let (mut term, mut bounds) = (coefficient, (i128::from(coefficient), i128::from(coefficient)));
            for name in monomial {
                let atom = state.atoms[name];
                term *= atom.hint;
                let ends = [
                    bounds.0.saturating_mul(atom.range.0),
                    bounds.0.saturating_mul(atom.range.1),
                    bounds.1.saturating_mul(atom.range.0),
                    bounds.1.saturating_mul(atom.range.1),
                ];
                bounds = (ends.into_iter().min().unwrap_or(0), ends.into_iter().max().unwrap_or(0));
            }
            hint += term;
            range = (range.0.saturating_add(bounds.0), range.1.saturating_add(bounds.1));
        }
        (hint, range)
    }

    /// A range of the same sign as the polynomial's: that without the positive factors all its terms share.
    fn sign(&self, poly: &Poly) -> Range {
        let mut common: Monomial = poly.0.keys().next().cloned().unwrap_or_default();
        for monomial in poly.0.keys() {
            let mut rest = monomial.clone();
            common.retain(|atom| match rest.iter().position(|other| other == atom) {
                Some(at) => {
                    rest.remove(at);
                    true
                }
                None => false,
            });
        }
        common.retain(|atom| self.state().atoms[atom].range.0 > 0);
        let reduced = poly.divide(&Poly(BTreeMap::from([(common, 1)])));
        self.evaluate(reduced.as_ref().unwrap_or(poly)).1
    }
}

/// The value that an expression stands for.
pub fn hint(value: &SymInt) -> i64 {
    match (value.maybe_as_int(), value.node_ref().and_then(|node| node.downcast_ref::<Expr>())) {
        (Some(value), _) => value,
        (None, Some(Expr { env, value: Value::Int(poly) })) => env.evaluate(poly).0,
        (None, _) => panic!("{value} is not an integer of this environment"),
    }
}

/// The values that expressions stand for.
pub fn hints(values: &[SymInt]) -> Vec<i64> {
    values.iter().map(hint).collect()
}

/// A sum of products with integer coefficients, none of them zero.
#[derive(Clone, PartialEq)]
struct Poly(BTreeMap<Monomial, i64>);

impl Poly {
    fn constant(value: i64) -> Self {
        Self(if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) })
    }

    fn as_constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    fn plus(&self, other: &Self, sign: i64) -> Self {
        let mut sum = self.0.clone();
        for (monomial, coefficient) in &other.0 {
            *sum.entry(monomial.clone()).or_default() += sign * coefficient;
        }
        sum.retain(|_, coefficient| *coefficient != 0);
        Self(sum)
    }

    fn times(&self, other: &Self) -> Self {
        let mut product: BTreeMap<Monomial, i64> = BTreeMap::new();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut monomial = [a.as_slice(), b.as_slice()].concat();
                monomial.sort();
                *product.entry(monomial).or_default() += x * y;
            }
        }
        product.retain(|_, coefficient| *coefficient != 0);
        Self(product)
    }

    /// The quotient, if `other` is one product that divides every term.
    fn divide(&self, other: &Self) -> Option<Self> {
        if self == other {
            return Some(Self::constant(1));
        }
        let mut terms = other.0.iter();
        let (Some((divisor, &factor)), None) = (terms.next(), terms.next()) else { return None };
        let mut quotient = BTreeMap::new();
        for (monomial, &coefficient) in &self.0 {
            let mut rest = monomial.clone();
            for name in divisor {
                rest.remove(rest.iter().position(|atom| atom == name)?);
            }
            if coefficient % factor != 0 {
                return None;
            }
            quotient.insert(rest, coefficient / factor);
        }
        Some(Self(quotient))
    }
}

impl std::fmt::Display for Poly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        // Products first, the constant last.
        for (i, (monomial, coefficient)) in self.0.iter().rev().enumerate() {
            let factors = monomial.join("*");
            let sign = if i > 0 { " + " } else { "" };
            match (coefficient, factors.is_empty()) {
                (1, false) => write!(f, "{sign}{factors}")?,
                (_, false) => write!(f, "{sign}{coefficient}*{factors}")?,
                (_, true) => write!(f, "{sign}{coefficient}")?,
            }
        }
        Ok(())
    }
}

enum Value {
    Int(Poly),
    /// A proposition and whether it holds for the example values.
    Bool(String, bool),
}

struct Expr {
    env: ShapeEnv,
    value: Value,
}

impl Expr {
    fn poly(&self) -> Result<&Poly> {
        match &self.value {
            Value::Int(poly) => Ok(poly),
            Value::Bool(..) => Err(Error::internal("expected an integer expression")),
        }
    }

    fn other(node: &SymNode) -> Result<&Poly> {
        node.downcast_ref::<Expr>().ok_or_else(|| Error::internal("an operand was not wrapped"))?.poly()
    }

    fn arithmetic(&self, other: &SymNode, f: impl FnOnce(&Poly, &Poly) -> Poly) -> Result<SymNode> {
        Ok(self.env.node(Value::Int(f(self.poly()?, Self::other(other)?))))
    }

    /// An operation that does not simplify becomes an atom.
    fn opaque(&self, text: String, hint: i64, range: Range) -> Poly {
        self.env.atom(text, hint, range)
    }

    fn compare(
        &self,
        other: &SymNode,
        symbol: &str,
        decide: fn(i64, i64) -> bool,
        known: fn(Range) -> Option<bool>,
    ) -> Result<SymNode> {
        let (a, b) = (self.poly()?, Self::other(other)?);
        let range = self.env.sign(&a.plus(b, -1));
        if let Some(answer) = known(range) {
            return Ok(SymNode::new(ConstantBoolNode(answer)));
        }
        let holds = decide(self.env.evaluate(a).0, self.env.evaluate(b).0);
        Ok(self.env.node(Value::Bool(format!("{a} {symbol} {b}"), holds)))
    }

    fn divided(&self, other: &SymNode, remainder: bool) -> Result<SymNode> {
        let (a, b) = (self.poly()?, Self::other(other)?);
        let result = match a.divide(b) {
            Some(quotient) if !remainder => quotient,
            Some(_) => Poly::constant(0),
            None => {
                let ((x, range), (y, divisors)) = (self.env.evaluate(a), self.env.evaluate(b));
                if divisors.0 <= 0 {
                    return Err(Error::runtime(format!("{b} may not be positive")));
                }
                if remainder {
                    self.opaque(format!("({a} % {b})"), x.rem_euclid(y), (0, divisors.1 - 1))
                } else {
                    let least = if range.0 < 0 { range.0 } else { range.0.div_euclid(divisors.1) };
                    let greatest = range.1.div_euclid(divisors.0).max(least);
                    self.opaque(format!("({a} // {b})"), x.div_euclid(y), (least, greatest))
                }
            }
        };
        Ok(self.env.node(Value::Int(result)))
    }

    fn extremum(&self, other: &SymNode, name: &str, greater: bool) -> Result<SymNode> {
        let (a, b) = (self.poly()?, Self::other(other)?);
        let ((x, xs), (y, ys)) = (self.env.evaluate(a), self.env.evaluate(b));
        let difference = self.env.sign(&a.plus(b, -1));
        let result = if difference.0 >= 0 {
            if greater {
                a.clone()
            } else {
                b.clone()
            }
        } else if difference.1 <= 0 {
            if greater {
                b.clone()
            } else {
                a.clone()
            }
        } else if greater {
            self.opaque(format!("{name}({a}, {b})"), x.max(y), (xs.0.max(ys.0), xs.1.max(ys.1)))
        } else {
            self.opaque(format!("{name}({a}, {b})"), x.min(y), (xs.0.min(ys.0), xs.1.min(ys.1)))
        };
        Ok(self.env.node(Value::Int(result)))
    }

    fn record(&self, text: &str, expected: bool) {
        let mut state = self.env.state();
        let list = if expected { &mut state.expectations } else { &mut state.guards };
        if !list.iter().any(|known| known == text) {
            list.push(text.to_owned());
        }
    }

    fn decide(&self, expected: bool) -> Result<bool> {
        if self.env.state().undecided {
            return Err(Error::runtime("not known yet"));
        }
        match &self.value {
            Value::Bool(text, holds) => {
                self.record(text, expected);
                Ok(*holds)
            }
            Value::Int(_) => Err(Error::internal("expected a boolean expression")),
        }
    }
}

fn known_eq((low, high): Range) -> Option<bool> {
    match (low, high) {
        (0, 0) => Some(true),
        _ if low > 0 || high < 0 => Some(false),
        _ => None,
    }
}

fn known_lt((low, high): Range) -> Option<bool> {
    if high < 0 {
        Some(true)
    } else if low >= 0 {
        Some(false)
    } else {
        None
    }
}

fn known_le((low, high): Range) -> Option<bool> {
    if high <= 0 {
        Some(true)
    } else if low > 0 {
        Some(false)
    } else {
        None
    }
}

impl SymNodeImpl for Expr {
    fn is_int(&self) -> bool {
        matches!(self.value, Value::Int(_))
    }
    fn is_bool(&self) -> bool {
        matches!(self.value, Value::Bool(..))
    }
    fn has_hint(&self) -> bool {
        true
    }
    fn add(&self, other: &SymNode) -> Result<SymNode> {
        self.arithmetic(other, |a, b| a.plus(b, 1))
    }
    fn sub(&self, other: &SymNode) -> Result<SymNode> {
        self.arithmetic(other, |a, b| a.plus(b, -1))
    }
    fn mul(&self, other: &SymNode) -> Result<SymNode> {
        self.arithmetic(other, Poly::times)
    }
    fn neg(&self) -> Result<SymNode> {
        Ok(self.env.node(Value::Int(Poly::constant(0).plus(self.poly()?, -1))))
    }
    fn floordiv(&self, other: &SymNode) -> Result<SymNode> {
        self.divided(other, false)
    }
    fn modulo(&self, other: &SymNode) -> Result<SymNode> {
        self.divided(other, true)
    }
    fn sym_min(&self, other: &SymNode) -> Result<SymNode> {
        self.extremum(other, "min", false)
    }
    fn sym_max(&self, other: &SymNode) -> Result<SymNode> {
        self.extremum(other, "max", true)
    }
    fn eq(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, "==", |a, b| a == b, known_eq)
    }
    fn ne(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, "!=", |a, b| a != b, |range| known_eq(range).map(|equal| !equal))
    }
    fn lt(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, "<", |a, b| a < b, known_lt)
    }
    fn le(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, "<=", |a, b| a <= b, known_le)
    }
    fn gt(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, ">", |a, b| a > b, |range| known_le(range).map(|le| !le))
    }
    fn ge(&self, other: &SymNode) -> Result<SymNode> {
        self.compare(other, ">=", |a, b| a >= b, |range| known_lt(range).map(|lt| !lt))
    }
    fn wrap_int(&self, value: i64) -> Result<SymNode> {
        Ok(self.env.node(Value::Int(Poly::constant(value))))
    }
    fn maybe_as_int(&self) -> Option<i64> {
        self.poly().ok()?.as_constant()
    }
    fn is_symbolic(&self) -> bool {
        self.maybe_as_int().is_none()
    }
    fn guard_int(&self, _file: &str, _line: u32) -> Result<i64> {
        let poly = self.poly()?;
        let (value, _) = self.env.evaluate(poly);
        self.record(&format!("{poly} == {value}"), false);
        Ok(value)
    }
    fn guard_bool(&self, _file: &str, _line: u32) -> Result<bool> {
        self.decide(false)
    }
    fn expect_true(&self, _file: &str, _line: u32) -> Result<bool> {
        self.decide(true)
    }
    fn str(&self) -> String {
        match &self.value {
            Value::Int(poly) => poly.to_string(),
            Value::Bool(text, _) => text.clone(),
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
