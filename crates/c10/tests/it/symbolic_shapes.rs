//! Tensors with symbolic geometry, and shape arithmetic over symbols.

use c10::{
    compute_stride, contiguous_strides_of, empty_meta, empty_strided_symint_meta, infer_broadcast_size,
    infer_expand_geometry, infer_size, DispatchKey, DispatchKeySet, MemoryFormat, Result, ScalarType,
    SizeInt, SymInt, Tensor, TensorImpl, VariableVersion,
};

use crate::shape_env::{hint, hints, ShapeEnv};

fn empty(sizes: &[SymInt], strides: &[SymInt]) -> Result<Tensor> {
    empty_strided_symint_meta(sizes, strides, DispatchKeySet::from_key(DispatchKey::Meta), ScalarType::Float)
}

fn int(value: i64) -> SymInt {
    SymInt::from(value)
}

#[test]
fn a_symbolic_tensor_answers_symbolically() -> Result<()> {
    let env = ShapeEnv::new();
    let (n, c) = (env.size("n", 4), env.size("c", 3));
    let t = empty(&[n.clone(), c.clone(), int(5)], &[])?;
    assert!(t.has_symbolic_sizes_strides() && t.dim() == 3);
    assert!(t.sizes().is_err() && t.strides().is_err() && t.numel().is_err() && t.storage_offset().is_err());
    assert_eq!(t.sym_sizes().as_slice(), [n.clone(), c.clone(), int(5)]);
    assert_eq!(hints(&t.sym_strides()), [15, 5, 1]);
    assert_eq!(t.sym_strides()[0].to_string(), "5*c");
    assert_eq!(t.sym_numel().to_string(), "5*c*n");
    assert_eq!(t.storage()?.sym_nbytes().to_string(), "20*c*n");
    assert_eq!((t.sym_size(-1)?, t.sym_storage_offset()), (int(5), int(0)));
    assert!(t.is_contiguous() && t.is_non_overlapping_and_dense() && !t.is_empty());
    assert_eq!(t.suggest_memory_format(), MemoryFormat::Contiguous);
    assert!(env.guards().is_empty(), "{:?}", env.guards());
    Ok(())
}

#[test]
fn contiguity_is_decided_when_it_is_asked_for() -> Result<()> {
    let env = ShapeEnv::new();
    let (n, c, s) = (env.size("n", 4), env.size("c", 3), env.size("s", 3));
    let dense = empty(&[n.clone(), c.clone()], &[c.clone(), int(1)])?;
    assert!(dense.is_contiguous() && env.guards().is_empty());
    let transposed = empty(&[c.clone(), n.clone()], &[int(1), c.clone()])?;
    assert!(!transposed.is_contiguous() && transposed.is_non_overlapping_and_dense());
    env.clear();
    let unknown = empty(&[n, c], &[s, int(1)])?;
    assert!(env.guards().is_empty());
    assert!(unknown.is_contiguous());
    assert_eq!(env.guards(), ["s == c"]);
    assert!(unknown.is_contiguous());
    assert_eq!(env.guards().len(), 1);
    Ok(())
}

#[test]
fn a_guard_that_fails_is_asked_again() -> Result<()> {
    let env = ShapeEnv::new();
    let sizes = ["n", "c", "h", "w"].map(|name| env.size(name, 4));
    let tensor = empty(&sizes, &["a", "b", "d", "e"].map(|name| env.size(name, 4)))?;
    let dense = empty(&sizes[..2], &[env.size("s", 4), int(1)])?;
    let answers = |tensor: &Tensor| {
        [
            tensor.is_contiguous(),
            tensor.is_non_overlapping_and_dense(),
            tensor.is_strides_like(MemoryFormat::ChannelsLast),
        ]
    };
    env.set_undecided(true);
    assert_eq!(answers(&dense), [false; 3]);
    assert!(!tensor.is_strides_like(MemoryFormat::ChannelsLast));
    env.set_undecided(false);
    assert_eq!(answers(&dense), [true, true, false]);
    env.clear();
    tensor.is_strides_like(MemoryFormat::ChannelsLast);
    assert!(!env.guards().is_empty(), "asked again");
    Ok(())
}

#[test]
fn geometry_can_become_symbolic_and_plain_again() -> Result<()> {
    let env = ShapeEnv::new();
    let n = env.size("n", 4);
    let t = empty_meta(&[2, 3], ScalarType::Float)?;
    // SAFETY: the tensor is not shared.
    unsafe { t.set_sym_sizes_and_strides(&[n.clone(), int(3)], &[int(3), int(1)], None)? };
    assert!(t.has_symbolic_sizes_strides() && t.sizes().is_err());
    let copy = t.shallow_copy_and_detach(VariableVersion::new(0))?;
    assert_eq!(copy.sym_sizes().as_slice(), [n, int(3)]);
    // SAFETY: as above.
    unsafe { t.set_sym_sizes_and_strides(&[int(6)], &[int(1)], None)? };
    assert!(!t.has_symbolic_sizes_strides());
    assert_eq!((t.sizes()?, t.numel()?, t.is_contiguous()), ([6].as_slice(), 6, true));
    // SAFETY: as above; the source is another tensor.
    drop(unsafe { t.shallow_copy_from(&copy)? });
    assert!(t.has_symbolic_sizes_strides() && t.dim() == 2);
    // SAFETY: as above.
    unsafe { t.set_sizes_contiguous(&[2, 2])? };
    assert_eq!(t.strides()?, [2, 1]);
    Ok(())
}

