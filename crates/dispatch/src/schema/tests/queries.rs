//! What schemas say about themselves.

use super::super::{AliasInfo, Argument, SchemaKind, Type};
use super::{registered, schema};

fn by_name(name: &str) -> super::FunctionSchema {
    let found = registered().find(|text| text.starts_with(&format!("aten::{name}(")));
    schema(found.unwrap_or_else(|| panic!("no {name}")))
}

#[test]
fn kinds() {
    use SchemaKind::*;
    let table = [
        ("add.Tensor", Functional),
        ("add_.Tensor", InPlace),
        ("__iand__.Tensor", InPlace),
        ("_foreach_add_.Scalar", InPlace),
        ("as_strided_", InPlace),
        ("add.out", Out),
        ("max.dim_max", Out),
        ("_native_batch_norm_legit", Mutable),
        ("view", Functional),
    ];
    for (name, kind) in table {
        let schema = by_name(name);
        assert_eq!(schema.kind(), kind, "{schema}");
        assert_eq!(schema.is_mutable(), kind != Functional, "{schema}");
        assert_eq!(schema.is_out(), kind == Out, "{schema}");
    }
    let scratch = schema("f.out(Tensor x, *, Tensor(a!) out, Tensor(b!) _scratch_y) -> Tensor(a!)");
    assert_eq!(scratch.kind(), Scratch);
}

#[test]
fn views() {
    for name in ["view", "transpose.int", "split.Tensor", "unbind.int", "detach", "contiguous"] {
        let schema = by_name(name);
        assert!(schema.is_view(), "{schema}");
        assert_eq!(schema.alias_of_return(0), Some(0), "{schema}");
    }
    for name in ["add.Tensor", "add_.Tensor", "add.out", "as_strided_", "clone"] {
        assert!(!by_name(name).is_view(), "{name}");
    }
}

#[test]
fn arguments() {
    let schema = by_name("max.dim_max");
    assert_eq!(schema.num_positional(), 3);
    assert_eq!(schema.argument_index("max_values"), Some(4));
    assert_eq!(schema.argument_index("nothing"), None);
    assert_eq!(schema.out_arguments().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["max", "max_values"]);
    assert_eq!((schema.alias_of_return(0), schema.alias_of_return(1)), (Some(3), Some(4)));
    assert_eq!(schema.alias_of_return(2), None);
    assert!(by_name("zeros").has_tensor_options());
    assert!(by_name("arange.start_step").has_tensor_options());
    assert!(!by_name("sum.dim_IntList").has_tensor_options());
    assert_eq!(schema.arguments[0].ty.as_list(), None);
    assert_eq!(
        by_name("index.Tensor").arguments[1].ty.as_list(),
        Some((&Type::optional(Type::Tensor), None))
    );
    assert!(by_name("index.Tensor").arguments[1].ty.contains_tensor());
}

#[test]
fn inplace_names() {
    let inplace = |name: &str| super::super::OperatorName::new(name, "").is_inplace_name();
    assert!(inplace("aten::add_") && inplace("__iadd__") && inplace("aten::__ior__"));
    assert!(
        !inplace("aten::add") && !inplace("aten::__and__") && !inplace("aten::__index__") && !inplace("_")
    );
}

#[test]
fn invalid_schemas_are_named() {
    let refused = |change: &dyn Fn(&mut super::FunctionSchema), fragment: &str| {
        let mut changed = schema("f(Tensor(a) x, int y=1, *, Tensor(b!) out) -> Tensor(b!)");
        assert_eq!(changed.check_valid(), Ok(()));
        change(&mut changed);
        let Err(error) = changed.check_valid() else { panic!("accepted: {changed}") };
        assert!(error.message().contains(fragment), "{error}\nwithout: {fragment}");
    };
    refused(&|s| s.arguments[1].name = "x".into(), "two arguments `x`");
    refused(&|s| s.arguments[1].name.clear(), "argument 1 has no name");
    refused(&|s| s.arguments.insert(2, Argument::new("z", Type::Int)), "`z` has no default but follows `y`");
    refused(
        &|s| s.arguments.push(Argument::new("z", Type::Int)),
        "`z` is given by position but follows `out`",
    );
    refused(&|s| s.arguments[2].is_out = false, "`out` must be an output exactly if");
    refused(
        &|s| s.returns[0].alias = Some(AliasInfo::new("c", false)),
        "alias set `c`, which no argument has",
    );
    refused(&|s| s.returns[0].alias = Some(AliasInfo::new("a", true)), "return 0 is marked as written");
    refused(&|s| s.returns[0].default = s.arguments[1].default.clone(), "a return has a default");
}
