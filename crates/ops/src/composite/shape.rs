//! Composites of the `shape` family: here those around views, beside it elements [in another order](arrange), [joined or
//! cut](joining), or [replaced](scatter).

mod arrange;
mod joining;
mod scatter;

use c10::{
    bail, check, check_index, infer_size, sym_multiply_integers, wrap_dim, DimVector, MemoryFormat, Result,
    ScalarType, SizeInt, SymDimVector, SymInt, Tensor,
};

pub use arrange::*;
pub use joining::*;
pub use scatter::*;

use crate::meta::shape::list_dtype;
use crate::sym::with_sizes;
use crate::{at, sym, view};

/// `aten::lift_fresh`: where modes meet a tensor that has just been made.
pub fn lift_fresh(self_: &Tensor) -> Result<Tensor> {
    Ok(self_.clone())
}

/// `aten::_unsafe_view`: a view that autograd does not know to be one.
pub fn _unsafe_view(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    with_sizes!([self_, size] view::view(self_, size))
}

/// `aten::reshape`: a view where the strides allow it, else a copy.
pub fn reshape(self_: &Tensor, shape: &[SymInt]) -> Result<Tensor> {
    with_sizes!([self_, shape] reshape_to(self_, shape))
}

fn reshape_to<I: SizeInt>(self_: &Tensor, shape: &[SymInt]) -> Result<Tensor> {
    let numel = I::numel_of(self_)?;
    let sizes = infer_size(&I::from_sym_slice(shape)?, &numel)?;
    let shape = I::to_sym_slice(&sizes);
    if view::view_strides(self_, &sizes, &numel)?.is_some() {
        return at::view(self_, &shape);
    }
    at::_unsafe_view(&at::clone(self_, Some(MemoryFormat::Contiguous))?, &shape)
}

/// `aten::reshape_as`
pub fn reshape_as(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::reshape(self_, &other.sym_sizes())
}

/// `aten::view_as`
pub fn view_as(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::view(self_, &other.sym_sizes())
}

fn zeros_for(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    at::zeros(sizes, Some(grad.dtype()), Some(grad.layout()), Some(grad.device()), None)
}

/// `aten::slice_backward`
pub fn slice_backward(
    grad_output: &Tensor,
    input_sizes: &[SymInt],
    dim: i64,
    start: &SymInt,
    end: &SymInt,
    step: &SymInt,
) -> Result<Tensor> {
    let grad_input = zeros_for(grad_output, input_sizes)?;
    at::copy_(&at::slice_tensor(&grad_input, dim, Some(start), Some(end), step)?, grad_output, false)?;
    Ok(grad_input)
}

/// `aten::select_backward`
pub fn select_backward(
    grad_output: &Tensor,
    input_sizes: &[SymInt],
    dim: i64,
    index: &SymInt,
) -> Result<Tensor> {
    let grad_input = zeros_for(grad_output, input_sizes)?;
    at::copy_(&at::select_int(&grad_input, dim, index)?, grad_output, false)?;
    Ok(grad_input)
}

