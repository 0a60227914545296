//! Random schemas survive printing and parsing; random texts never panic.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, Index};

use super::super::{alias, AliasInfo, AliasSet, Argument, DefaultValue, FunctionSchema, OperatorName, Type};
use super::registered;

fn arb_type() -> impl Strategy<Value = Type> {
    let plain = select(vec![
        "Tensor",
        "Storage",
        "int",
        "float",
        "bool",
        "complex",
        "Scalar",
        "str",
        "ScalarType",
        "Layout",
        "MemoryFormat",
        "Device",
        "DeviceIndex",
        "Generator",
        "Stream",
        "QScheme",
        "Dimname",
        "SymInt",
        "SymFloat",
        "SymBool",
        "list",
        "AnyEnumType",
        "AnyClassType",
        "tuple",
        "Any",
        "NoneType",
        "Capsule",
        "GraphModule",
        "t",
        "tVal",
        "__torch__.torch.classes.c10d.Work",
    ]);
    let leaf = plain.prop_map(|name| {
        Type::from_name(name).unwrap_or_else(|| match name.starts_with("__") {
            true => Type::Class(name.to_owned()),
            false => Type::Var(name.to_owned()),
        })
    });
    leaf.prop_recursive(4, 12, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(Type::optional),
            (boxed.clone(), option::of(0u32..5)).prop_map(|(t, n)| Type::List(t, n)),
            vec(inner.clone(), 0..4).prop_map(Type::Tuple),
            vec(inner, 2..4).prop_map(Type::Union),
            (boxed.clone(), boxed.clone()).prop_map(|(k, v)| Type::Dict(k, v)),
            boxed.clone().prop_map(Type::Future),
            boxed.clone().prop_map(Type::Await),
            boxed.prop_map(Type::RRef),
        ]
    })
}

fn arb_sets() -> impl Strategy<Value = AliasSet> {
    vec(select(vec!["a", "b", "c", "x1", "*"]), 1..4).prop_map(|names| {
        let mut sets: AliasSet = names.into_iter().map(str::to_owned).collect();
        alias::normalize(&mut sets);
        sets
    })
}

/// Annotations that the type has places for.
fn arb_alias(ty: &Type) -> BoxedStrategy<Option<AliasInfo>> {
    let own = (any::<bool>(), arb_sets(), option::of(arb_sets())).prop_map(|(is_write, before, after)| {
        let after = after.unwrap_or_else(|| before.clone());
        AliasInfo { is_write, before, after, contained: Vec::new() }
    });
    match ty {
        Type::Optional(inner) => arb_alias(inner),
        Type::Tuple(_) | Type::Union(_) => Just(None).boxed(),
        Type::List(element, _) => (arb_alias(element), option::of(own))
            .prop_map(|(elements, own)| match (elements, own) {
                (None, own) => own,
                (Some(elements), None) => Some(AliasInfo::of_elements(elements)),
                (Some(elements), Some(own)) => Some(AliasInfo { contained: vec![elements], ..own }),
            })
            .boxed(),
        _ => option::of(own).boxed(),
    }
}

/// Defaults in the form that parsing gives them.
fn arb_default(ty: &Type) -> BoxedStrategy<DefaultValue> {
    use DefaultValue::*;
    let symbol = |name: &str| Just(Symbol(name.to_owned()));
    let complex = (any::<f64>(), any::<f64>()).prop_map(|(re, im)| Complex { re, im });
    match ty {
        Type::Optional(inner) => match **inner {
            // These take no default but `None` by themselves either.
            Type::Dict(..) | Type::Tuple(_) | Type::Future(_) | Type::Await(_) | Type::RRef(_) => {
                Just(None).boxed()
            }
            _ => prop_oneof![1 => Just(None), 3 => arb_default(inner)].boxed(),
        },
        Type::Int | Type::SymInt | Type::DeviceIndex => {
            prop_oneof![any::<i64>().prop_map(Int), symbol("Mean")].boxed()
        }
        Type::ScalarType => prop_oneof![(0i64..46).prop_map(Int), symbol("long")].boxed(),
        Type::Layout => symbol("strided").boxed(),
        Type::MemoryFormat => symbol("channels_last").boxed(),
        Type::QScheme => symbol("per_tensor_affine").boxed(),
        Type::Device => prop_oneof![symbol("cpu"), symbol("cuda:1")].boxed(),
        Type::Bool | Type::SymBool => any::<bool>().prop_map(Bool).boxed(),
        Type::Float | Type::SymFloat => {
            prop_oneof![any::<f64>(), (-9i32..9).prop_map(f64::from)].prop_map(Float).boxed()
        }
        Type::Complex => complex.boxed(),
        Type::Scalar => prop_oneof![
            any::<i64>().prop_map(Int),
            any::<f64>().prop_map(Float),
            any::<bool>().prop_map(Bool),
            complex
        ]
        .boxed(),
        Type::Str => any::<String>().prop_map(Str).boxed(),
        Type::List(element, size) => {
            let (nested, size) = (element.as_list().is_some(), *size);
            if matches!(
                **element,
                Type::Dict(..) | Type::Tuple(_) | Type::Future(_) | Type::Await(_) | Type::RRef(_)
            ) {
                return Just(List(Vec::new())).boxed();
            }
            vec(arb_default(element), 0..4)
                .prop_map(move |items| match items.first() {
                    Some(first)
                        if !nested
                            && *first != None
                            && size == Some(items.len() as u32)
                            && items.iter().all(|i| i == first) =>
                    {
                        first.clone()
                    }
                    _ => List(items),
                })
                .boxed()
        }
        _ => Just(None).boxed(),
    }
}

