//! Tests of whole iterators. What they compare with was recorded from PyTorch 2.13.

mod build;
mod outputs;
mod promotion;
mod reductions;
mod walk;

use std::sync::Once;

use c10::{
    compute_contiguous_strides, compute_storage_nbytes, empty_cpu, empty_meta, Device, DeviceType, Element,
    Result, ScalarType, Tensor, TensorImpl, TensorOptions,
};

use crate::cast::CopyFn;
use crate::*;

/// A float tensor 0, 1, 2, … in row-major order.
fn arange(sizes: &[i64]) -> Tensor {
    let tensor = empty_cpu(sizes, ScalarType::Float).unwrap();
    fill(&tensor, |i| i as f32);
    tensor
}

fn meta(sizes: &[i64], dtype: ScalarType) -> Tensor {
    empty_meta(sizes, dtype).unwrap()
}

fn zeros(sizes: &[i64], dtype: ScalarType) -> Tensor {
    let tensor = empty_cpu(sizes, dtype).unwrap();
    // SAFETY: a new tensor of this size.
    unsafe { std::ptr::write_bytes(tensor.data_ptr(), 0, tensor.nbytes().unwrap()) };
    tensor
}

/// Sets a dense tensor's elements in memory order.
fn fill<T: Element>(tensor: &Tensor, f: impl Fn(usize) -> T) {
    assert_eq!(tensor.dtype(), T::SCALAR_TYPE);
    for i in 0..tensor.numel().unwrap() as usize {
        // SAFETY: dense, so element `i` in memory order is there.
        unsafe { tensor.data_ptr().cast::<T>().add(i).write(f(i)) };
    }
}

/// The elements in index order.
fn values<T: Element>(tensor: &Tensor) -> Vec<T> {
    assert_eq!(tensor.dtype(), T::SCALAR_TYPE);
    let (sizes, strides) = (tensor.sizes().unwrap(), tensor.strides().unwrap());
    let logical = compute_contiguous_strides(sizes);
    (0..tensor.numel().unwrap())
        .map(|i| {
            let offset: i64 = (0..sizes.len()).map(|d| i / logical[d] % sizes[d] * strides[d]).sum();
            // SAFETY: an index within the sizes.
            unsafe { tensor.data_ptr().cast::<T>().offset(offset as isize).read() }
        })
        .collect()
}

/// A view with other sizes and strides.
fn as_strided(tensor: &Tensor, sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
    let needed = compute_storage_nbytes(sizes, strides, tensor.item_size(), offset).unwrap();
    assert!(needed <= tensor.storage().unwrap().nbytes());
    let storage = tensor.storage().unwrap().clone();
    TensorImpl::new_view(Some(storage), tensor.key_set(), tensor.dtype(), tensor.device())
        .with_sizes_and_strides(sizes, strides, offset)
        .unwrap()
        .into()
}

fn permute(tensor: &Tensor, dims: &[usize]) -> Tensor {
    let pick = |s: &[i64]| dims.iter().map(|&d| s[d]).collect::<Vec<_>>();
    as_strided(tensor, &pick(tensor.sizes().unwrap()), &pick(tensor.strides().unwrap()), 0)
}

/// A dense tensor whose dimension `dims[0]` of `sizes` comes first, and so on.
fn permuted(sizes: &[i64], dims: &[usize]) -> Tensor {
    permute(&arange(sizes), dims)
}

fn wrapped<T: Element>(value: T) -> Tensor {
    let tensor = empty_cpu(&[], T::SCALAR_TYPE).unwrap();
    fill(&tensor, |_| value);
    tensor.set_wrapped_number(true);
    tensor
}

fn strides(tensor: &Tensor) -> Vec<i64> {
    tensor.strides().unwrap().to_vec()
}

fn error_of<T>(result: Result<T>) -> String {
    result.err().expect("an error").message().to_owned()
}

/// A copy kernel for the dtypes that these tests convert between.
fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| kernel_registry::register::<CopyFn>("copy_kernel", c10::DispatchKey::CPU, copy_kernel));
}

fn copy_kernel(iter: &TensorIterator, _non_blocking: bool) -> Result<()> {
    fn load(p: *const u8, dtype: ScalarType) -> f64 {
        // SAFETY: an element of this dtype, from the walk.
        unsafe {
            match dtype {
                ScalarType::Float => f64::from(p.cast::<f32>().read()),
                ScalarType::Double => p.cast::<f64>().read(),
                ScalarType::Int => f64::from(p.cast::<i32>().read()),
                ScalarType::Long => p.cast::<i64>().read() as f64,
                other => panic!("no {other} in the test kernel"),
            }
        }
    }
    fn store(p: *mut u8, dtype: ScalarType, value: f64) {
        // SAFETY: as above.
        unsafe {
            match dtype {
                ScalarType::Float => p.cast::<f32>().write(value as f32),
                ScalarType::Double => p.cast::<f64>().write(value),
                ScalarType::Int => p.cast::<i32>().write(value as i32),
                ScalarType::Long => p.cast::<i64>().write(value as i64),
                other => panic!("no {other} in the test kernel"),
            }
        }
    }
    let (to, from) = (iter.dtype(0), iter.dtype(1));
    iter.for_each(
        &|data, strides, n| {
            for i in 0..n as isize {
                let at = |arg: usize| data[arg].wrapping_offset(i * strides[arg] as isize);
                store(at(0), to, load(at(1), from));
            }
        },
        parallel::GRAIN_SIZE,
    )
}

/// `out = a + b` in f32.
fn add_f32(iter: &TensorIterator) -> Result<()> {
    iter.for_each(
        &|data, strides, n| {
            for i in 0..n as isize {
                let at = |arg: usize| data[arg].wrapping_offset(i * strides[arg] as isize).cast::<f32>();
                // SAFETY: elements of the walk, f32 by the callers.
                unsafe { at(0).write(at(1).read() + at(2).read()) };
            }
        },
        parallel::GRAIN_SIZE,
    )
}

/// The functional sum of two tensors, through everything an operator does.
fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::binary_op(&mut outs, "add", a, b)?;
    if !iter.is_meta() {
        add_f32(&iter)?;
    }
    outs.finish()?;
    outs.take(0)
}
