//! `any` and `all`, by element size: whether an element is zero depends on its bits alone, save a float's sign.

use c10::{Result, ScalarType};
use iter::TensorIterator;

use super::driver::reduce;
use super::monoid::Monoid;
use crate::registration::register;

pub(super) fn register() {
    register! {
        any_kernel: fn(&TensorIterator);
        all_kernel: fn(&TensorIterator);
    }
}

fn any_kernel(iter: &TensorIterator) -> Result<()> {
    truth::<true>(iter, "any_kernel")
}

fn all_kernel(iter: &TensorIterator) -> Result<()> {
    truth::<false>(iter, "all_kernel")
}

fn truth<const ANY: bool>(iter: &TensorIterator, name: &'static str) -> Result<()> {
    use ScalarType::*;
    match iter.dtype(1) {
        Bool | Byte | Char => reduce::<Truth<u8, false, ANY>>(iter),
        Short | UInt16 => reduce::<Truth<u16, false, ANY>>(iter),
        Int | UInt32 => reduce::<Truth<u32, false, ANY>>(iter),
        Long | UInt64 => reduce::<Truth<u64, false, ANY>>(iter),
        Half | BFloat16 => reduce::<Truth<u16, true, ANY>>(iter),
        Float => reduce::<Truth<u32, true, ANY>>(iter),
        Double => reduce::<Truth<u64, true, ANY>>(iter),
        ComplexHalf => reduce::<Truth<[u16; 2], true, ANY>>(iter),
        ComplexFloat => reduce::<Truth<[u32; 2], true, ANY>>(iter),
        ComplexDouble => reduce::<Truth<[u64; 2], true, ANY>>(iter),
        other => Err(c10::dtype_not_implemented(name, other)),
    }
}

/// The bits of an element.
pub(crate) trait Bits: Copy + Send + Sync + 'static {
    /// Bits that are zero exactly if the element is. `FLOAT`: the sign does not count.
    type Word: Copy + Send + Sync + PartialEq + 'static;
    const NONE: Self::Word;
    const ALL: Self::Word;
    fn significant<const FLOAT: bool>(self) -> Self::Word;
    fn or(a: Self::Word, b: Self::Word) -> Self::Word;
    fn and(a: Self::Word, b: Self::Word) -> Self::Word;
}

macro_rules! bits {
    ($($W:ty),*) => {$(
        impl Bits for $W {
            type Word = $W;
            const NONE: $W = 0;
            const ALL: $W = <$W>::MAX;
            #[inline(always)]
            fn significant<const FLOAT: bool>(self) -> $W {
                if FLOAT { self << 1 } else { self }
            }
            #[inline(always)]
            fn or(a: $W, b: $W) -> $W {
                a | b
            }
            #[inline(always)]
            fn and(a: $W, b: $W) -> $W {
                a & b
            }
        }

        impl Bits for [$W; 2] {
            type Word = $W;
            const NONE: $W = 0;
            const ALL: $W = <$W>::MAX;
            #[inline(always)]
            fn significant<const FLOAT: bool>(self) -> $W {
                let both = self[0] | self[1];
                if FLOAT { both << 1 } else { both }
            }
            #[inline(always)]
            fn or(a: $W, b: $W) -> $W {
                a | b
            }
            #[inline(always)]
            fn and(a: $W, b: $W) -> $W {
                a & b
            }
        }
    )*};
}

bits!(u8, u16, u32, u64);

/// `any` or `all` of elements of a size.
struct Truth<W, const FLOAT: bool, const ANY: bool>(std::marker::PhantomData<W>);

impl<W: Bits, const FLOAT: bool, const ANY: bool> Monoid for Truth<W, FLOAT, ANY> {
    type In = W;
    type Lane = W::Word;
    type Total = bool;
    type Out = u8;

    #[inline(always)]
    fn identity() -> W::Word {
        if ANY {
            W::NONE
        } else {
            W::ALL
        }
    }
    #[inline(always)]
    fn lift(element: W) -> W::Word {
        let bits = element.significant::<FLOAT>();
        if ANY {
            bits
        } else if bits == W::NONE {
            W::NONE
        } else {
            W::ALL
        }
    }
    #[inline(always)]
    fn join(a: W::Word, b: W::Word) -> W::Word {
        if ANY {
            W::or(a, b)
        } else {
            W::and(a, b)
        }
    }
    #[inline(always)]
    fn total(lane: W::Word) -> bool {
        lane != W::NONE
    }
    #[inline(always)]
    fn merge(a: bool, b: bool) -> bool {
        if ANY {
            a | b
        } else {
            a & b
        }
    }
    #[inline(always)]
    fn finish(total: bool) -> u8 {
        total as u8
    }
    #[inline(always)]
    fn is_settled(total: bool) -> bool {
        total == ANY
    }
}
