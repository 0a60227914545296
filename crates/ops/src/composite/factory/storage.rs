//! `resize_` and `set_`: other memory for a tensor that there is.

use c10::{
    bail, check, compute_strides_for_memory_format, MemoryFormat, Result, SizeInt, Storage, SymDimVector,
    SymInt, Tensor,
};

use crate::sym;

/// `aten::resize_`
pub fn resize_(self_: &Tensor, size: &[SymInt], memory_format: Option<MemoryFormat>) -> Result<Tensor> {
    check!(!self_.requires_grad(), "cannot resize variables that require grad");
    let strides = match memory_format {
        None | Some(MemoryFormat::Contiguous) => None,
        Some(MemoryFormat::Preserve) => bail!(Runtime, "Unsupported memory format: preserve"),
        Some(format) => Some(compute_strides_for_memory_format(size, format)?),
    };
    iter::resize_impl(self_, size, strides.as_deref())?;
    Ok(self_.clone())
}

/// `aten::resize_as_`
pub fn resize_as_(
    self_: &Tensor,
    the_template: &Tensor,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let format = match memory_format {
        Some(MemoryFormat::Preserve) => Some(the_template.suggest_memory_format()),
        given => given,
    };
    resize_(self_, &the_template.sym_sizes(), format)
}

/// `aten::set_.source_Storage_storage_offset`
pub fn set__source_storage_storage_offset(
    self_: &Tensor,
    source: &Storage,
    storage_offset: &SymInt,
    size: &[SymInt],
    stride: &[SymInt],
) -> Result<Tensor> {
    check!(
        source.device() == self_.device(),
        "Attempted to set the storage of a tensor on device \"{}\" to a storage on different device \"{}\".  This is no \
         longer allowed; the devices must match.",
        self_.device(),
        source.device()
    );
    if self_.is_meta() {
        return set_without_memory(self_, source, storage_offset, size, stride);
    }
    let offset = storage_offset.guard_int()?;
    let size = sym::ints(size)?;
    let stride = if stride.is_empty() { c10::compute_contiguous_strides(&size) } else { sym::ints(stride)? };
    let needed = c10::compute_storage_nbytes(&size, &stride, self_.item_size(), offset)?;
    if needed > source.nbytes() && source.is_resizable() {
        source.resize(needed)?;
    }
    c10::check_in_bounds_for_storage(&size, &stride, offset, self_.dtype(), source)?;
    let old_storage = self_.with_exclusive_metadata("set_()", || {
        // SAFETY: no other thread uses the metadata here, and nothing borrowed from it is used afterwards. The view was just
        // proved to lie inside the new storage; kernels ask again (`check_in_storage`).
        unsafe {
            self_.set_sizes_and_strides(&size, &stride, Some(offset))?;
            Ok(self_.set_storage(Some(source.clone())))
        }
    })?;
    drop(old_storage);
    Ok(self_.clone())
}

/// `aten::set_`: no elements, and a storage without bytes.
pub fn set_(self_: &Tensor) -> Result<Tensor> {
    let allocator = c10::get_allocator(self_.device().type_)?;
    let source = Storage::new(0, allocator, true)?;
    set__source_storage_storage_offset(self_, &source, &SymInt::ZERO, &[SymInt::ZERO], &[])
}

/// `aten::set_.source_Storage`: all whole elements that the storage has room for.
pub fn set__source_storage(self_: &Tensor, source: &Storage) -> Result<Tensor> {
    let count = source.nbytes() / self_.item_size().max(1);
    let size = SymInt::from(i64::try_from(count).unwrap_or(i64::MAX));
    set__source_storage_storage_offset(self_, source, &SymInt::ZERO, &[size], &[])
}

/// `set_` on the Meta device, whose sizes may be symbolic.
fn set_without_memory(
    self_: &Tensor,
    source: &Storage,
    offset: &SymInt,
    size: &[SymInt],
    stride: &[SymInt],
) -> Result<Tensor> {
    let stride =
        if stride.is_empty() { c10::contiguous_strides_of(size)? } else { SymDimVector::from(stride) };
    let needed = c10::sym_compute_storage_nbytes(size, &stride, self_.item_size(), offset)?;
    if source.is_resizable() && !needed.guard_le(&source.sym_nbytes())? {
        source.set_sym_nbytes(needed)?;
    }
    c10::check_in_bounds_for_symbolic_storage(size, &stride, offset, self_.dtype(), source)?;
    let old_storage = self_.with_exclusive_metadata("set_()", || {
        // SAFETY: no other thread uses the metadata here, and there is no memory to reach.
        unsafe {
            self_.set_sym_sizes_and_strides(size, &stride, Some(offset))?;
            Ok(self_.set_storage(Some(source.clone())))
        }
    })?;
    drop(old_storage);
    Ok(self_.clone())
}

/// `aten::set_.source_Tensor`
pub fn set__source_tensor(self_: &Tensor, source: &Tensor) -> Result<Tensor> {
    if self_.is_same(source) {
        return Ok(self_.clone());
    }
    check!(
        self_.dtype() == source.dtype(),
        "Could not set tensor of type {} to a tensor of type {}",
        source.dtype(),
        self_.dtype()
    );
    set__source_storage_storage_offset(
        self_,
        source.storage()?,
        &source.sym_storage_offset(),
        &source.sym_sizes(),
        &source.sym_strides(),
    )
}
