//! Kinds of tensors made outside the crate, through the vtable alone.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use c10::{
    Device, DispatchKey, DispatchKeySet, Error, ErrorKind, Layout, Result, ScalarType, SymDimVector, SymInt,
    Tensor, TensorImpl, TensorImplVTable, VariableVersion,
};

/// A COO tensor, in small: sizes of its own, no strides, no storage.
struct Coo {
    sizes: Vec<i64>,
    values: Mutex<Vec<f32>>,
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

fn coo(tensor: &TensorImpl) -> Result<&Coo> {
    tensor.extra::<Coo>().ok_or_else(|| Error::internal("not a Coo"))
}

static COO: TensorImplVTable = TensorImplVTable {
    sizes_custom: Some(|tensor| Ok(&coo(tensor)?.sizes)),
    strides_custom: Some(|_| Err(Error::runtime("Coo tensors do not have strides"))),
    is_contiguous_custom: Some(|_, _| true),
    layout_custom: Some(|_| Layout::Sparse),
    storage_access: Some(|_| Err(Error::not_implemented("Cannot access storage of Coo"))),
    shallow_copy_and_detach: Some(|tensor, version| {
        let from = coo(tensor)?;
        let values = from.values.lock().map(|values| values.clone()).unwrap_or_default();
        let copy = make_coo(from.sizes.clone(), values);
        // SAFETY: the copy is fresh.
        unsafe { copy.set_version_counter(version) };
        Ok(copy)
    }),
    release_resources: Some(|tensor| {
        // The values go when the last owner goes, even while weak pointers keep the shell.
        if let Ok(Ok(mut values)) = coo(tensor).map(|coo| coo.values.lock()) {
            values.clear();
        }
        RELEASED.fetch_add(1, Ordering::Relaxed);
    }),
    ..TensorImplVTable::strided("Coo")
};

fn make_coo(sizes: Vec<i64>, values: Vec<f32>) -> Tensor {
    let keys = DispatchKeySet::from_key(DispatchKey::SparseCPU);
    let extra = Box::new(Coo { sizes, values: Mutex::new(values) });
    TensorImpl::new_with_vtable(&COO, None, keys, ScalarType::Float, Device::CPU, Some(extra)).into()
}

#[test]
fn a_kind_without_storage() -> Result<()> {
    let t = make_coo(vec![3, 4], vec![1.0, 2.0]);
    assert_eq!((t.sizes()?, t.dim(), t.numel()?), ([3, 4].as_slice(), 2, 12));
    assert_eq!(t.size(-1)?, 4);
    assert_eq!(t.sym_sizes()[0].maybe_as_int(), Some(3));
    assert!(t.strides().is_err_and(|e| e.message().contains("do not have strides")));
    assert!(t.storage().is_err_and(|e| e.kind() == ErrorKind::NotImplemented));
    assert!(!t.has_storage() && t.data_ptr().is_null() && t.is_contiguous() && t.layout() == Layout::Sparse);
    assert!(t.key_set().has(DispatchKey::AutogradCPU) && t.is_sparse());

    let copy = t.shallow_copy_and_detach(t.version_counter())?;
    t.bump_version()?;
    assert_eq!((copy.numel()?, copy.version()?), (12, 1));

    let weak = t.weak();
    drop(t);
    assert!(weak.upgrade().is_none());
    assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
    drop(weak);
    assert_eq!(RELEASED.load(Ordering::Relaxed), 1, "the hook runs once");
    drop(copy);
    assert_eq!(RELEASED.load(Ordering::Relaxed), 2);
    Ok(())
}

/// Sizes that are SymInts. (The expressions behind them are not c10's business, so these are constants.)
struct Symbolic {
    sizes: SymDimVector,
}

static SYMBOLIC: TensorImplVTable = TensorImplVTable {
    sym_sizes: Some(|tensor| tensor.extra::<Symbolic>().map(|s| s.sizes.clone()).unwrap_or_default()),
    sym_strides: Some(|tensor| {
        let sizes = tensor.sym_sizes();
        let mut strides: SymDimVector = sizes.iter().map(|_| SymInt::from(1)).collect();
        for dim in (1..sizes.len()).rev() {
            if let Ok(stride) = strides[dim].sym_mul(&sizes[dim]) {
                strides[dim - 1] = stride;
            }
        }
        strides
    }),
    sym_storage_offset: Some(|_| SymInt::from(0)),
    is_contiguous_custom: Some(|_, _| true),
    ..TensorImplVTable::strided("SymbolicTensor")
};

#[test]
fn a_kind_with_symbolic_sizes() -> Result<()> {
    let sizes: SymDimVector = [2, 3, 5].into_iter().map(|n: i64| SymInt::from(n)).collect();
    let keys = DispatchKeySet::from_key(DispatchKey::Meta);
    let extra: Box<dyn Any + Send + Sync> = Box::new(Symbolic { sizes });
    let t = Tensor::from(TensorImpl::new_with_vtable(
        &SYMBOLIC,
        None,
        keys,
        ScalarType::Float,
        Device::META,
        Some(extra),
    ));
    for text in [
        t.sizes().err().map(|e| e.to_string()),
        t.strides().err().map(|e| e.to_string()),
        t.numel().err().map(|e| e.to_string()),
        t.storage_offset().err().map(|e| e.to_string()),
    ] {
        assert!(text.is_some_and(|t| t.contains("on tensor with symbolic sizes/strides")));
    }
    assert!(t.has_symbolic_sizes_strides() && t.is_contiguous());
    assert_eq!((t.dim(), t.sym_numel().maybe_as_int()), (3, Some(30)));
    assert_eq!(
        t.sym_strides().iter().map(SymInt::maybe_as_int).collect::<Vec<_>>(),
        [Some(15), Some(5), Some(1)]
    );
    assert_eq!(t.sym_size(-1)?.maybe_as_int(), Some(5));
    // Without a copy function of its own, a kind with extra state is not silently copied as a strided tensor.
    let copy = t.shallow_copy_and_detach(VariableVersion::new(0));
    assert!(copy
        .is_err_and(|e| e.message().contains("SymbolicTensor does not implement shallow_copy_and_detach")));
    Ok(())
}

#[test]
fn extra_state_is_dropped_with_the_tensor() {
    struct Holds(#[allow(dead_code)] Arc<()>);
    static TABLE: TensorImplVTable = TensorImplVTable::strided("Holder");
    let token = Arc::new(());
    let extra: Box<dyn Any + Send + Sync> = Box::new(Holds(Arc::clone(&token)));
    let keys = DispatchKeySet::from_key(DispatchKey::CPU);
    let t = TensorImpl::new_with_vtable(&TABLE, None, keys, ScalarType::Float, Device::CPU, Some(extra));
    assert!(t.extra::<Holds>().is_some() && t.extra::<String>().is_none());
    let t = Tensor::from(t);
    assert_eq!(Arc::strong_count(&token), 2);
    drop(t);
    assert_eq!(Arc::strong_count(&token), 1);
}
