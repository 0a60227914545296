//! What the generic kernels need of a schema, computed at an operator's first call.

use c10::Result;
use dispatch::{FunctionSchema, OperatorHandle};

/// How a return relates to the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnAlias {
    /// Fresh memory.
    None,
    /// A view of the argument of that index.
    View(usize),
    /// The argument of that index itself, modified in place.
    Mutated(usize),
}

/// A schema, digested.
#[derive(Debug)]
pub(crate) struct OpInfo {
    pub(crate) num_args: usize,
    pub(crate) returns: Vec<ReturnAlias>,
    /// Arguments that are written, `out=` ones included.
    pub(crate) mutated: Vec<usize>,
    pub(crate) is_out: bool,
    pub(crate) is_view: bool,
    /// Whether the operator returns several views (or a list of them): none may be modified in place.
    pub(crate) is_multi_output_view: bool,
}

impl OpInfo {
    pub(crate) fn of(op: OperatorHandle) -> Result<Self> {
        Ok(Self::of_schema(op.schema()?))
    }

    fn of_schema(schema: &FunctionSchema) -> Self {
        let args = &schema.arguments;
        let mutated: Vec<usize> = (0..args.len()).filter(|&i| args[i].is_write()).collect();
        let returns: Vec<ReturnAlias> = schema
            .returns
            .iter()
            .map(|ret| match args.iter().position(|arg| ret.may_alias(arg)) {
                Some(i) if args[i].is_write() => ReturnAlias::Mutated(i),
                Some(i) => ReturnAlias::View(i),
                None => ReturnAlias::None,
            })
            .collect();
        let views = returns.iter().filter(|r| matches!(r, ReturnAlias::View(_))).count();
        let returns_view_list = schema
            .returns
            .iter()
            .zip(&returns)
            .any(|(ret, alias)| matches!(alias, ReturnAlias::View(_)) && ret.ty.as_list().is_some());
        Self {
            num_args: args.len(),
            is_out: args.iter().any(|arg| arg.is_out),
            is_view: views > 0,
            is_multi_output_view: views > 1 || returns_view_list,
            returns,
            mutated,
        }
    }
}
