//! Newer schemas against older ones.

use super::super::Type;
use super::schema;

fn subtype(a: &str, b: &str) -> bool {
    match (Type::parse(a), Type::parse(b)) {
        (Ok(a), Ok(b)) => a.is_subtype_of(&b),
        _ => panic!("{a} or {b} is no type"),
    }
}

#[test]
fn subtypes() {
    for (a, b) in [
        ("int", "Scalar"),
        ("int", "SymInt?"),
        ("int[2]", "SymInt[2]"),
        ("int[]?", "SymInt[]?"),
        ("NoneType", "Tensor?"),
        ("(int, float)", "(Scalar, float?)"),
        ("Tensor[]", "list"),
        ("Union(int, float)", "Scalar"),
        ("str", "Union(int, str)"),
        ("t", "Any"),
    ] {
        assert!(subtype(a, b), "{a} is no {b}");
        assert!(a == b || !subtype(b, a), "{b} is {a}");
    }
    assert!(!subtype("Tensor[]", "Tensor?[]"));
    assert!(!subtype("int[2]", "int[3]"));
    assert!(!subtype("bool", "Scalar"));
}

#[test]
fn changes_of_a_schema() {
    let old = "f(Tensor self, int[2] k=1, *, int r=1, Tensor(a!) out) -> Tensor(a!)";
    let compatible = [
        old,
        "f(Tensor self, int[2] k=[1, 1], *, int r=Mean, Tensor(a!) out) -> Tensor(a!)",
        "f(Tensor? self, SymInt[2] k=1, int r=1, *, Tensor(a!) out) -> Tensor(a!)",
        "f(Tensor self, int[2] k=1, *, int r=1, bool new=False, Tensor(a!) out) -> Tensor(a!)",
        "f(Tensor self=None, int[2] k=1, *, Scalar r=1, Tensor(a!) out) -> Tensor(a!)",
    ];
    for new in compatible {
        assert_eq!(schema(new).check_backward_compatible_with(&schema(old)), Ok(()), "{new}");
    }
    let incompatible = [
        ("g(Tensor self, int[2] k=1, *, int r=1, Tensor(a!) out) -> Tensor(a!)", "was named `f`"),
        ("f(Tensor x, int[2] k=1, *, int r=1, Tensor(a!) out) -> Tensor(a!)", "`self` became `x`"),
        (
            "f(Tensor self, *, int[2] k=1, int r=1, Tensor(a!) out) -> Tensor(a!)",
            "no longer be given by position",
        ),
        ("f(Tensor self, int[2] k, *, int r=1, Tensor(a!) out) -> Tensor(a!)", "no longer has the default 1"),
        (
            "f(Tensor self, int[2] k=2, *, int r=1, Tensor(a!) out) -> Tensor(a!)",
            "default of argument `k` was 1 and is 2",
        ),
        ("f(Tensor self, int[3] k=1, *, int r=1, Tensor(a!) out) -> Tensor(a!)", "does not fit int[3]"),
        (
            "f(Tensor(b) self, int[2] k=1, *, int r=1, Tensor(a!) out) -> Tensor(a!)",
            "another alias annotation",
        ),
        (
            "f(Tensor self, int[2] k=1, *, int r=1, bool new, Tensor(a!) out) -> Tensor(a!)",
            "`new` is new and has no",
        ),
        ("f(Tensor self, int[2] k=1, *, Tensor(a!) out) -> Tensor(a!)", "there were 3 arguments and are 2"),
        ("f(Tensor self, int[2] k=1, *, int r=1) -> Tensor", "return 0 was"),
        ("f(Tensor self, int[2] k=1, *, int r=1, Tensor(a!) out) -> ()", "there were 1 returns and are 0"),
        ("f(Tensor self, int[2] k=1, *, int r=1, Tensor(a!) out, ...) -> Tensor(a!)", "any number"),
    ];
    for (new, reason) in incompatible {
        let new = schema(new);
        assert!(!new.is_backward_compatible_with(&schema(old)), "{new}");
        let Err(found) = new.check_backward_compatible_with(&schema(old)) else { panic!("accepted: {new}") };
        assert!(found.contains(reason), "{found}\nis not: {reason}");
    }
}

#[test]
fn returns_may_narrow_but_not_widen() {
    let (wide, narrow) = (schema("f(int x) -> Tensor?"), schema("f(int x) -> Tensor"));
    assert!(narrow.is_backward_compatible_with(&wide));
    assert!(!wide.is_backward_compatible_with(&narrow));
}
