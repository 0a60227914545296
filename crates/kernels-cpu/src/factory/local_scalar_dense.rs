//! `_local_scalar_dense`: what `item()` reads.

use c10::{check, Result, Scalar, Tensor};

use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use c10::float8;

pub(super) fn register() {
    register! {
        local_scalar_dense_kernel: fn(&Tensor) -> Scalar;
    }
}

fn local_scalar_dense_kernel(self_: &Tensor) -> Result<Scalar> {
    let address = Address(self_.const_data_ptr().cast_mut());
    check!(
        self_.numel()? > 0 && !address.0.is_null(),
        "_local_scalar_dense: expected a tensor with an element, but got one of sizes {:?}",
        self_.sizes()?
    );
    self_.check_in_storage()?;
    if let Some(values) = float8::values(self_.dtype()) {
        // SAFETY: as below, of one byte.
        return Ok(Scalar::Float(f64::from(values[usize::from(unsafe { address.read::<u8>() })])));
    }
    Ok(dispatch!(self_.dtype(), "local_scalar_dense_kernel", EVERY, |T| {
        // SAFETY: the tensor has a first element, of this dtype, inside its storage.
        Scalar::from_element(<T as Stored>::load(unsafe { address.read() }))
    }))
}
