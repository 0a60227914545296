//! One argument or return of a schema.

use std::fmt;

use super::alias::AliasInfo;
use super::default::DefaultValue;
use super::printer;
use super::type_::Type;

/// An argument or, with an optional name and no default, a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name; empty for a return without one.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Alias annotation.
    pub alias: Option<AliasInfo>,
    /// Default, checked against the type.
    pub default: Option<DefaultValue>,
    /// Whether it can only be given by name: it stands after the `*`.
    pub kwarg_only: bool,
    /// Whether it is an output the caller provides: written and only by name.
    pub is_out: bool,
}

impl Argument {
    /// An argument given by position, without alias or default.
    pub fn new(name: impl Into<String>, ty: Type) -> Argument {
        Argument { name: name.into(), ty, alias: None, default: None, kwarg_only: false, is_out: false }
    }

    /// Whether the operator writes to it.
    pub fn is_write(&self) -> bool {
        self.alias.as_ref().is_some_and(|a| a.is_write)
    }

    /// Whether a named alias set of `self` is one of `other`.
    pub fn may_alias(&self, other: &Argument) -> bool {
        match (&self.alias, &other.alias) {
            (Some(a), Some(b)) => a.shares_set_with(b),
            _ => false,
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_argument(f, self)
    }
}
