//! A whole schema and what can be asked of it.

use std::fmt;
use std::str::FromStr;

use super::argument::Argument;
use super::error::{Result, SchemaError};
use super::operator_name::OperatorName;
use super::parser::Parser;
use super::printer;
use super::type_::Type;

/// Prefix of outputs that only lend memory and are not returned.
const SCRATCH_PREFIX: &str = "_scratch_";

/// The declaration of one operator overload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSchema {
    /// Name and overload.
    pub name: OperatorName,
    /// Arguments, positional ones first.
    pub arguments: Vec<Argument>,
    /// Returns.
    pub returns: Vec<Argument>,
    /// Whether any more arguments may follow: the `...`.
    pub is_vararg: bool,
    /// Whether any more returns may follow.
    pub is_varret: bool,
}

/// How an operator treats its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaKind {
    /// Writes to no argument.
    Functional,
    /// Writes to its first argument: `add_`.
    InPlace,
    /// Writes to outputs that the caller provides: `add.out`.
    Out,
    /// Out, and some outputs are only scratch memory.
    Scratch,
    /// Writes to some other argument, as `_native_batch_norm_legit` does to its running statistics.
    Mutable,
}

impl FunctionSchema {
    /// Reads a schema as `native_functions.yaml` and `TORCH_LIBRARY` write it.
    pub fn parse(text: &str) -> Result<FunctionSchema> {
        Parser::new(text).whole_schema()
    }

    /// Whether it writes to any argument.
    pub fn is_mutable(&self) -> bool {
        self.arguments.iter().any(Argument::is_write)
    }

    /// How many arguments can be given by position.
    pub fn num_positional(&self) -> usize {
        self.arguments.iter().filter(|a| !a.kwarg_only).count()
    }

    /// Index of the argument of that name.
    pub fn argument_index(&self, name: &str) -> Option<usize> {
        self.arguments.iter().position(|a| a.name == name)
    }

    /// The outputs that the caller provides.
    pub fn out_arguments(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|a| a.is_out)
    }

    /// Whether it returns a view: some return shares memory with an argument that it does not write to.
    pub fn is_view(&self) -> bool {
        self.returns.iter().any(|r| self.arguments.iter().any(|a| !a.is_write() && a.may_alias(r)))
    }

    /// Whether it writes to its first argument and returns it, or returns nothing and is named as in-place
    /// operators are, as `_foreach_add_`.
    pub fn is_inplace(&self) -> bool {
        let Some(first) = self.arguments.first() else { return false };
        first.is_write()
            && !first.kwarg_only
            && match self.returns.first() {
                Some(returned) => first.may_alias(returned),
                None => self.name.is_inplace_name(),
            }
    }

    /// Whether the caller provides outputs.
    pub fn is_out(&self) -> bool {
        self.arguments.iter().any(|a| a.is_out)
    }

    /// What it does to its arguments.
    pub fn kind(&self) -> SchemaKind {
        if self.out_arguments().any(|a| a.name.starts_with(SCRATCH_PREFIX)) {
            SchemaKind::Scratch
        } else if self.is_out() {
            SchemaKind::Out
        } else if self.is_inplace() {
            SchemaKind::InPlace
        } else if self.is_mutable() {
            SchemaKind::Mutable
        } else {
            SchemaKind::Functional
        }
    }

    /// Whether it takes dtype, layout, device and pin_memory, one after the other, as factories do.
    pub fn has_tensor_options(&self) -> bool {
        let options = [
            ("dtype", Type::ScalarType),
            ("layout", Type::Layout),
            ("device", Type::Device),
            ("pin_memory", Type::Bool),
        ];
        self.arguments.windows(options.len()).any(|window| {
            window.iter().zip(&options).all(|(a, (name, ty))| a.name == *name && a.ty.unwrap_optional() == ty)
        })
    }

    /// Index of the argument that return `i` shares memory with; the first, where there are several.
    pub fn alias_of_return(&self, i: usize) -> Option<usize> {
        let returned = self.returns.get(i)?;
        self.arguments.iter().position(|a| a.may_alias(returned))
    }

    /// This schema as PyTorch registers and prints it: names of enumeration values replaced by their numbers and
    /// `DeviceIndex` by `int`.
    pub fn resolved(&self) -> FunctionSchema {
        let mut schema = self.clone();
        for argument in schema.arguments.iter_mut().chain(&mut schema.returns) {
            if let Some(default) = &mut argument.default {
                *default = default.resolved(&argument.ty);
            }
            resolve_type(&mut argument.ty);
        }
        schema
    }
}

fn resolve_type(ty: &mut Type) {
    match ty {
        Type::DeviceIndex => *ty = Type::Int,
        Type::Optional(t) | Type::List(t, _) | Type::Future(t) | Type::Await(t) | Type::RRef(t) => {
            resolve_type(t)
        }
        Type::Tuple(ts) | Type::Union(ts) => ts.iter_mut().for_each(resolve_type),
        Type::Dict(k, v) => {
            resolve_type(k);
            resolve_type(v);
        }
        _ => {}
    }
}

impl fmt::Display for FunctionSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_schema(f, self)
    }
}

impl FromStr for FunctionSchema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<FunctionSchema> {
        FunctionSchema::parse(text)
    }
}
