//! Attention in blocks against the formula in double precision.

use c10::{BFloat16, Element, Half, Result, Tensor};

use crate::test_tensor::{elements, kernel, layouts, set_elements, with_threads, zeros};

type ForwardFn =
    fn(&Tensor, &Tensor, &Tensor, f64, bool, Option<&Tensor>, Option<f64>, &[Tensor]) -> Result<()>;
type BackwardFn = fn(
    &Tensor,
    &Tensor,
    &Tensor,
    &Tensor,
    &Tensor,
    &Tensor,
    f64,
    bool,
    Option<&Tensor>,
    Option<f64>,
    &[Tensor],
) -> Result<()>;

/// Sizes of a call.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: i64,
    heads: i64,
    /// Heads of keys and values.
    key_heads: i64,
    queries: i64,
    keys: i64,
    width: i64,
    causal: bool,
    mask: Option<[i64; 4]>,
    scale: Option<f64>,
}

const PLAIN: Case = Case {
    batch: 1,
    heads: 1,
    key_heads: 1,
    queries: 3,
    keys: 5,
    width: 4,
    causal: false,
    mask: None,
    scale: None,
};

/// Lengths around the sizes of registers and blocks, every kind of mask, and heads that are shared.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (queries, keys, width) in [
        (1, 1, 1),
        (1, 300, 7),
        (2, 255, 16),
        (15, 16, 3),
        (16, 257, 8),
        (97, 33, 5),
        (100, 530, 64),
        (200, 200, 20),
    ] {
        let case = Case { batch: 2, heads: 2, key_heads: 2, queries, keys, width, ..PLAIN };
        cases.push(case);
        cases.push(Case { causal: true, key_heads: 1, ..case });
        cases.push(Case { mask: Some([1, 1, queries, keys]), scale: Some(0.3), ..case });
    }
    for mask in [[2, 4, 20, 40], [1, 4, 20, 1], [2, 1, 1, 40], [1, 1, 1, 1]] {
        cases.push(Case {
            batch: 2,
            heads: 4,
            key_heads: 2,
            queries: 20,
            keys: 40,
            mask: Some(mask),
            ..PLAIN
        });
    }
    cases.push(Case { scale: Some(-2.0), ..PLAIN });
    cases.push(Case { scale: Some(0.0), ..PLAIN });
    cases.push(Case { batch: 0, ..PLAIN });
    cases.push(Case { heads: 0, key_heads: 0, ..PLAIN });
    cases.push(Case { queries: 0, ..PLAIN });
    cases.push(Case { keys: 0, ..PLAIN });
    // The scale is not left to the width here: the root of zero is no divisor.
    cases.push(Case { width: 0, scale: Some(1.0), ..PLAIN });
    cases
}

/// Numbers between −1 and 1 without an order.
fn value(i: i64, salt: i64) -> f64 {
    let mixed = (i * 7919 + salt * 104_729 + 12_345).wrapping_mul(2_654_435_761) >> 7 & 0xffff;
    mixed as f64 / 32768.0 - 1.0
}

/// A mask of which a third is minus infinity; some rows are so throughout.
fn mask_value(i: i64, cols: i64) -> f64 {
    let (row, col) = (i / cols, i % cols);
    if (row % 7 == 3 && cols > 1) || (row + 2 * col) % 3 == 1 {
        f64::NEG_INFINITY
    } else {
        value(i, 9)
    }
}

/// The operands of a case: gradient of the result, query, key and value.
fn operands<T: Element>(case: Case) -> [Tensor; 4] {
    let Case { batch, heads, key_heads, queries, keys, width, .. } = case;
    let of_query = [batch, heads, queries, width];
    let of_key = [batch, key_heads, keys, width];
    let mut salt = 0;
    [of_query, of_query, of_key, of_key].map(|sizes| {
        let tensor = zeros(&sizes, T::SCALAR_TYPE);
        salt += 1;
        set_elements(&tensor, |i| T::from_f64(value(i, salt)));
        tensor
    })
}