/// An argument's type, alias and default, which is not given where the type takes none.
fn arb_argument(with_default: bool) -> BoxedStrategy<Argument> {
    arb_type()
        .prop_flat_map(move |ty| {
            let takes_none = matches!(
                ty,
                Type::Dict(..) | Type::Tuple(_) | Type::Future(_) | Type::Await(_) | Type::RRef(_)
            );
            let ty = if with_default && takes_none { Type::optional(ty) } else { ty };
            (arb_alias(&ty), arb_default(&ty), Just(ty))
        })
        .prop_map(move |(alias, default, ty)| Argument {
            alias,
            default: with_default.then_some(default),
            ..Argument::new("", ty)
        })
        .boxed()
}

fn arb_schema() -> impl Strategy<Value = FunctionSchema> {
    let name = prop_oneof![
        Just(OperatorName::new("aten::add_", "Tensor")),
        Just(OperatorName::new("__and__", "")),
        Just(OperatorName::new("a::_b", "out")),
    ];
    let positional = (vec(arb_argument(false), 0..3), vec(arb_argument(true), 0..3));
    let by_name = vec(any::<bool>().prop_flat_map(arb_argument), 0..3);
    let returns = vec((arb_argument(false), any::<bool>()), 0..3);
    (name, positional, by_name, returns, any::<bool>(), any::<bool>()).prop_map(
        |(name, (mut arguments, optional), by_name, returns, is_vararg, is_varret)| {
            arguments.extend(optional);
            arguments.extend(by_name.into_iter().map(|a| Argument {
                kwarg_only: true,
                is_out: a.is_write(),
                ..a
            }));
            for (i, argument) in arguments.iter_mut().enumerate() {
                argument.name = format!("a{i}");
            }
            let named = |(i, (r, named)): (usize, (Argument, bool))| Argument {
                name: if named { format!("r{i}") } else { String::new() },
                ..r
            };
            let returns = returns.into_iter().enumerate().map(named).collect();
            FunctionSchema { name, arguments, returns, is_vararg, is_varret }
        },
    )
}

/// Pieces that a mutation puts in, picked to reach every state of the parser.
const PIECES: &[&str] = &[
    "(", ")", "[", "]", "[2]", "?", "!", "*", "...", "->", "|", ",", "=", "::", ".", "\"", "'", "\\", "1",
    "1e9", "j", "-", "None", "Tensor", "int", "(a!)", "(a -> *)", "Dict(", "Union(", "nan", " ", "\n", "#",
    "\u{e9}", "\0", "$0",
];

fn arb_mutation() -> impl Strategy<Value = String> {
    let lines: Vec<&'static str> = registered().collect();
    let edits = vec((any::<Index>(), 0usize..4, select(PIECES)), 1..6);
    (select(lines), edits).prop_map(|(line, edits)| {
        let mut text = line.to_owned();
        for (at, removed, piece) in edits {
            let boundaries: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
            let start = at.index(boundaries.len());
            let end = (start + removed).min(boundaries.len() - 1);
            text.replace_range(boundaries[start]..boundaries[end], piece);
        }
        text
    })
}

/// What holds for any text at all.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    let _ = Type::parse(text).map_err(|e| e.to_string());
    let _ = OperatorName::parse(text).map_err(|e| e.to_string());
    match FunctionSchema::parse(text) {
        Ok(schema) => {
            let printed = schema.to_string();
            let again = FunctionSchema::parse(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&schema), "{}", printed);
            let resolved = schema.resolved();
            let again = FunctionSchema::parse(&resolved.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&resolved));
            let _ = (schema.check_valid(), schema.kind(), schema.is_view(), schema.has_tensor_options());
            prop_assert!(schema.is_backward_compatible_with(&schema));
        }
        Err(error) => prop_assert!(error.position().is_some_and(|p| p <= text.len()), "{}", error),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn schemas_survive_printing(schema in arb_schema()) {
        let printed = schema.to_string();
        let parsed = FunctionSchema::parse(&printed).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&parsed, &schema, "{}", printed);
        prop_assert_eq!(parsed.to_string(), printed);
    }

    #[test]
    fn types_survive_printing(ty in arb_type()) {
        prop_assert_eq!(Type::parse(&ty.to_string()), Ok(ty));
    }

    #[test]
    fn mutated_schemas_never_panic(text in arb_mutation()) {
        check_text(&text)?;
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        check_text(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn random_pieces_never_panic(pieces in vec(select(PIECES), 0..40)) {
        check_text(&format!("f({}", pieces.concat()))?;
    }
}