/// `aten::diagonal_backward`
pub fn diagonal_backward(
    grad_output: &Tensor,
    input_sizes: &[SymInt],
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Result<Tensor> {
    let grad_input = zeros_for(grad_output, input_sizes)?;
    at::copy_(&at::diagonal(&grad_input, offset, dim1, dim2)?, grad_output, false)?;
    Ok(grad_input)
}

/// `aten::expand_as`
pub fn expand_as(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::expand(self_, &other.sym_sizes(), false)
}

/// `aten::narrow`
pub fn narrow(self_: &Tensor, dim: i64, start: &SymInt, length: &SymInt) -> Result<Tensor> {
    check!(self_.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
    with_sizes!([self_, start, length] narrow_to(self_, dim, start, length))
}

fn narrow_to<I: SizeInt>(self_: &Tensor, dim: i64, start: &SymInt, length: &SymInt) -> Result<Tensor> {
    let (start, length) = (I::from_sym(start)?, I::from_sym(length)?);
    check!(length.expect_nonnegative()?, "narrow(): length must be non-negative.");
    let dim = wrap_dim(dim, self_.dim(), false)?;
    let size = I::sizes_of(self_)?[dim as usize].clone();
    let from_start = if start.guard_lt(&I::ZERO)? { start.sym_add(&size)? } else { start.clone() };
    check_index!(
        from_start.expect_nonnegative()? && from_start.expect_le(&size)?,
        "start out of range (expected to be in range of [-{size}, {size}], but got {start})"
    );
    // Not their sum: it may be too large for the type.
    check!(
        length.expect_le(&size.sym_sub(&from_start)?)?,
        "start ({from_start}) + length ({length}) exceeds dimension size ({size})."
    );
    let end = from_start.sym_add(&length)?;
    at::slice_tensor(self_, dim, Some(&from_start.to_sym()), Some(&end.to_sym()), &SymInt::ONE)
}

/// `aten::narrow.Tensor`
pub fn narrow_tensor(self_: &Tensor, dim: i64, start: &Tensor, length: &SymInt) -> Result<Tensor> {
    check!(start.dim() == 0 && start.dtype().is_integral(false), "start must be an 0-dim integral Tensor.");
    at::narrow(self_, dim, &SymInt::from(at::item(start)?.to_i64()?), length)
}

/// `aten::split.sizes`
pub fn split_sizes(self_: &Tensor, split_size: &[SymInt], dim: i64) -> Result<Vec<Tensor>> {
    at::split_with_sizes(self_, split_size, dim)
}

/// `aten::chunk`
pub fn chunk(self_: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() > 0, "chunk expects at least a 1-dimensional tensor");
    check!(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {chunks}");
    let size = self_.sym_size(dim)?;
    let split_size = size.sym_ceildiv(&SymInt::from(chunks))?;
    if split_size == 0 {
        // Pieces of size zero: their number is not size / split_size.
        let sizes = c10::try_filled(SymInt::ZERO, usize::try_from(chunks).unwrap_or(usize::MAX))?;
        return at::split_with_sizes(self_, &sizes, dim);
    }
    at::split_tensor(self_, &split_size, dim)
}

fn check_can_be_split(self_: &Tensor) -> Result<()> {
    check!(
        self_.dim() > 0,
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with {} dims",
        self_.dim()
    );
    Ok(())
}

/// `aten::tensor_split.sections`: the first `size % sections` pieces are longer by one.
pub fn tensor_split_sections(self_: &Tensor, sections: &SymInt, dim: i64) -> Result<Vec<Tensor>> {
    check_can_be_split(self_)?;
    // The pieces are counted out.
    let sections = sections.guard_int()?;
    check!(sections > 0, "number of sections must be larger than 0, got {sections}");
    with_sizes!([self_] split_evenly(self_, sections, dim))
}

fn split_evenly<I: SizeInt>(self_: &Tensor, sections: i64, dim: i64) -> Result<Vec<Tensor>> {
    let dim = wrap_dim(dim, self_.dim(), true)?;
    let size = I::sizes_of(self_)?[dim as usize].clone();
    let (short, longer) = (size.sym_floordiv(&I::from(sections))?, size.sym_mod(&I::from(sections))?);
    let long = short.sym_add(&I::ONE)?;
    let mut pieces = c10::try_with_capacity(usize::try_from(sections).unwrap_or(usize::MAX))?;
    let mut end = I::ZERO;
    for i in 0..sections {
        let start = end;
        end = start.sym_add(if I::from(i).guard_lt(&longer)? { &long } else { &short })?;
        pieces.push(at::slice_tensor(self_, dim, Some(&start.to_sym()), Some(&end.to_sym()), &SymInt::ONE)?);
    }
    Ok(pieces)
}

/// `aten::tensor_split.indices`: pieces end where the next begins, with slicing's rules for each.
pub fn tensor_split_indices(self_: &Tensor, indices: &[SymInt], dim: i64) -> Result<Vec<Tensor>> {
    check_can_be_split(self_)?;
    let zero = SymInt::ZERO;
    let starts = std::iter::once(&zero).chain(indices);
    let ends = indices.iter().map(Some).chain(std::iter::once(None));
    let mut pieces = c10::try_with_capacity(indices.len() + 1)?;
    for (start, end) in starts.zip(ends) {
        pieces.push(at::slice_tensor(self_, dim, Some(start), end, &SymInt::ONE)?);
    }
    Ok(pieces)
}

/// `aten::tensor_split.tensor_indices_or_sections`: a number is the count of sections, a vector holds indices.
pub fn tensor_split_tensor_indices_or_sections(
    self_: &Tensor,
    tensor_indices_or_sections: &Tensor,
    dim: i64,
) -> Result<Vec<Tensor>> {
    check_can_be_split(self_)?;
    let given = tensor_indices_or_sections;
    check!(
        given.device().is_cpu(),
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {}",
        given.device()
    );
    check!(
        given.dtype() == ScalarType::Long,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
        given.dtype()
    );
    match given.dim() {
        0 => at::tensor_split_sections(self_, &SymInt::from(at::item(given)?.to_i64()?), dim),
        1 => at::tensor_split_indices(self_, &sym::sym_ints(&crate::ints_of(given)?), dim),
        ndim => bail!(
            Runtime,
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but \
             got a tensor with {ndim} dims"
        ),
    }
}

/// `aten::flatten.using_ints`
pub fn flatten_using_ints(self_: &Tensor, start_dim: i64, end_dim: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let (start, end) = (wrap_dim(start_dim, ndim, true)? as usize, wrap_dim(end_dim, ndim, true)? as usize);
    check!(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
    if ndim == 0 {
        return at::reshape(self_, &[SymInt::from(1_i64)]);
    }
    if start == end {
        return Ok(self_.clone());
    }
    let sizes = self_.sym_sizes();
    let mut shape = SymDimVector::from(&sizes[..start]);
    shape.push(sym_multiply_integers(&sizes[start..=end])?);
    shape.extend(sizes[end + 1..].iter().cloned());
    at::reshape(self_, &shape)
}

/// `aten::unflatten.int`
pub fn unflatten_int(self_: &Tensor, dim: i64, sizes: &[SymInt]) -> Result<Tensor> {
    check!(!sizes.is_empty(), "unflatten: sizes must be non-empty");
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let old = self_.sym_sizes();
    let Some(size) = old.get(dim) else {
        bail!(Index, "unflatten: expected at least a 1-dimensional tensor");
    };
    let inferred = infer_size(sizes, size).map_err(|_| {
        c10::Error::runtime(format!(
            "unflatten: Provided sizes {sizes:?} don't multiply up to the size of dim {dim} ({size}) in the input tensor"
        ))
    })?;
    let mut shape = SymDimVector::from(&old[..dim]);
    shape.extend(inferred);
    shape.extend(old[dim + 1..].iter().cloned());
    at::view(self_, &shape)
}

/// `aten::movedim.intlist`
pub fn movedim_intlist(self_: &Tensor, source: &[i64], destination: &[i64]) -> Result<Tensor> {
    check!(
        source.len() == destination.len(),
        "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of dims as \
         destination ({destination:?} dims)"
    );
    let ndim = self_.dim();
    let wrapped = |dims: &[i64], what: &str| -> Result<DimVector> {
        let wrapped: DimVector = dims.iter().map(|&d| wrap_dim(d, ndim, true)).collect::<Result<_>>()?;
        let unique = wrapped.iter().enumerate().all(|(i, d)| !wrapped[..i].contains(d));
        check!(unique, "movedim: repeated dim in `{what}` ({dims:?})");
        Ok(wrapped)
    };
    let (source, destination) = (wrapped(source, "source")?, wrapped(destination, "destination")?);
    if ndim == 0 {
        return at::alias(self_);
    }
    let mut order = DimVector::from_elem(-1, ndim as usize);
    for (&from, &to) in source.iter().zip(&destination) {
        order[to as usize] = from;
    }
    let mut rest = (0..ndim).filter(|d| !source.contains(d));
    for slot in order.iter_mut().filter(|slot| **slot == -1) {
        *slot = rest.next().unwrap_or(0);
    }
    at::permute(self_, &order)
}

/// `aten::movedim.int`
pub fn movedim_int(self_: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
    at::movedim_intlist(self_, &[source], &[destination])
}

/// `aten::numpy_T`: all dimensions reversed.
pub fn numpy_t(self_: &Tensor) -> Result<Tensor> {
    let order: DimVector = (0..self_.dim()).rev().collect();
    at::permute(self_, &order)
}

/// `aten::matrix_H`
pub fn matrix_h(self_: &Tensor) -> Result<Tensor> {
    let ndim = self_.dim();
    check!(
        ndim == 2 || ndim == 0,
        "tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
    );
    if ndim == 0 {
        return at::conj(self_);
    }
    at::conj(&at::transpose_int(self_, 0, 1)?)
}

/// `aten::mT`
pub fn mt(self_: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() >= 2,
        "tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.",
        self_.dim()
    );
    at::transpose_int(self_, -2, -1)
}

/// `aten::mH`
pub fn mh(self_: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() >= 2,
        "tensor.mH is only supported on matrices or batches of matrices. Got {}-D tensor.",
        self_.dim()
    );
    at::conj(&at::transpose_int(self_, -2, -1)?)
}

/// `aten::adjoint`
pub fn adjoint(self_: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() >= 2,
        "tensor.adjoint() is only supported on matrices or batches of matrices. Got {}-D tensor.",
        self_.dim()
    );
    at::conj(&at::transpose_int(self_, -2, -1)?)
}