fn mask_of<T: Element>(case: Case) -> Option<Tensor> {
    let sizes = case.mask?;
    let tensor = zeros(&sizes, T::SCALAR_TYPE);
    set_elements(&tensor, |i| T::from_f64(mask_value(i, sizes[3])));
    Some(tensor)
}

/// Result, logarithms of sums, and the gradients of query, key and value.
struct Answers {
    out: Vec<f64>,
    log_sums: Vec<f64>,
    gradients: [Vec<f64>; 3],
}

/// The formula.
fn reference<T: Element>(
    case: Case,
    [grad, query, key, value]: &[Tensor; 4],
    mask: Option<&Tensor>,
) -> Answers {
    let Case { batch, heads, key_heads, queries, keys, width, .. } = case;
    let all = |tensor: &Tensor| elements::<T>(tensor).into_iter().map(Element::to_f64).collect::<Vec<f64>>();
    let (grad, query, key, value) = (all(grad), all(query), all(key), all(value));
    let mask = mask.map(all);
    let scale = case.scale.unwrap_or(1.0 / (width as f64).sqrt());
    let mut answers = Answers {
        out: vec![0.0; query.len()],
        log_sums: Vec::new(),
        gradients: [vec![0.0; query.len()], vec![0.0; key.len()], vec![0.0; value.len()]],
    };
    let columns = 0..width as usize;
    for (b, h, i) in
        (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i))))
    {
        let of_query = (((b * heads + h) * queries + i) * width) as usize;
        let of_key = |j: i64| (((b * key_heads + h / (heads / key_heads)) * keys + j) * width) as usize;
        let dot = |a: &[f64], x: usize, b: &[f64], y: usize| {
            columns.clone().map(|c| a[x + c] * b[y + c]).sum::<f64>()
        };
        let score = |j: i64| {
            let added = mask.as_ref().map_or(0.0, |mask| {
                let place = [b, h, i, j];
                let sizes = case.mask.unwrap();
                let at = (0..4).fold(0, |at, d| at * sizes[d] + place[d].min(sizes[d] - 1));
                mask[at as usize]
            });
            let hidden = case.causal && j > i;
            if hidden {
                f64::NEG_INFINITY
            } else {
                scale * dot(&query, of_query, &key, of_key(j)) + added
            }
        };
        let scores: Vec<f64> = (0..keys).map(score).collect();
        let sum: f64 = scores.iter().map(|score| score.exp()).sum();
        answers.log_sums.push(if sum == 0.0 { 0.0 } else { sum.ln() });
        let weights: Vec<f64> =
            scores.iter().map(|score| if sum == 0.0 { 0.0 } else { score.exp() / sum }).collect();
        let slopes: Vec<f64> = (0..keys).map(|j| dot(&grad, of_query, &value, of_key(j))).collect();
        let mean: f64 = weights.iter().zip(&slopes).map(|(weight, slope)| weight * slope).sum();
        for (j, (&weight, &slope)) in (0..keys).zip(weights.iter().zip(&slopes)) {
            let of_score = scale * weight * (slope - mean);
            for c in columns.clone() {
                answers.out[of_query + c] += weight * value[of_key(j) + c];
                answers.gradients[0][of_query + c] += of_score * key[of_key(j) + c];
                answers.gradients[1][of_key(j) + c] += of_score * query[of_query + c];
                answers.gradients[2][of_key(j) + c] += weight * grad[of_query + c];
            }
        }
    }
    answers
}

/// What the kernels make of operands: result, logarithms of sums, and gradients.
fn run<S: Element>(
    case: Case,
    [grad, query, key, value]: &[Tensor; 4],
    mask: Option<&Tensor>,
) -> [Tensor; 5] {
    let like = |tensor: &Tensor| zeros(tensor.sizes().unwrap(), tensor.dtype());
    let outs = [like(query), zeros(&query.sizes().unwrap()[..3], S::SCALAR_TYPE)];
    let Case { causal, scale, .. } = case;
    kernel::<ForwardFn>("flash_attention_kernel")(query, key, value, 0.0, causal, mask, scale, &outs)
        .unwrap();
    let gradients = [like(query), like(key), like(value)];
    let [out, log_sums] = outs;
    kernel::<BackwardFn>("flash_attention_backward_kernel")(
        grad, query, key, value, &out, &log_sums, 0.0, causal, mask, scale, &gradients,
    )
    .unwrap();
    let [of_query, of_key, of_value] = gradients;
    [out, log_sums, of_query, of_key, of_value]
}

