//! Tensors for tests: every layout of a shape, and their elements one at a time.

use c10::{compute_contiguous_strides, empty_cpu, DimVector, Element, ScalarType, Tensor, TensorImpl};
use iter::parallel;

/// A view with other sizes and strides.
pub(crate) fn as_strided(tensor: &Tensor, sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
    let storage = tensor.storage().unwrap().clone();
    c10::check_in_bounds_for_storage(sizes, strides, offset, tensor.dtype(), &storage).unwrap();
    TensorImpl::new_view(Some(storage), tensor.key_set(), tensor.dtype(), tensor.device())
        .with_sizes_and_strides(sizes, strides, offset)
        .unwrap()
        .into()
}

/// Zeros, over all memory of the storage.
pub(crate) fn zeros(sizes: &[i64], dtype: ScalarType) -> Tensor {
    let tensor = empty_cpu(sizes, dtype).unwrap();
    if tensor.nbytes().unwrap() > 0 {
        // SAFETY: a new tensor of this size.
        unsafe { std::ptr::write_bytes(tensor.data_ptr(), 0, tensor.nbytes().unwrap()) };
    }
    tensor
}

/// Zeros of a shape in every kind of layout: dense, permuted, with gaps, at an offset, and expanded.
pub(crate) fn layouts(sizes: &[i64], dtype: ScalarType) -> Vec<(&'static str, Tensor)> {
    let mut result = vec![("contiguous", zeros(sizes, dtype))];
    let ndim = sizes.len();
    if ndim >= 2 {
        let reversed: DimVector = sizes.iter().rev().copied().collect();
        let strides: DimVector = compute_contiguous_strides(&reversed).into_iter().rev().collect();
        result.push(("transposed", as_strided(&zeros(&reversed, dtype), sizes, &strides, 0)));
    }
    if ndim >= 3 {
        let moved: DimVector = sizes[..1].iter().chain(&sizes[2..]).chain(&sizes[1..2]).copied().collect();
        let dense = compute_contiguous_strides(&moved);
        let mut strides = DimVector::from_slice(&dense[..1]);
        strides.push(dense[ndim - 1]);
        strides.extend_from_slice(&dense[1..ndim - 1]);
        result.push(("channels last", as_strided(&zeros(&moved, dtype), sizes, &strides, 0)));
    }
    if ndim >= 1 {
        let wide: DimVector = sizes.iter().map(|size| size * 2 + 1).collect();
        let dense = compute_contiguous_strides(&wide);
        let strides: DimVector = dense.iter().map(|stride| stride * 2).collect();
        result.push(("sliced", as_strided(&zeros(&wide, dtype), sizes, &strides, 1)));
        let padded: DimVector = sizes.iter().map(|size| size + 3).collect();
        result.push((
            "offset",
            as_strided(&zeros(&padded, dtype), sizes, &compute_contiguous_strides(&padded), 3),
        ));
        let mut expanded = compute_contiguous_strides(sizes);
        expanded[ndim - 1] = 0;
        result.push(("expanded", as_strided(&zeros(sizes, dtype), sizes, &expanded, 0)));
    }
    result
}

/// The address of element `index`, in row-major order.
fn address(tensor: &Tensor, index: i64) -> *mut u8 {
    let (sizes, strides) = (tensor.sizes().unwrap(), tensor.strides().unwrap());
    let mut rest = index;
    let mut offset = 0;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        offset += rest % size * stride;
        rest /= size;
    }
    tensor.data_ptr().wrapping_offset((offset * tensor.item_size() as i64) as isize)
}

/// Element `index` in row-major order.
pub(crate) fn element<T: Element>(tensor: &Tensor, index: i64) -> T {
    assert_eq!(tensor.dtype(), T::SCALAR_TYPE);
    // SAFETY: an index within the sizes.
    unsafe { address(tensor, index).cast::<T>().read() }
}

/// Sets element `index` in row-major order.
pub(crate) fn set_element<T: Element>(tensor: &Tensor, index: i64, value: T) {
    assert_eq!(tensor.dtype(), T::SCALAR_TYPE);
    // SAFETY: an index within the sizes.
    unsafe { address(tensor, index).cast::<T>().write(value) }
}

/// All elements in row-major order.
pub(crate) fn elements<T: Element>(tensor: &Tensor) -> Vec<T> {
    (0..tensor.numel().unwrap()).map(|i| element(tensor, i)).collect()
}

/// Sets all elements in row-major order.
pub(crate) fn set_elements<T: Element>(tensor: &Tensor, values: impl Fn(i64) -> T) {
    for i in 0..tensor.numel().unwrap() {
        set_element(tensor, i, values(i));
    }
}

/// A new dense tensor with these elements.
pub(crate) fn tensor<T: Element>(sizes: &[i64], values: &[T]) -> Tensor {
    let result = zeros(sizes, T::SCALAR_TYPE);
    assert_eq!(result.numel().unwrap() as usize, values.len());
    set_elements(&result, |i| values[i as usize]);
    result
}

/// Runs `f` with a number of threads. Tests that do so take turns.
pub(crate) fn with_threads<R>(threads: usize, f: impl FnOnce() -> R) -> R {
    static LOCK: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _guard = LOCK.lock();
    let before = parallel::num_threads();
    parallel::set_num_threads(threads).unwrap();
    let result = f();
    parallel::set_num_threads(before).unwrap();
    result
}

/// A registered kernel, found as `ops` finds it.
pub(crate) fn kernel<F: Copy + Send + Sync + 'static>(name: &'static str) -> F {
    crate::init().unwrap();
    iter::kernel_registry::find::<F>(name, c10::DispatchKey::CPU).unwrap()
}
