//! Names of operators: `aten::add.Tensor`.

use std::fmt;
use std::str::FromStr;

use super::error::{Result, SchemaError};
use super::parser::Parser;

/// A name with its namespace, and the overload, which is empty for the default one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperatorName {
    /// `aten::add`; the namespace may be absent, as in `native_functions.yaml`.
    pub name: String,
    /// `Tensor`, or empty.
    pub overload: String,
}

impl OperatorName {
    /// A name from its parts, which are taken as they are.
    pub fn new(name: impl Into<String>, overload: impl Into<String>) -> OperatorName {
        OperatorName { name: name.into(), overload: overload.into() }
    }

    /// Reads `aten::add.Tensor`.
    pub fn parse(text: &str) -> Result<OperatorName> {
        Parser::new(text).whole_operator_name()
    }

    /// `aten` of `aten::add`.
    pub fn namespace(&self) -> Option<&str> {
        self.name.split_once("::").map(|(namespace, _)| namespace)
    }

    /// `add` of `aten::add`.
    pub fn base_name(&self) -> &str {
        self.name.split_once("::").map_or(&self.name, |(_, base)| base)
    }

    /// Puts the name into `namespace` unless it has one already.
    pub fn set_namespace_if_not_set(&mut self, namespace: &str) {
        if self.namespace().is_none() {
            self.name = format!("{namespace}::{}", self.name);
        }
    }

    /// Whether the name says "in place": `add_`, `__iadd__`, but not `__add__` or `__`.
    pub fn is_inplace_name(&self) -> bool {
        let base = self.base_name();
        match base.strip_prefix("__").and_then(|b| b.strip_suffix("__")) {
            // The augmented operators; the plain ones that begin with `i` are functional.
            Some(dunder) => {
                matches!(
                    dunder,
                    "iadd" | "isub" | "imul" | "idiv" | "itruediv" | "ifloordiv" | "imod" | "ipow"
                ) || matches!(dunder, "iand" | "ior" | "ixor" | "ilshift" | "irshift" | "imatmul")
            }
            None => base.len() > 1 && base.ends_with('_') && !base.ends_with("__"),
        }
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.overload.is_empty() {
            write!(f, ".{}", self.overload)?;
        }
        Ok(())
    }
}

impl FromStr for OperatorName {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<OperatorName> {
        OperatorName::parse(text)
    }
}