fn compare<T: Element>(what: &str, case: Case, found: &Tensor, expected: &[f64], tolerance: f64) {
    for (i, (found, &expected)) in elements::<T>(found).into_iter().zip(expected).enumerate() {
        let found = found.to_f64();
        let error = (found - expected).abs();
        assert!(
            error <= tolerance * expected.abs().max(1.0),
            "{what} {i} of {case:?} in {}: {found}, expected {expected}",
            T::SCALAR_TYPE
        );
    }
}

/// All cases in a dtype, whose sums and logarithms are in another.
fn check<T: Element, S: Element>(tolerance: f64) {
    for case in cases() {
        let (operands, mask) = (operands::<T>(case), mask_of::<T>(case));
        let expected = reference::<T>(case, &operands, mask.as_ref());
        let [out, log_sums, gradients @ ..] = run::<S>(case, &operands, mask.as_ref());
        compare::<T>("result", case, &out, &expected.out, tolerance);
        compare::<S>("logarithm", case, &log_sums, &expected.log_sums, 1e-5);
        for ((found, expected), name) in
            gradients.iter().zip(&expected.gradients).zip(["query", "key", "value"])
        {
            compare::<T>(&format!("gradient of {name}"), case, found, expected, tolerance);
        }
    }
}

#[test]
fn blocks_agree_with_the_formula_in_f64() {
    check::<f64, f64>(1e-13);
}

#[test]
fn blocks_agree_with_the_formula_in_f32() {
    check::<f32, f32>(4e-6);
}

#[test]
fn blocks_agree_with_the_formula_in_halves() {
    // A gradient's mean is taken from the rounded result.
    check::<Half, f32>(1.0 / 1024.0);
    check::<BFloat16, f32>(1.0 / 128.0);
}

/// Operands, mask and results in every layout.
#[test]
fn layouts_do_not_matter() {
    let case = Case {
        batch: 2,
        heads: 2,
        key_heads: 2,
        queries: 18,
        keys: 21,
        width: 5,
        mask: Some([2, 2, 18, 21]),
        ..PLAIN
    };
    let dense = operands::<f32>(case);
    let mask = mask_of::<f32>(case).unwrap();
    let expected = reference::<f32>(case, &dense, Some(&mask));
    let all = |tensor: &Tensor| layouts(tensor.sizes().unwrap(), tensor.dtype());
    for i in 0..5 {
        let of = if i < 4 { &dense[i] } else { &mask };
        let values = elements::<f32>(of);
        for (layout, tensor) in all(of).into_iter().filter(|(layout, _)| *layout != "expanded") {
            set_elements(&tensor, |i| values[i as usize]);
            let mut operands = dense.clone();
            let mut mask = mask.clone();
            *(if i < 4 { &mut operands[i] } else { &mut mask }) = tensor;
            let [out, _, gradients @ ..] = run::<f32>(case, &operands, Some(&mask));
            compare::<f32>(layout, case, &out, &expected.out, 4e-6);
            for (found, expected) in gradients.iter().zip(&expected.gradients) {
                compare::<f32>(layout, case, found, expected, 4e-6);
            }
        }
    }
    for (layout, out) in all(&dense[1]).into_iter().filter(|(layout, _)| *layout != "expanded") {
        let outs = [out, zeros(&[2, 2, 18], c10::ScalarType::Float)];
        let [_, query, key, value] = &dense;
        kernel::<ForwardFn>("flash_attention_kernel")(
            query,
            key,
            value,
            0.0,
            false,
            Some(&mask),
            None,
            &outs,
        )
        .unwrap();
        compare::<f32>(layout, case, &outs[0], &expected.out, 4e-6);
    }
}