#[test]
fn symbols_are_released_with_the_tensor() -> Result<()> {
    let n = ShapeEnv::new().size("n", 4);
    let node = n.to_node();
    let before = node.strong_count();
    let t = empty(&[n], &[])?;
    let weak = t.weak();
    assert!(node.strong_count() > before - 1);
    drop(t);
    assert_eq!(node.strong_count(), 1);
    assert!(weak.expired());
    Ok(())
}

#[test]
fn views_with_plain_geometry_are_plain() -> Result<()> {
    let n = ShapeEnv::new().size("n", 4);
    let base = empty(&[n], &[])?;
    let view =
        TensorImpl::new_view(Some(base.storage()?.clone()), base.key_set(), base.dtype(), base.device())
            .with_sym_sizes_and_strides(&[int(2)], &[int(1)], &int(1))?;
    assert!(!view.has_symbolic_sizes_strides());
    assert_eq!((view.sizes()?, view.storage_offset()?), ([2].as_slice(), 1));
    Ok(())
}

#[test]
fn view_sizes_are_inferred_without_guards() -> Result<()> {
    let env = ShapeEnv::new();
    let (n, c) = (env.size("n", 4), env.size("c", 6));
    let numel = n.sym_mul(&c)?;
    let sizes = infer_size(&[int(-1), c.clone()], &numel)?;
    assert_eq!(sizes.iter().map(SymInt::to_string).collect::<Vec<_>>(), ["n", "c"]);
    assert!(env.guards().is_empty() && env.expectations().is_empty());
    let halves = infer_size(&[int(2), int(-1)], &numel)?;
    assert_eq!(hints(&halves), [2, 12]);
    assert_eq!(env.expectations(), ["(c*n % 2) == 0"]);
    assert!(infer_size(&[int(5), int(-1)], &numel).is_err());
    Ok(())
}

#[test]
fn view_strides_of_dense_memory_ask_nothing() -> Result<()> {
    let env = ShapeEnv::new();
    let (n, c, h) = (env.size("n", 4), env.size("c", 6), env.size("h", 5));
    let old = [n.clone(), c.clone(), h.clone()];
    let strides = contiguous_strides_of(&old)?;
    let numel = n.sym_mul(&c)?.sym_mul(&h)?;
    let new = [n, c.sym_mul(&h)?];
    let strides = compute_stride(&old, &strides, &numel, &new)?;
    assert_eq!(strides.map(|s| hints(&s)), Some(vec![30, 1]));
    assert!(env.guards().is_empty(), "{:?}", env.guards());
    Ok(())
}

#[test]
fn broadcasting_guards_on_ones_and_expects_equality() -> Result<()> {
    let env = ShapeEnv::new();
    let (n, m, k) = (env.size("n", 4), env.size("m", 4), env.symbol("k", 1, 0));
    assert_eq!(infer_broadcast_size(&[n.clone()], &[n.clone()])?.as_slice(), [n.clone()]);
    assert!(env.guards().is_empty() && env.expectations().is_empty());
    infer_broadcast_size(&[n.clone()], &[m.clone()])?;
    assert_eq!((env.guards(), env.expectations()), (vec![], vec!["n == m".to_owned()]));
    env.clear();
    assert_eq!(infer_broadcast_size(&[k.clone()], &[n.clone()])?.as_slice(), [n.clone()]);
    assert_eq!(env.guards(), ["k == 1"]);
    let three = env.size("three", 3);
    assert!(infer_broadcast_size(&[n.clone()], &[three]).is_err());
    let (sizes, strides) = infer_expand_geometry(&[int(1), n.clone()], &[n, int(1)], &[m.clone(), int(-1)])?;
    assert_eq!((hints(&sizes), hints(&strides)), (vec![4, 4], vec![0, 1]));
    assert_eq!(sizes[0], m);
    Ok(())
}

#[test]
fn both_integers_agree() -> Result<()> {
    let env = ShapeEnv::new();
    for (a, b) in [(7, 2), (6, 3), (5, 5), (1, 4)] {
        let (x, y) = (env.symbol("x", a, 1), env.symbol("y", b, 1));
        assert_eq!(hint(&SizeInt::sym_add(&x, &y)?), SizeInt::sym_add(&a, &b)?);
        assert_eq!(hint(&SizeInt::sym_floordiv(&x, &y)?), SizeInt::sym_floordiv(&a, &b)?);
        assert_eq!(hint(&SizeInt::sym_mod(&x, &y)?), SizeInt::sym_mod(&a, &b)?);
        assert_eq!(hint(&x.sym_ceildiv(&y)?), a.sym_ceildiv(&b)?);
        assert_eq!(hint(&SizeInt::sym_max(&x, &y)?), a.max(b));
        assert_eq!(SizeInt::guard_lt(&x, &y)?, a < b);
        assert_eq!(x.guard_le(&y)?, a <= b);
        assert_eq!(x.is_one()?, a == 1);
    }
    assert!(i64::MAX.sym_add(&1).is_err() && 1_i64.sym_floordiv(&0).is_err());
    assert_eq!(i64::MAX.stride_mul(&2)?, i64::MAX);
    Ok(())
}
