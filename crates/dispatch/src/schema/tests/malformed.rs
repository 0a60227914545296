//! Mistakes are refused, with what was expected, what was found and where.

use super::super::{FunctionSchema, OperatorName, Type};
use super::registered;

/// A text, a fragment of the message, and the text that the caret line underlines first.
const MALFORMED: &[(&str, &str, &str)] = &[
    ("", "expected an operator name, found the end of the text", ""),
    ("::b() -> ()", "expected an operator name, found '::'", "::b"),
    ("a::() -> ()", "expected an operator name after the namespace, found '('", "() ->"),
    ("a::b.() -> ()", "expected an overload name, found '('", "() ->"),
    ("a::b.x.y() -> ()", "expected '(' before the arguments, found '.'", ".y"),
    ("a::b::c() -> ()", "expected '(' before the arguments, found '::'", "::c"),
    ("a::b.default() -> ()", "`default` is no overload name", "default"),
    ("a::for() -> ()", "found the keyword `for`", "for"),
    ("f(Tensor x)", "expected '->' after the arguments, found the end", ""),
    ("f(Tensor x) -> () g", "expected the end of the text after the returns, found a name `g`", "g"),
    ("f(Tensor x", "expected ',' or ')' after an argument, found the end", ""),
    ("f(Tensor x int y) -> ()", "expected ',' or ')' after an argument, found a name `int`", "int y"),
    ("f(Tensor) -> ()", "expected an argument name, found ')'", ") ->"),
    ("f(Tensor x,) -> ()", "expected a type, found ')'", ") ->"),
    ("f(Tensor in) -> ()", "expected an argument name, found the keyword `in`", "in)"),
    ("f(Tensor x, Tensor x) -> ()", "there is already an argument `x`", "x) ->"),
    ("f(int x=1, int y) -> ()", "argument `y` has no default but follows `x`", "y) ->"),
    ("f(..., int x) -> ()", "expected ')' after '...', which must come last, found ','", ", int"),
    ("f(*, int x, *, int y) -> ()", "found a second '*'", "*, int y"),
    ("f() -> (int, ..., int)", "expected ')' after '...'", ", int)"),
    ("f() -> (int int int)", "expected ',' or ')' after a return, found a name `int`", "int)"),
    ("f() -> (int for)", "expected a return name, found the keyword `for`", "for)"),
    ("f(tensor? x, Foo y) -> ()", "expected a type such as Tensor, SymInt", "Foo"),
    ("f(_t y) -> ()", "found `_t`", "_t"),
    ("f(int[-1] x) -> ()", "expected ']' or a list size, found '-'", "-1"),
    ("f(int[4294967296] x) -> ()", "a whole number below 2**32", "4294967296"),
    ("f(int[1.5] x) -> ()", "expected a list size", "1.5"),
    ("f(int[2 x) -> ()", "expected ']' after the list size", "x)"),
    ("f(Dict(int) x) -> ()", "expected ',' between the key and value types of `Dict`, found ')'", ") x"),
    ("f(Union[int, str] x) -> ()", "expected '(' after `Union`, found '['", "[int"),
    ("f(Union(int) x) -> ()", "expected at least two types in `Union`, found 1", "Union"),
    ("f((int x) y) -> ()", "expected ',' or ')' after a type, found a name `x`", "x)"),
    ("f(Future int) -> ()", "expected '(' before the type inside", "int"),
    ("f(__torch__.Foo x) -> ()", "expected `torch`: classes are named", "Foo"),
    ("f(__torch__.torch.classes.x y) -> ()", "expected '.' in the class name, found a name `y`", "y)"),
    ("f(Tensor?(a) x) -> ()", "expected an argument name, found '('", "(a)"),
    ("f(Tensor() x) -> ()", "expected an alias set or '*', found ')'", ") x"),
    ("f(Tensor(a, b) x) -> ()", "expected ')' after the alias annotation, found ','", ", b"),
    ("f(Tensor(a!!) x) -> ()", "expected ')' after the alias annotation, found '!'", "!) x"),
    ("f(Tensor(a -> ) x) -> ()", "expected an alias set or '*', found ')'", ") x"),
    ("f(Tensor(a->b!) x) -> ()", "found '!'", "!) x"),
    ("f(int x=) -> ()", "expected a whole number, found ')'", ") ->"),
    ("f(int x=1.5) -> ()", "expected a whole number for type int", "1.5"),
    ("f(int x=Foo) -> ()", "expected a number or a name known for type int, found a name `Foo`", "Foo"),
    ("f(int x=+1) -> ()", "found '+'", "+1"),
    ("f(int x=0x10) -> ()", "expected ',' or ')' after an argument, found a name `x10`", "x10"),
    ("f(int x=9223372036854775808) -> ()", "too large for an int", "9223372036854775808"),
    ("f(int x=-9223372036854775809) -> ()", "too large for an int", "9223372036854775809"),
    ("f(float x=1e400) -> ()", "too large for a float", "1e400"),
    ("f(float x=1j) -> ()", "expected a real number", "1j"),
    ("f(float x=Mean) -> ()", "expected a number, found a name `Mean`", "Mean"),
    ("f(complex x=1+2) -> ()", "expected an imaginary number such as 2j", "2)"),
    ("f(bool x=yes) -> ()", "expected True or False, found a name `yes`", "yes"),
    ("f(str x=foo) -> ()", "expected a string, found a name `foo`", "foo"),
    ("f(str x=\"foo) -> ()", "expected a string, found an unterminated string", "\"foo"),
    (r#"f(str x="\q") -> ()"#, "expected an escape that exists", r#""\q""#),
    (r#"f(str x="\18") -> ()"#, "expected three octal digits", r#""\18""#),
    (r#"f(str x="\377") -> ()"#, "no UTF-8", r#""\377""#),
    ("f(Tensor x=foo) -> ()", "expected `None`, the only default of type Tensor", "foo"),
    ("f(ScalarType x=strided) -> ()", "a name known for type ScalarType", "strided"),
    ("f(Device x=\"a b\") -> ()", "expected a device such as cpu", "\"a b\""),
    ("f(Device x=1) -> ()", "expected a device such as cpu", "1)"),
    ("f(int[] x=1) -> ()", "expected '[' of a list, found a number `1`", "1)"),
    ("f(int[] x=None) -> ()", "`None` is no value of type int[]; write int[]? to allow it", "None"),
    ("f(int[] x=[1,]) -> ()", "expected a whole number, found ']'", "])"),
    ("f(int[] x=[1 2]) -> ()", "expected ',' or ']' after a list element", "2]"),
    ("f(int[0] x=1) -> ()", "one value cannot stand for a list of size 0", "1)"),
    ("f(SymInt[4000000000] x=1) -> ()", "one value stands for at most 1024 elements", "1)"),
    ("f(Dict(int, str) x={}) -> ()", "expected `None`", "{}"),
    ("f(Tensor \u{e9}) -> ()", "expected an argument name, found an unexpected character", "\u{e9}"),
    ("f(Tensor\n  x,\n  Foo y) -> ()", "found `Foo`", "Foo"),
];

#[test]
fn messages_say_what_was_expected_and_where() {
    for (text, fragment, at) in MALFORMED {
        let Err(error) = FunctionSchema::parse(text) else { panic!("accepted: {text}") };
        assert!(error.message().contains(fragment), "{text}\n{error}\nwithout: {fragment}");
        let position = error.position().unwrap_or_else(|| panic!("no position: {text}"));
        assert!(text[position..].starts_with(at), "{error}\nis not at: {at}");
        assert!(error.to_string().ends_with("~ <--- HERE"), "{error}");
    }
}

#[test]
fn the_caret_line_stands_under_the_token() {
    let Err(error) = FunctionSchema::parse("f(Tensor\n  x, Foo y) -> ()") else { panic!("accepted") };
    let shown = error.to_string();
    assert!(shown.ends_with(":\n  x, Foo y) -> ()\n     ~~~ <--- HERE"), "{shown}");
}

#[test]
fn long_texts_are_shown_in_part() {
    let long = "f".repeat(100_000);
    for text in [
        format!("f(int x, Foo y{})", ", int z".repeat(100_000)),
        format!("f(F{long} x)"),
        format!("f(int {long}, int {long})"),
        format!("f({long} x=1)"),
        format!("f(int x={long})"),
        long,
    ] {
        let Err(error) = FunctionSchema::parse(&text) else { panic!("accepted") };
        assert!(error.to_string().len() < 2000);
    }
}

#[test]
fn hostile_nesting_is_refused_without_recursion() {
    let n = 1_000_000;
    for open in ["(", "Dict(int, ", "Future(", "Union(int, ", "(int, "] {
        let error = Type::parse(&open.repeat(n)).map_err(|e| e.message().to_owned());
        assert_eq!(error, Err("the type nests deeper than 32 levels".to_owned()), "{open}");
    }
    for suffix in ["[]", "[2]", "[]?"] {
        let text = format!("f(int{} x) -> ()", suffix.repeat(n));
        assert!(FunctionSchema::parse(&text).is_err_and(|e| e.message().contains("nests deeper")));
    }
    // An optional optional is an optional, however often it is said.
    let text = format!("Tensor{}", "?".repeat(n));
    assert_eq!(Type::parse(&text), Ok(Type::optional(Type::Tensor)));
    assert!(FunctionSchema::parse(&format!("f(int[] x={}", "[".repeat(n))).is_err());
}

#[test]
fn many_arguments_are_read_in_linear_time() {
    let n = 50_000;
    let list: Vec<String> = (0..n).map(|i| format!("int a{i}")).collect();
    let text = format!("f({}) -> ()", list.join(", "));
    assert_eq!(FunctionSchema::parse(&text).map(|s| s.arguments.len()), Ok(n));
    let repeated = format!("f({}, int a7) -> ()", list.join(", "));
    assert!(FunctionSchema::parse(&repeated).is_err_and(|e| e.message().contains("already an argument `a7`")));
}

#[test]
fn every_prefix_and_every_removed_byte_is_handled() {
    for text in registered() {
        for i in 0..text.len() {
            let _ = FunctionSchema::parse(&text[..i]);
            let _ = OperatorName::parse(&text[i..]);
            let _ = Type::parse(&text[i..]);
            let without = [&text[..i], &text[i + 1..]].concat();
            if let Ok(parsed) = FunctionSchema::parse(&without) {
                assert_eq!(FunctionSchema::parse(&parsed.to_string()), Ok(parsed));
            }
        }
    }
}
