//! The dtype switch, once per kernel.

/// `c10::dispatch_dtypes!` for a body that is itself a `Result`: an unsupported dtype and a failing body look alike.
macro_rules! dispatch {
    ($($tokens:tt)*) => {
        c10::dispatch_dtypes!($($tokens)*)?
    };
}

pub(crate) use dispatch;
