//! [`OpInfo`]: what generic kernels need of a schema, digested once.

use super::function_schema::{FunctionSchema, SchemaKind};
use super::type_::Type;

/// How a return relates to the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnAlias {
    /// Fresh memory.
    None,
    /// A view of the argument of that index, or a list of such views.
    View(usize),
    /// The argument of that index itself, modified in place.
    Mutated(usize),
}

/// A schema as numbers. The dispatcher keeps one beside each schema and replaces both together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// How the operator treats its arguments.
    pub kind: SchemaKind,
    /// The number of arguments.
    pub num_args: usize,
    /// What each return is.
    pub returns: Vec<ReturnAlias>,
    /// The arguments that may hold tensors: tensors, optional ones, and lists of either.
    pub tensor_args: Vec<usize>,
    /// The arguments that are written, lists and `out=` included.
    pub mutated: Vec<usize>,
    /// The written arguments that no return stands for: all of them, where an operator returns nothing.
    pub mutated_unreturned: Vec<usize>,
    /// The written arguments whose sizes or storage may be replaced: `out=`, and what `resize_` and its like are called on.
    pub reshaped: Vec<usize>,
    /// Whether the operator draws random numbers.
    pub is_random: bool,
    /// Whether the caller provides outputs.
    pub is_out: bool,
    /// Whether the operator changes what an argument shows of its memory, not the memory.
    pub is_inplace_view: bool,
    /// Whether any return is a view.
    pub is_view: bool,
    /// Whether the operator returns several views (or a list of them): none may be modified in place.
    pub is_multi_output_view: bool,
}

impl OpInfo {
    /// Digests a schema and the tags of its operator.
    pub fn new(schema: &FunctionSchema, tags: &[&str]) -> OpInfo {
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
        let is_view = |r: &ReturnAlias| matches!(r, ReturnAlias::View(_));
        let views = returns.iter().filter(|r| is_view(r)).count();
        let mut aliased = schema.returns.iter().zip(&returns);
        let returns_view_list = aliased.any(|(ret, alias)| is_view(alias) && ret.ty.as_list().is_some());
        OpInfo {
            kind: schema.kind(),
            num_args: args.len(),
            tensor_args: (0..args.len()).filter(|&i| may_hold_tensors(&args[i].ty)).collect(),
            mutated_unreturned: mutated
                .iter()
                .copied()
                .filter(|&i| !returns.contains(&ReturnAlias::Mutated(i)))
                .collect(),
            reshaped: if schema.is_out() || tags.contains(&"inplace_view") {
                mutated.clone()
            } else {
                Vec::new()
            },
            is_random: tags.contains(&"nondeterministic_seeded"),
            is_out: schema.is_out(),
            is_inplace_view: tags.contains(&"inplace_view"),
            is_view: views > 0,
            is_multi_output_view: views > 1 || returns_view_list,
            returns,
            mutated,
        }
    }

    /// The number of returns.
    pub fn num_returns(&self) -> usize {
        self.returns.len()
    }

    /// Whether what the operator writes to is its result: its in-place argument or its `out=`, and not, say, running
    /// statistics that it keeps on the side.
    #[inline]
    pub fn writes_results(&self) -> bool {
        matches!(self.kind, SchemaKind::InPlace | SchemaKind::Out | SchemaKind::Scratch)
    }

    /// Whether the operator writes to an argument.
    pub fn is_mutable(&self) -> bool {
        !self.mutated.is_empty()
    }
}

fn may_hold_tensors(ty: &Type) -> bool {
    match ty {
        Type::Tensor | Type::Any | Type::AnyList => true,
        Type::Optional(inner) | Type::List(inner, _) => may_hold_tensors(inner),
        Type::Union(types) => types.iter().any(may_hold_tensors),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(schema: &str) -> OpInfo {
        OpInfo::new(&FunctionSchema::parse(schema).unwrap(), &[])
    }

    #[test]
    fn outputs_and_what_is_resized_may_get_another_shape() {
        assert_eq!(info("neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").reshaped, [1]);
        assert!(info("neg_(Tensor(a!) self) -> Tensor(a!)").reshaped.is_empty());
        let resize_ = FunctionSchema::parse("resize_(Tensor(a!) self, SymInt[] size) -> Tensor(a!)").unwrap();
        assert_eq!(OpInfo::new(&resize_, &["inplace_view"]).reshaped, [0]);
        assert!(OpInfo::new(&resize_, &["nondeterministic_seeded"]).is_random);
    }

    #[test]
    fn written_arguments_are_found_returned_or_not() {
        let add_ = info("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
        assert_eq!((add_.num_args, &add_.tensor_args[..], &add_.mutated[..]), (3, &[0, 1][..], &[0][..]));
        assert_eq!((&add_.returns[..], add_.mutated_unreturned.len()), (&[ReturnAlias::Mutated(0)][..], 0));
        assert!(add_.writes_results());
        let foreach = info("_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()");
        assert_eq!((&foreach.mutated[..], &foreach.mutated_unreturned[..]), (&[0][..], &[0][..]));
        let running = info("f(Tensor x, Tensor(a!) mean) -> Tensor");
        assert!(running.is_mutable() && !running.writes_results());
        let stats = info("f(Tensor x, Tensor(a!)? mean, Tensor(b!) out) -> (Tensor, Tensor(b!))");
        assert_eq!((&stats.mutated[..], &stats.mutated_unreturned[..]), (&[1, 2][..], &[1][..]));
    }

    #[test]
    fn views_are_told_from_modified_arguments() {
        assert_eq!(info("t(Tensor(a) self) -> Tensor(a)").returns, [ReturnAlias::View(0)]);
        assert!(!info("t(Tensor(a) self) -> Tensor(a)").is_multi_output_view);
        assert!(info("split.Tensor(Tensor(a -> *) self, SymInt n) -> Tensor(a)[]").is_multi_output_view);
        assert!(!info("neg(Tensor self) -> Tensor").is_view);
    }
}