/// Masks that hide keys at the ends, as padding and windows do: they are left out, which is not to show.
#[test]
fn what_a_mask_hides_at_the_ends_is_left_out() {
    type Hides = fn(i64, i64) -> bool;
    let hides: [Hides; 5] = [
        |_, key| key >= 290,
        |_, key| key < 300,
        |query, key| (query + 200 - key).abs() > 17,
        |query, key| key > query || query % 50 == 7,
        |query, _| query < 97,
    ];
    for (i, hides) in hides.into_iter().enumerate() {
        for causal in [false, true] {
            let case = Case { queries: 150, keys: 333, causal, mask: Some([1, 1, 150, 333]), ..PLAIN };
            let operands = operands::<f32>(case);
            let mask = zeros(&[1, 1, 150, 333], c10::ScalarType::Float);
            set_elements(&mask, |i| if hides(i / 333, i % 333) { f32::NEG_INFINITY } else { 0.5 });
            let expected = reference::<f32>(case, &operands, Some(&mask));
            let [out, log_sums, gradients @ ..] = run::<f32>(case, &operands, Some(&mask));
            compare::<f32>(&format!("mask {i}"), case, &out, &expected.out, 4e-6);
            compare::<f32>(&format!("mask {i}"), case, &log_sums, &expected.log_sums, 1e-5);
            for (found, expected) in gradients.iter().zip(&expected.gradients) {
                compare::<f32>(&format!("mask {i}"), case, found, expected, 4e-6);
            }
        }
    }
}

/// A query that sees nothing has zeros for a result and for its gradient, whatever keys and values hold.
#[test]
fn what_sees_nothing_is_zero() {
    for queries in [1, 20] {
        let case = Case { queries, keys: 300, mask: Some([1, 1, queries, 1]), ..PLAIN };
        let operands = operands::<f32>(case);
        let mask = zeros(&[1, 1, queries, 1], c10::ScalarType::Float);
        set_elements(&mask, |_| f32::NEG_INFINITY);
        for tensor in run::<f32>(case, &operands, Some(&mask)) {
            assert!(elements::<f32>(&tensor).iter().all(|&value| value == 0.0));
        }
    }
}

/// Scores that `exp` cannot take are taken relative to the largest, also where a later block has larger ones.
#[test]
fn large_scores_do_not_overflow() {
    let case = Case { queries: 2, keys: 600, width: 1, ..PLAIN };
    let [grad, query, key, value] = operands::<f32>(case);
    set_elements(&query, |_| 1000f32);
    set_elements(&key, |i| i as f32);
    set_elements(&value, |i| i as f32);
    let [out, _, gradients @ ..] = run::<f32>(case, &[grad, query, key, value], None);
    assert_eq!(elements::<f32>(&out), [599.0, 599.0]);
    assert!(gradients.iter().all(|tensor| elements::<f32>(tensor).iter().all(|value| value.is_finite())));
}

/// NaN comes through where it is seen, and only there.
#[test]
fn not_a_number_stays() {
    let case = Case { queries: 20, keys: 20, causal: true, ..PLAIN };
    let operands = operands::<f32>(case);
    set_elements(&operands[2], |i| if i / 4 == 10 { f32::NAN } else { value(i, 3) as f32 });
    let [out, ..] = run::<f32>(case, &operands, None);
    for (i, value) in elements::<f32>(&out).into_iter().enumerate() {
        assert_eq!(value.is_nan(), i / 4 >= 10, "element {i}");
    }
}

#[test]
fn same_bits_for_any_number_of_threads() {
    let case =
        Case { batch: 2, heads: 4, key_heads: 2, queries: 150, keys: 300, width: 32, causal: true, ..PLAIN };
    let operands = operands::<f32>(case);
    let bits = |threads| {
        with_threads(threads, || {
            run::<f32>(case, &operands, None)
                .map(|tensor| elements::<f32>(&tensor).into_iter().map(f32::to_bits).collect::<Vec<_>>())
        })
    };
    assert!(bits(1) == bits(3));
}
