//! Whether calls written for an older schema still work with a newer one.

use super::argument::Argument;
use super::function_schema::FunctionSchema;
use super::type_::Type;

impl Type {
    /// Whether every value of this type can be given where `other` is wanted: `int` for `Scalar`, `T` for `T?`, and
    /// `int` for `SymInt`, also inside lists.
    pub fn is_subtype_of(&self, other: &Type) -> bool {
        if self == other {
            return true;
        }
        match (self, other) {
            (_, Type::Any) => true,
            (Type::Int | Type::Float | Type::Complex, Type::Scalar) => true,
            (Type::Int | Type::DeviceIndex, Type::SymInt | Type::Int | Type::DeviceIndex) => true,
            (Type::Float, Type::SymFloat) | (Type::Bool, Type::SymBool) => true,
            (Type::None, Type::Optional(_)) => true,
            (Type::Optional(a), Type::Optional(b)) => a.is_subtype_of(b),
            (_, Type::Optional(b)) => self.is_subtype_of(b),
            (Type::Union(parts), _) => parts.iter().all(|part| part.is_subtype_of(other)),
            (_, Type::Union(parts)) => parts.iter().any(|part| self.is_subtype_of(part)),
            (Type::List(..), Type::AnyList) | (Type::Tuple(_), Type::AnyTuple) => true,
            (Type::Class(_), Type::AnyClassType) => true,
            // Lists can be written to, so their elements must agree; but a list of numbers is copied at the call.
            (Type::List(a, n), Type::List(b, m)) => {
                n == m && is_number(a) && a.is_subtype_of(b) && **b != Type::Scalar
            }
            (Type::Tuple(a), Type::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_subtype_of(b))
            }
            (Type::Future(a), Type::Future(b))
            | (Type::Await(a), Type::Await(b))
            | (Type::RRef(a), Type::RRef(b)) => a.is_subtype_of(b),
            _ => false,
        }
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int | Type::DeviceIndex | Type::Float | Type::Bool)
}

impl Argument {
    /// Whether this may replace `old`; the reason if not.
    fn accepts_what(&self, old: &Argument) -> Result<(), String> {
        let name = &old.name;
        if self.name != *name {
            return Err(format!("argument `{name}` became `{}`", self.name));
        }
        if self.alias != old.alias {
            return Err(format!("argument `{name}` has another alias annotation: `{old}` became `{self}`"));
        }
        if self.kwarg_only && !old.kwarg_only {
            return Err(format!("argument `{name}` can no longer be given by position"));
        }
        if !old.ty.is_subtype_of(&self.ty) {
            return Err(format!("argument `{name}` was of type {} and does not fit {}", old.ty, self.ty));
        }
        let value = |a: &Argument| a.default.as_ref().map(|d| (d.elements(&a.ty), d.resolved(&a.ty)));
        match (&old.default, &self.default) {
            (None, _) => Ok(()),
            (Some(default), None) => Err(format!("argument `{name}` no longer has the default {default}")),
            (Some(_), Some(_)) if value(old) == value(self) => Ok(()),
            (Some(a), Some(b)) => Err(format!("the default of argument `{name}` was {a} and is {b}")),
        }
    }

    /// Whether this return may replace `old`; the reason if not.
    fn returns_what(&self, old: &Argument, i: usize) -> Result<(), String> {
        if self.name == old.name && self.alias == old.alias && self.ty.is_subtype_of(&old.ty) {
            return Ok(());
        }
        Err(format!("return {i} was `{old}` and is `{self}`"))
    }
}

impl FunctionSchema {
    /// Whether every call that `old` allowed is allowed and means the same.
    pub fn is_backward_compatible_with(&self, old: &FunctionSchema) -> bool {
        self.check_backward_compatible_with(old).is_ok()
    }

    /// The same, with the first reason against it. New arguments need a default and come after the old ones, but before
    /// the outputs.
    pub fn check_backward_compatible_with(&self, old: &FunctionSchema) -> Result<(), String> {
        if self.name != old.name {
            return Err(format!("`{}` was named `{}`", self.name, old.name));
        }
        if (self.is_vararg, self.is_varret) != (old.is_vararg, old.is_varret) {
            return Err("one takes or returns any number of values, the other does not".to_owned());
        }
        if self.returns.len() != old.returns.len() {
            return Err(format!("there were {} returns and are {}", old.returns.len(), self.returns.len()));
        }
        for (i, (new, old)) in self.returns.iter().zip(&old.returns).enumerate() {
            new.returns_what(old, i)?;
        }
        let (new_inputs, new_outs) = split_outs(&self.arguments);
        let (old_inputs, old_outs) = split_outs(&old.arguments);
        if new_inputs.len() < old_inputs.len() {
            return Err(format!("there were {} arguments and are {}", old_inputs.len(), new_inputs.len()));
        }
        if new_outs.len() != old_outs.len() {
            return Err(format!("there were {} outputs and are {}", old_outs.len(), new_outs.len()));
        }
        for (new, old) in new_inputs.iter().zip(old_inputs).chain(new_outs.iter().zip(old_outs)) {
            new.accepts_what(old)?;
        }
        match new_inputs[old_inputs.len()..].iter().find(|a| a.default.is_none()) {
            Some(added) => Err(format!("argument `{}` is new and has no default", added.name)),
            None => Ok(()),
        }
    }
}

/// The arguments before the trailing outputs, and those.
fn split_outs(arguments: &[Argument]) -> (&[Argument], &[Argument]) {
    let outs = arguments.iter().rev().take_while(|a| a.is_out).count();
    arguments.split_at(arguments.len() - outs)
}