/// `aten::real`
pub fn real(self_: &Tensor) -> Result<Tensor> {
    if !self_.is_complex() {
        return Ok(self_.clone());
    }
    // The conjugate has the same real part.
    let plain = if self_.is_conj() { at::_conj(self_)? } else { self_.clone() };
    at::select_int(&at::view_as_real(&plain)?, self_.dim(), &SymInt::from(0_i64))
}

/// `aten::imag`
pub fn imag(self_: &Tensor) -> Result<Tensor> {
    check!(self_.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
    let one = SymInt::from(1_i64);
    if self_.is_conj() {
        let plain = at::select_int(&at::view_as_real(&at::_conj(self_)?)?, self_.dim(), &one)?;
        return at::_neg_view(&plain);
    }
    at::select_int(&at::view_as_real(self_)?, self_.dim(), &one)
}

/// `aten::conj`: lazy for complex tensors, nothing for real ones.
pub fn conj(self_: &Tensor) -> Result<Tensor> {
    if self_.is_complex() {
        at::_conj(self_)
    } else {
        Ok(self_.clone())
    }
}

/// `aten::_conj_physical`
pub fn _conj_physical(self_: &Tensor) -> Result<Tensor> {
    if self_.is_conj() {
        // Materialising the conjugate's conjugate is a copy of the original.
        return at::clone(&at::_conj(self_)?, Some(MemoryFormat::Preserve));
    }
    at::conj_physical(self_)
}

/// `aten::resolve_conj`
pub fn resolve_conj(self_: &Tensor) -> Result<Tensor> {
    if self_.is_conj() {
        at::clone(self_, Some(MemoryFormat::Preserve))
    } else {
        Ok(self_.clone())
    }
}

/// `aten::resolve_neg`
pub fn resolve_neg(self_: &Tensor) -> Result<Tensor> {
    if self_.is_neg() {
        at::clone(self_, Some(MemoryFormat::Preserve))
    } else {
        Ok(self_.clone())
    }
}

/// `aten::stack`
pub fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let (unsqueezed, dim) = unsqueeze_for_stack(tensors, dim)?;
    at::cat(&unsqueezed, dim)
}

/// `aten::stack.out`
pub fn stack_out(tensors: &[Tensor], dim: i64, out: &Tensor) -> Result<Tensor> {
    let (unsqueezed, dim) = unsqueeze_for_stack(tensors, dim)?;
    at::cat_out(&unsqueezed, dim, out)
}

fn unsqueeze_for_stack(tensors: &[Tensor], dim: i64) -> Result<(Vec<Tensor>, i64)> {
    let Some(first) = tensors.first() else {
        bail!(Runtime, "stack expects a non-empty TensorList");
    };
    let dim = wrap_dim(dim, first.dim() + 1, true)?;
    for (position, tensor) in tensors.iter().enumerate() {
        check!(
            sym::expect_same_sizes(tensor, first)?,
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {position}",
            first.sym_sizes(),
            tensor.sym_sizes()
        );
    }
    // Checked here, so that the error names the tensors as they were given.
    list_dtype(tensors)?;
    let unsqueezed = tensors.iter().map(|t| at::unsqueeze(t, dim)).collect::<Result<Vec<_>>>()?;
    Ok((unsqueezed, dim))
}
