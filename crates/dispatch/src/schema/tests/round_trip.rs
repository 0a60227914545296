//! Printing gives PyTorch's spelling, and parsing what was printed gives the same schema.

use super::super::{AliasInfo, DefaultValue, FunctionSchema, OperatorName, Type};
use super::{registered, schema};

/// As declared, and as PyTorch prints it once registered.
const DECLARED: &[(&str, &str)] = &[
    (
        "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
        "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    ),
    (
        "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
        "allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    ),
    (
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    ),
    (
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
    ),
    (
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
    ),
    (
        "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor",
        "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
    ),
    (
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
    ),
    (
        "_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, float scale=1, int zero_point=0, MemoryFormat? memory_format=contiguous_format) -> Tensor",
        "_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, float scale=1., int zero_point=0, MemoryFormat? memory_format=0) -> Tensor",
    ),
    (
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor",
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
    ),
    (
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
    ),
    (
        "_cufft_get_plan_cache_size(DeviceIndex device_index) -> int",
        "_cufft_get_plan_cache_size(int device_index) -> int",
    ),
    (
        "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    ),
    (
        "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
        "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor",
    ),
    (
        "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
        "pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
    ),
    (
        "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    ),
    (
        "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
        "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
    ),
    (
        "gelu.out(Tensor self, *, str approximate='none', Tensor(a!) out) -> Tensor(a!)",
        r#"gelu.out(Tensor self, *, str approximate="none", Tensor(a!) out) -> Tensor(a!)"#,
    ),
    (
        "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
        "celu(Tensor self, Scalar alpha=1.) -> Tensor",
    ),
    (
        "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
        "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
    ),
    (
        "_philox_normal_(Tensor(a!) self, Tensor key, float mean=0, float std=1) -> Tensor(a!)",
        "_philox_normal_(Tensor(a!) self, Tensor key, float mean=0., float std=1.) -> Tensor(a!)",
    ),
    (
        "_philox_uniform_(Tensor(a!) self, Tensor key, float low=0, float high=1) -> Tensor(a!)",
        "_philox_uniform_(Tensor(a!) self, Tensor key, float low=0., float high=1.) -> Tensor(a!)",
    ),
    (
        "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
        "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
    ),
    (
        "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
        "uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    ),
    (
        "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
        "cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)",
    ),
    (
        "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
        "log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)",
    ),
    (
        "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
        "exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
    ),
    (
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
    ),
    (
        "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        r#"quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor"#,
    ),
    (
        "smooth_l1_loss.out(Tensor self, Tensor target, int reduction=Mean, float beta=1.0, *, Tensor(a!) out) -> Tensor(a!)",
        "smooth_l1_loss.out(Tensor self, Tensor target, int reduction=1, float beta=1., *, Tensor(a!) out) -> Tensor(a!)",
    ),
    (
        "huber_loss.out(Tensor self, Tensor target, int reduction=Mean, float delta=1.0, *, Tensor(a!) out) -> Tensor(a!)",
        "huber_loss.out(Tensor self, Tensor target, int reduction=1, float delta=1., *, Tensor(a!) out) -> Tensor(a!)",
    ),
    (
        "fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    ),
    (
        "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        r#"linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"#,
    ),
    (
        "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
        r#"linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)"#,
    ),
    (
        r#"_test_string_default(Tensor dummy, str a="\"'\\", str b='"\'\\') -> Tensor"#,
        r#"_test_string_default(Tensor dummy, str a="\"\'\\", str b="\"\'\\") -> Tensor"#,
    ),
    (
        r#"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> Tensor"#,
        r#"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side="right") -> Tensor"#,
    ),
    (
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    ),
    // Blanks, comments, and the namespace.
    (" a :: b ( Tensor self , int x = 1 ) -> ( Tensor , int )", "a::b(Tensor self, int x=1) -> (Tensor, int)"),
    ("a::b(Tensor x, # first\n  int y) -> ()", "a::b(Tensor x, int y) -> ()"),
    // `*` and `...`.
    ("a::b(Tensor x, *, ...) -> ()", "a::b(Tensor x, ...) -> ()"),
    ("a::b(Tensor x, *) -> (...)", "a::b(Tensor x) -> ..."),
    ("a::b(...) -> (Tensor, ...)", "a::b(...) -> (Tensor, ...)"),
    ("a::b() -> (int a)", "a::b() -> int a"),
    ("a::b((Tensor, int) x) -> ((Tensor, int))", "a::b((Tensor, int) x) -> ((Tensor, int))"),
    // Alias annotations.
    ("a::b(Tensor(a -> *) x) -> Tensor(a)[]", "a::b(Tensor(a -> *) x) -> Tensor(a)[]"),
    ("a::b(Tensor(a! -> a) x) -> Tensor(*!)", "a::b(Tensor(a!) x) -> Tensor(*!)"),
    ("a::b(Tensor(a! -> a|b) x) -> Tensor", "a::b(Tensor(a! -> b|a) x) -> Tensor"),
    ("a::b(Tensor(a|a) x) -> Tensor", "a::b(Tensor(a) x) -> Tensor"),
    ("a::b(Tensor(a!)[](b) x) -> Tensor(a)[]", "a::b(Tensor(a!)[](b) x) -> Tensor(a)[]"),
    ("a::b(int[2] (a!) x) -> Tensor", "a::b(int[2](a!) x) -> Tensor"),
    ("a::b(Tensor(a!)[2]? x) -> Tensor(a)?", "a::b(Tensor(a!)[2]? x) -> Tensor(a)?"),
    ("a::b((Tensor(a), Tensor(b!)) x) -> ()", "a::b((Tensor, Tensor) x) -> ()"),
    // Types.
    ("a::b(int??? x, int[][] y, () z) -> ()", "a::b(int? x, int[][] y, () z) -> ()"),
    ("a::b(RRef(int) x, tVal[] y) -> Union(int, str)", "a::b(RRef(int) x, tVal[] y) -> Union(int, str)"),
    ("a::b(Dict(str, t)(a!) self, list l) -> t(*)", "a::b(Dict(str, t)(a!) self, list l) -> t(*)"),
    ("a::b(Storage s, Capsule c, NoneType n) -> QScheme", "a::b(Storage s, Capsule c, NoneType n) -> QScheme"),
    // Defaults: lists that one value stands for.
    ("a::b(int[2] x=[1,1]) -> ()", "a::b(int[2] x=1) -> ()"),
    ("a::b(int[2] x=[1,2]) -> ()", "a::b(int[2] x=[1, 2]) -> ()"),
    ("a::b(int[1] x=1, int[1]? y=1) -> ()", "a::b(int[1] x=[1], int[1]? y=1) -> ()"),
    ("a::b(bool[3] x=True, float[2] y=1) -> ()", "a::b(bool[3] x=[True, True, True], float[2] y=[1., 1.]) -> ()"),
    ("a::b(float[] x=[1, 2.5]) -> ()", "a::b(float[] x=[1., 2.5]) -> ()"),
    // Defaults: numbers.
    ("a::b(int x=-9223372036854775808) -> ()", "a::b(int x=-9223372036854775808) -> ()"),
    ("a::b(float x=0.1, float y=.5) -> ()", "a::b(float x=0.10000000000000001, float y=0.5) -> ()"),
    ("a::b(float x=1e17, float y=1e19) -> ()", "a::b(float x=100000000000000000., float y=1e+19) -> ()"),
    ("a::b(float x=1e-9, float y=123456789.125) -> ()", "a::b(float x=1.0000000000000001e-09, float y=123456789.125) -> ()"),
    ("a::b(complex x=-2.5j, Scalar y=1j) -> ()", "a::b(complex x=0.-2.5j, Scalar y=0.+1.j) -> ()"),
    ("a::b(Scalar x=1, Scalar y=1e-3, Scalar z=True) -> ()", "a::b(Scalar x=1, Scalar y=0.001, Scalar z=True) -> ()"),
    // Defaults: names.
    ("a::b(ScalarType? x=float, Layout y=strided) -> ()", "a::b(ScalarType? x=6, Layout y=0) -> ()"),
    ("a::b(Device x=\"cuda:0\", Device? y=\"cpu\") -> ()", "a::b(Device x=cuda:0, Device? y=cpu) -> ()"),
    ("a::b(Tensor x=None, int y=None) -> ()", "a::b(Tensor x=None, int y=None) -> ()"),
];

#[test]
fn declared_schemas_print_as_registered() {
    for (declared, registered) in DECLARED {
        let parsed = schema(declared);
        assert_eq!(parsed.resolved().to_string(), *registered, "{declared}");
        assert_eq!(schema(&parsed.to_string()), parsed, "{declared}");
    }
}

#[test]
fn registered_schemas_print_unchanged() {
    assert!(registered().count() > 200);
    for text in registered() {
        let parsed = schema(text);
        assert_eq!(parsed.to_string(), text);
        assert_eq!(schema(text), parsed);
        parsed.check_valid().unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn names_of_values_are_kept_until_resolved() {
    let text =
        "nll(Tensor x, int reduction=Mean, *, MemoryFormat? f=preserve_format, Device d=cuda:1) -> Tensor";
    let parsed = schema(text);
    assert_eq!(parsed.to_string(), text);
    assert_eq!(parsed.arguments[1].default, Some(DefaultValue::Symbol("Mean".into())));
    assert_eq!(parsed.resolved().arguments[2].default, Some(DefaultValue::Int(1)));
    assert_eq!(parsed.resolved().arguments[3].default, Some(DefaultValue::Symbol("cuda:1".into())));
}

#[test]
fn floats_that_pytorch_cannot_declare_round_trip() {
    let text =
        "f(float a=inf, float b=-inf, float c=nan, float d=-0., Scalar e=nan, complex f=inf-nanj) -> ()";
    let parsed = schema(text);
    assert_eq!(parsed.arguments[1].default, Some(DefaultValue::Float(f64::NEG_INFINITY)));
    assert_eq!(parsed.arguments[3].default, Some(DefaultValue::Float(-0.0)));
    assert_ne!(parsed.arguments[3].default, Some(DefaultValue::Float(0.0)));
    assert_eq!(schema(&parsed.to_string()), parsed);
}

#[test]
fn strings_resolve_their_escapes() {
    let parsed = schema(r#"f(str a="\t\\\"\101\303\251", str b='é"') -> ()"#);
    assert_eq!(parsed.arguments[0].default, Some(DefaultValue::Str("\t\\\"Aé".into())));
    assert_eq!(parsed.arguments[1].default, Some(DefaultValue::Str("é\"".into())));
    assert_eq!(parsed.arguments[1].to_string(), r#"str b="\303\251\"""#);
}

#[test]
fn anonymous_alias_sets_are_numbered_in_order_of_printing() {
    let parsed = schema("f((Tensor!, int) a, Tensor! b, Tensor![] c) -> ()");
    assert_eq!(parsed.arguments[1].alias, Some(AliasInfo::new("$0", true)));
    assert_eq!(parsed.to_string(), "f((Tensor, int) a, Tensor! b, Tensor![] c) -> ()");
    assert_eq!(schema(&parsed.to_string()), parsed);
}

#[test]
fn one_value_stands_for_the_elements_of_a_fixed_list() {
    let parsed = schema("f(int[3] a=1, int[] b=[1, 2], int c=1, int[2]? d=None) -> ()");
    let elements =
        |i: usize| parsed.arguments[i].default.as_ref().and_then(|d| d.elements(&parsed.arguments[i].ty));
    assert_eq!(elements(0), Some(vec![DefaultValue::Int(1); 3]));
    assert_eq!(elements(1), Some(vec![DefaultValue::Int(1), DefaultValue::Int(2)]));
    assert_eq!(elements(2), None);
    assert_eq!(elements(3), None);
}

#[test]
fn types_and_names_parse_alone() {
    for text in
        ["SymInt[2]?", "Tensor?[]", "(Tensor, int)", "Dict(str, t[])", "__torch__.torch.classes.c10d.Work"]
    {
        assert_eq!(Type::parse(text).map(|t| t.to_string()).as_deref(), Ok(text));
    }
    assert!(Type::parse("Tensor(a!)").is_err());
    assert!(Type::parse("int x").is_err());
    let name: Result<OperatorName, _> = "aten::add.Tensor".parse();
    assert_eq!(name, Ok(OperatorName::new("aten::add", "Tensor")));
    assert_eq!(name.map(|n| n.to_string()).as_deref(), Ok("aten::add.Tensor"));
    assert!(OperatorName::parse("aten::add.").is_err());
    let mut bare = OperatorName::new("add", "");
    bare.set_namespace_if_not_set("aten");
    bare.set_namespace_if_not_set("other");
    assert_eq!((bare.namespace(), bare.base_name()), (Some("aten"), "add"));
    assert!(FunctionSchema::parse("aten::add").is_err());
}
