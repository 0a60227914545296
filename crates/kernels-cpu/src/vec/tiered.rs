//! `tiered!`: one function, compiled for each tier.

/// Defines a function whose body is compiled once per tier and chosen when called.
///
/// The body sees a type parameter `A: Arith` (see [`crate::vec::math::Arith`]) that says whether fused
/// multiply-add is an instruction in this tier. The body must be one that LLVM can inline: plain loops, and
/// calls of `#[inline(always)]` functions and closures.
///
/// ```ignore
/// tiered! {
///     /// Adds `y` to `x`.
///     pub fn add_assign<T>(x: &mut [T], y: &[T]) where { T: Copy + std::ops::AddAssign } => A {
///         for (x, y) in x.iter_mut().zip(y) { *x += *y; }
///     }
/// }
/// ```
macro_rules! tiered {
    ($(
        $(#[$attr:meta])*
        $vis:vis fn $name:ident $(<$($gen:ident),*>)? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?
        $(where { $($bounds:tt)* })? => $A:ident $body:block
    )*) => {$(
        $(#[$attr])*
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<$($gen),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<$A: $crate::vec::math::Arith, $($($gen),*)?>($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                #[allow(clippy::too_many_arguments)]
                fn avx2 $(<$($gen),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
                    body::<$crate::vec::math::Fused, $($($gen),*)?>($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                #[allow(clippy::too_many_arguments)]
                fn avx512 $(<$($gen),*>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
                    body::<$crate::vec::math::Fused, $($($gen),*)?>($($arg),*)
                }
                match $crate::vec::capability() {
                    // SAFETY: `capability` names AVX-512 only if the CPU was asked and has these features.
                    $crate::vec::CpuCapability::Avx512 => return unsafe { avx512 $(::<$($gen),*>)? ($($arg),*) },
                    // SAFETY: as above, for AVX2.
                    $crate::vec::CpuCapability::Avx2 => return unsafe { avx2 $(::<$($gen),*>)? ($($arg),*) },
                    $crate::vec::CpuCapability::Default => {}
                }
            }
            body::<$crate::vec::math::Unfused, $($($gen),*)?>($($arg),*)
        }
    )*};
}

pub(crate) use tiered;
