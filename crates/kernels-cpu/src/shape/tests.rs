use c10::{Element, Result, ScalarType, Tensor};

use crate::test_tensor::{element, kernel, layouts, set_elements, tensor, with_threads, zeros};

type Cat = fn(&[Tensor], i64, &[Tensor]) -> Result<()>;

fn cat(tensors: &[Tensor], dim: i64, out: &Tensor) {
    kernel::<Cat>("cat_kernel")(tensors, dim, std::slice::from_ref(out)).unwrap();
}

/// Compares with a walk over every element of every part.
fn check<T: Element>(parts: &[Tensor], dim: usize, out: &Tensor) {
    let sizes = out.sizes().unwrap();
    let inner: i64 = sizes[dim + 1..].iter().product();
    let outer: i64 = sizes[..dim].iter().product();
    for o in 0..outer {
        let mut at = 0;
        for part in parts.iter().filter(|part| part.numel().unwrap() > 0) {
            let n = part.size(dim as i64).unwrap();
            for i in 0..n * inner {
                let found = element::<T>(out, (o * sizes[dim] + at) * inner + i);
                let expected = match part.dtype() {
                    ScalarType::Int => T::cast_from(element::<i32>(part, o * n * inner + i)),
                    _ => element::<T>(part, o * n * inner + i),
                };
                assert_eq!(found, expected);
            }
            at += n;
        }
    }
}

#[test]
fn parts_of_every_layout_and_dtype_are_put_together() {
    for (sizes, dim) in [(&[6][..], 0), (&[4, 7], 0), (&[4, 7], 1), (&[3, 5, 11], 1), (&[3, 5, 11], 2)] {
        for (_, a) in layouts(sizes, ScalarType::Float) {
            for (_, b) in layouts(sizes, ScalarType::Int) {
                set_elements(&a, |i| i as f32 + 0.5);
                set_elements(&b, |i| -i as i32);
                let parts = [a.clone(), b, zeros(&[0], ScalarType::Float), a.clone()];
                let mut shape = sizes.to_vec();
                shape[dim] *= 3;
                for (name, out) in layouts(&shape, ScalarType::Float) {
                    if name == "expanded" {
                        continue;
                    }
                    cat(&parts, dim as i64 - sizes.len() as i64, &out);
                    check::<f32>(&parts, dim, &out);
                }
            }
        }
    }
}

#[test]
fn large_parts_on_several_threads() {
    for (sizes, dim) in [(&[300_000][..], 0), (&[900, 700], 1)] {
        let part = zeros(sizes, ScalarType::Float);
        set_elements(&part, |i| i as f32);
        let mut shape = sizes.to_vec();
        shape[dim] *= 2;
        let out = zeros(&shape, ScalarType::Float);
        let parts = [part.clone(), part];
        with_threads(3, || cat(&parts, dim as i64, &out));
        check::<f32>(&parts, dim, &out);
    }
}

#[test]
fn nothing_but_empty_tensors() {
    let out = zeros(&[0], ScalarType::Float);
    cat(&[zeros(&[0], ScalarType::Float), zeros(&[0], ScalarType::Float)], 0, &out);
    let out = zeros(&[1], ScalarType::Long);
    cat(&[tensor(&[0], &[0_i64; 0]), tensor(&[1], &[5_i64])], 0, &out);
    assert_eq!(element::<i64>(&out, 0), 5);
}
