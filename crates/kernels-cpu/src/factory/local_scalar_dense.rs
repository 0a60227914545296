//! `_local_scalar_dense`: what `item()` reads.

use c10::{internal_assert, Result, Scalar, Tensor};

use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        local_scalar_dense_kernel: fn(&Tensor) -> Scalar;
    }
}

fn local_scalar_dense_kernel(self_: &Tensor) -> Result<Scalar> {
    let address = Address(self_.const_data_ptr().cast_mut());
    internal_assert!(
        self_.numel()? == 1 && !address.0.is_null(),
        "_local_scalar_dense of {:?}",
        self_.sizes()?
    );
    Ok(dispatch!(self_.dtype(), "local_scalar_dense_kernel", EVERY, |T| {
        // SAFETY: the tensor has one element, of this dtype.
        Scalar::from_element(<T as Stored>::load(unsafe { address.read() }))
    }))
}
