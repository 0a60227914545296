//! Puts kernels into `iter::kernel_registry`.

/// `register!(add_kernel: fn(&TensorIterator, &Scalar))` registers a function under its own name.
macro_rules! register {
    ($($name:ident : fn($($arg:ty),* $(,)?) $(-> $ret:ty)?);* $(;)?) => {$(
        iter::kernel_registry::register(
            stringify!($name),
            c10::DispatchKey::CPU,
            $name as fn($($arg),*) -> $crate::registration::ret!($($ret)?),
        );
    )*};
}

/// What a kernel returns: `Result<()>` unless stated.
macro_rules! ret {
    () => { c10::Result<()> };
    ($ret:ty) => { c10::Result<$ret> };
}

pub(crate) use {register, ret};
