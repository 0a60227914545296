//! Check macros. Each returns from the enclosing function with an error of its kind.
//!
//! A message says, in this order: which operator, which argument, what was expected, what was received.

/// Returns `Err` of the named [`ErrorKind`](crate::ErrorKind): `bail!(Value, "pad(): got {n}")`.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($arg:tt)+) => {
        return ::core::result::Result::Err($crate::Error::from_format(
            $crate::ErrorKind::$kind,
            ::core::format_args!($($arg)+),
        ))
    };
}

/// Returns a RuntimeError unless the condition holds.
#[macro_export]
macro_rules! check {
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            $crate::bail!(Runtime, $($arg)+);
        }
    };
}

/// Returns an IndexError unless the condition holds.
#[macro_export]
macro_rules! check_index {
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            $crate::bail!(Index, $($arg)+);
        }
    };
}

/// Returns a ValueError unless the condition holds.
#[macro_export]
macro_rules! check_value {
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            $crate::bail!(Value, $($arg)+);
        }
    };
}

/// Returns a TypeError unless the condition holds.
#[macro_export]
macro_rules! check_type {
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            $crate::bail!(Type, $($arg)+);
        }
    };
}

/// Returns a NotImplementedError unless the condition holds.
#[macro_export]
macro_rules! check_not_implemented {
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            $crate::bail!(NotImplemented, $($arg)+);
        }
    };
}

/// Returns an internal error unless the condition holds: our own mistake, and the message says so.
#[macro_export]
macro_rules! internal_assert {
    ($cond:expr $(,)?) => {
        if !$cond {
            return ::core::result::Result::Err($crate::Error::internal_assert_failed(
                ::core::stringify!($cond),
                ::core::file!(),
                ::core::line!(),
                ::core::format_args!(""),
            ));
        }
    };
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            return ::core::result::Result::Err($crate::Error::internal_assert_failed(
                ::core::stringify!($cond),
                ::core::file!(),
                ::core::line!(),
                ::core::format_args!($($arg)+),
            ));
        }
    };
}
