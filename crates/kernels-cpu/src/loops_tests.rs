//! Every way an operand can lie in memory, against a plain loop.

use c10::{BFloat16, Element, Half, Result, Scalar, ScalarType, Tensor};
use iter::{StructuredOutputs, TensorIterator};

use crate::pointwise::kernels_for_tests::{add_kernel, mul_kernel};

fn filled<T: Element>(sizes: &[i64], start: i64) -> Tensor {
    let tensor = c10::empty_cpu(sizes, T::SCALAR_TYPE).unwrap();
    let count = tensor.numel().unwrap();
    for i in 0..count {
        // SAFETY: a contiguous tensor of T with `count` elements.
        unsafe { *tensor.data_ptr().cast::<T>().offset(i as isize) = T::from_i64((start + i) % 23) };
    }
    tensor
}

/// A view of the same memory.
fn view(tensor: &Tensor, sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
    let view = tensor.shallow_copy_and_detach(tensor.version_counter()).unwrap();
    // SAFETY: the view is new, so nobody reads its metadata.
    unsafe { view.set_sizes_and_strides(sizes, strides, Some(offset)).unwrap() };
    view
}

fn read<T: Element>(tensor: &Tensor) -> Vec<f64> {
    let (sizes, strides) = (tensor.sizes().unwrap(), tensor.strides().unwrap());
    let count: i64 = sizes.iter().product();
    (0..count)
        .map(|linear| {
            let (mut rest, mut offset) = (linear, 0);
            for d in (0..sizes.len()).rev() {
                offset += rest % sizes[d] * strides[d];
                rest /= sizes[d];
            }
            // SAFETY: the offset is within the tensor's sizes.
            unsafe { (*tensor.data_ptr().cast::<T>().offset(offset as isize)).to_f64() }
        })
        .collect()
}

fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::binary_op(&mut outs, "add", a, b)?;
    add_kernel(&iter, &Scalar::Int(1))?;
    outs.finish()?;
    outs.take(0)
}

fn check<T: Element>(a: &Tensor, b: &Tensor) {
    let sum = add(a, b).unwrap();
    let expected: Vec<f64> = read::<T>(a).iter().zip(read::<T>(b)).map(|(a, b)| a + b).collect();
    assert_eq!(read::<T>(&sum), expected, "{:?} + {:?}", a.strides(), b.strides());
}

fn layouts<T: Element>() {
    let base = filled::<T>(&[40, 70], 3);
    let dense = filled::<T>(&[20, 35], 0);
    let views = [
        view(&base, &[20, 35], &[70, 2], 0),
        view(&base, &[20, 35], &[140, 1], 5),
        view(&base, &[20, 35], &[1, 20], 7),
        view(&base, &[20, 35], &[0, 1], 2),
        view(&base, &[20, 35], &[70, 0], 2),
        view(&base, &[20, 35], &[0, 0], 4),
    ];
    for v in &views {
        check::<T>(v, &dense);
        check::<T>(&dense, v);
        check::<T>(v, v);
    }
    // Rows too short to be handed over one by one, and sizes around a block.
    for n in [1, 2, 3, 31, 33] {
        let a = view(&base, &[50, n], &[n + 3, 1], 1);
        check::<T>(&a, &a);
    }
    for n in [255, 256, 257, 1000] {
        check::<T>(&view(&base, &[n], &[2], 1), &filled::<T>(&[n], 1));
    }
    let empty = filled::<T>(&[0, 3], 0);
    assert_eq!(add(&empty, &empty).unwrap().sizes().unwrap(), [0, 3]);
    check::<T>(&filled::<T>(&[], 5), &filled::<T>(&[], 6));
}

#[test]
fn all_layouts_of_all_element_sizes() {
    layouts::<u8>();
    layouts::<i16>();
    layouts::<f32>();
    layouts::<f64>();
    layouts::<num_complex::Complex<f64>>();
}

#[test]
fn halves_are_widened_and_rounded() {
    layouts::<Half>();
    layouts::<BFloat16>();
    // 1 + 2⁻¹¹ is no float16: the product of exact factors is rounded once, to even.
    let a = filled::<Half>(&[40], 0);
    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::binary_op(&mut outs, "mul", &a, &a).unwrap();
    mul_kernel(&iter).unwrap();
    let product = outs.take(0).unwrap();
    assert_eq!(product.dtype(), ScalarType::Half);
    assert_eq!(read::<Half>(&product)[22], 484.0);
}

#[test]
fn in_place_on_either_operand() {
    for in_place_on_first in [true, false] {
        let a = filled::<f32>(&[1000], 1);
        let b = filled::<f32>(&[1000], 7);
        let expected: Vec<f64> = read::<f32>(&a).iter().zip(read::<f32>(&b)).map(|(a, b)| a + b).collect();
        let target = if in_place_on_first { &a } else { &b };
        let mut outs = StructuredOutputs::out(&[target]);
        let iter = TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap();
        add_kernel(&iter, &Scalar::Int(1)).unwrap();
        outs.finish().unwrap();
        assert_eq!(read::<f32>(target), expected);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let a = filled::<f32>(&[300_001], 1);
    let before = iter::parallel::num_threads();
    iter::parallel::set_num_threads(1).unwrap();
    let one = read::<f32>(&add(&a, &a).unwrap());
    iter::parallel::set_num_threads(4).unwrap();
    let four = read::<f32>(&add(&a, &a).unwrap());
    iter::parallel::set_num_threads(before).unwrap();
    assert_eq!(one, four);
}
