//! Strided tensors.

use c10::{
    check_in_bounds_for_storage, empty_cpu, empty_generic, empty_meta, empty_strided_cpu, get_allocator,
    DeviceType, DispatchKey, DispatchKeySet, InferenceModeGuard, Layout, MemoryFormat, Result, ScalarType,
    Tensor, TensorImpl, VariableVersion,
};

fn message<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn a_tensor_is_a_pointer() {
    assert_eq!(size_of::<Option<Tensor>>(), size_of::<usize>());
    is_send_and_sync::<Tensor>();
}

#[test]
fn getters() -> Result<()> {
    let t = empty_cpu(&[2, 3, 4], ScalarType::Float)?;
    assert_eq!((t.sizes()?, t.strides()?), ([2, 3, 4].as_slice(), [12, 4, 1].as_slice()));
    assert_eq!((t.dim(), t.numel()?, t.nbytes()?, t.storage_offset()?), (3, 24, 96, 0));
    assert_eq!((t.size(-1)?, t.stride(0)?), (4, 12));
    assert_eq!(message(t.size(3)), "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
    assert!(t.is_contiguous() && t.is_non_overlapping_and_dense() && t.is_cpu() && !t.is_meta());
    assert_eq!((t.dtype(), t.layout(), t.storage()?.nbytes()), (ScalarType::Float, Layout::Strided, 96));
    assert!(!t.data_ptr().is_null() && (t.data_ptr() as usize).is_multiple_of(64));
    assert_eq!(
        t.sym_sizes().iter().map(|s| s.maybe_as_int()).collect::<Vec<_>>(),
        [Some(2), Some(3), Some(4)]
    );
    assert_eq!(t.options().dtype, Some(ScalarType::Float));
    assert!(!t.requires_grad());
    Ok(())
}

#[test]
fn many_dimensions() -> Result<()> {
    let sizes = [1, 2, 1, 3, 1, 2, 1];
    let t = empty_cpu(&sizes, ScalarType::Double)?;
    assert_eq!((t.sizes()?, t.numel()?), (sizes.as_slice(), 12));
    // SAFETY: nobody else has the tensor, and no slice of it is in use.
    unsafe { t.set_sizes_and_strides(&[12], &[1], None)? };
    assert_eq!(t.sizes()?, [12]);
    Ok(())
}

#[test]
fn creation_errors() {
    assert_eq!(
        message(empty_cpu(&[2, -1], ScalarType::Float)),
        "Trying to create tensor with negative dimension -1: [2, -1]"
    );
    assert!(message(empty_cpu(&[1 << 40, 1 << 40], ScalarType::Float))
        .contains("Storage size calculation overflowed"));
    assert!(empty_cpu(&[1 << 55], ScalarType::Float).is_err());
    assert!(message(empty_strided_cpu(&[2], &[1, 1], ScalarType::Float)).contains("dimensionality"));
}

#[test]
fn expanded_views_may_have_more_elements_than_memory_but_not_than_i64() -> Result<()> {
    let t = empty_strided_cpu(&[1 << 20, 1 << 20], &[0, 0], ScalarType::Byte)?;
    assert_eq!((t.numel()?, t.storage()?.nbytes()), (1 << 40, 1));
    assert!(!t.is_non_overlapping_and_dense());
    assert!(message(empty_strided_cpu(&[1 << 40, 1 << 40], &[0, 0], ScalarType::Byte)).contains("overflow"));
    Ok(())
}

#[test]
fn memory_formats() -> Result<()> {
    let allocator = get_allocator(DeviceType::CPU)?;
    let keys = DispatchKeySet::from_key(DispatchKey::CPU);
    let format = Some(MemoryFormat::ChannelsLast);
    let t = empty_generic(&[2, 3, 4, 5], allocator, keys, ScalarType::Half, format)?;
    assert_eq!(t.strides()?, [60, 1, 15, 3]);
    assert!(t.is_contiguous_in(MemoryFormat::ChannelsLast) && !t.is_contiguous());
    assert_eq!(t.suggest_memory_format(), MemoryFormat::ChannelsLast);
    assert!(empty_generic(&[2, 3], allocator, keys, ScalarType::Half, format).is_err());
    Ok(())
}

#[test]
fn meta_tensors_have_sizes_and_no_memory() -> Result<()> {
    let t = empty_meta(&[1 << 20, 1 << 20], ScalarType::Float)?;
    assert!(t.is_meta() && t.data_ptr().is_null());
    assert_eq!(t.storage()?.nbytes(), 1 << 42);
    assert!(t.key_set().has(DispatchKey::AutogradMeta));
    Ok(())
}

#[test]
fn views_share_storage_and_version() -> Result<()> {
    let base = empty_cpu(&[4, 4], ScalarType::Float)?;
    let view =
        TensorImpl::new_view(Some(base.storage()?.clone()), base.key_set(), base.dtype(), base.device())
            .with_sizes_and_strides(&[2], &[4], 5)?;
    let view = Tensor::from(view);
    // SAFETY: the view is fresh.
    unsafe { view.set_version_counter(base.version_counter()) };
    assert!(view.is_alias_of(&base) && !view.is_same(&base));
    assert_eq!(view.data_ptr() as usize - base.data_ptr() as usize, 20);
    assert!(!view.is_contiguous());
    view.bump_version()?;
    assert_eq!(base.version()?, 1);
    Ok(())
}

#[test]
fn bounds() -> Result<()> {
    let t = empty_cpu(&[6], ScalarType::Float)?;
    let check = |sizes: &[i64], strides: &[i64], offset| {
        check_in_bounds_for_storage(sizes, strides, offset, ScalarType::Float, t.storage()?)
    };
    assert!(check(&[2, 3], &[3, 1], 0).is_ok());
    assert!(check(&[2, 3], &[3, 1], 1)
        .is_err_and(|e| e.message().contains("are out of bounds for storage of size 24")));
    assert!(check(&[0], &[1], 1000).is_ok());
    assert!(check(&[2], &[-1], 3).is_err_and(|e| e.message().contains("Negative strides are not supported")));
    assert!(check(&[2], &[1], -1).is_err_and(|e| e.message().contains("invalid storage offset -1")));
    assert!(check(&[i64::MAX, i64::MAX], &[i64::MAX, i64::MAX], i64::MAX).is_err());
    assert!(check(&[2], &[1, 1], 0).is_err() && check(&[-2], &[1], 0).is_err());
    Ok(())
}

#[test]
fn detached_copies() -> Result<()> {
    let t = empty_cpu(&[3], ScalarType::Float)?;
    t.set_wrapped_number(true);
    let detached = t.shallow_copy_and_detach(t.version_counter())?;
    assert!(detached.is_alias_of(&t) && detached.is_wrapped_number());
    t.bump_version()?;
    assert_eq!(detached.version()?, 1);
    let data = t.shallow_copy_and_detach(VariableVersion::new(0))?;
    assert_eq!(data.version()?, 0);

    let other = empty_cpu(&[2, 2], ScalarType::Double)?;
    // SAFETY: nobody else uses the tensor.
    drop(unsafe { t.shallow_copy_from(&other)? });
    assert_eq!((t.sizes()?, t.dtype(), t.version()?), ([2, 2].as_slice(), ScalarType::Double, 1));
    Ok(())
}

#[test]
fn inference_tensors() -> Result<()> {
    let normal = empty_cpu(&[2], ScalarType::Float)?;
    let inference = {
        let _mode = InferenceModeGuard::new(true);
        let copy = normal.shallow_copy_and_detach(normal.version_counter())?;
        assert!(!copy.is_inference(), "views of normal tensors stay normal");
        let t = empty_cpu(&[2], ScalarType::Float)?;
        assert!(t.bump_version().is_ok());
        t
    };
    assert!(inference.is_inference());
    assert!(message(inference.version()).contains("do not track version counter"));
    assert!(message(inference.bump_version())
        .contains("Inplace update to inference tensor outside InferenceMode"));
    assert!(message(inference.set_requires_grad(true)).contains("inference tensor outside InferenceMode"));
    Ok(())
}

#[test]
fn lazy_bits_are_keys() -> Result<()> {
    let t = empty_cpu(&[2], ScalarType::ComplexFloat)?;
    t.set_conj(true);
    assert!(t.is_conj() && t.key_set().has(DispatchKey::Conjugate) && !t.is_neg());
    t.set_conj(false);
    assert!(!t.is_conj() && t.key_set().has(DispatchKey::CPU));
    Ok(())
}

#[test]
fn weak_tensors() -> Result<()> {
    let t = empty_cpu(&[2], ScalarType::Float)?;
    let weak = t.weak();
    assert!(weak.upgrade().is_some_and(|u| u.is_same(&t)));
    let storage = t.storage()?.weak();
    drop(t);
    assert!(weak.expired() && weak.upgrade().is_none());
    assert!(storage.expired(), "a weak pointer does not keep the memory");
    Ok(())
}
