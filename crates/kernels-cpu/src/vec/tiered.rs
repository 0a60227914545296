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
///
/// Loops that wait for memory rather than for arithmetic gain nothing from registers wider than AVX2's, and there are
/// hundreds of them: `tiered! { memory_bound: … }` leaves their AVX-512 instances out.
macro_rules! tiered {
    (memory_bound: $($functions:tt)*) => {
        $crate::vec::tiered_functions! { [avx2] $($functions)* }
    };
    ($($functions:tt)*) => {
        $crate::vec::tiered_functions! { [avx512 avx2] $($functions)* }
    };
}

/// The functions of `tiered!`; the tiers come widest first. What each tier's instance needs is said twice, taken
/// apart for the function itself and as one token tree for the instances, because repetitions do not nest.
macro_rules! tiered_functions {
    ($tiers:tt $(
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

            $crate::vec::tier_instances! {
                $tiers [$($($gen),*)?] [$($arg: $ty),*] [$(-> $ret)?] [$($($bounds)*)?]
            }
            body::<$crate::vec::math::Unfused, $($($gen),*)?>($($arg),*)
        }
    )*};
}

/// The body once more for each tier, and the jump there.
macro_rules! tier_instances {
    ([] $($signature:tt)*) => {};
    ([$tier:ident $($rest:ident)*] [$($gen:ident),*] [$($arg:ident : $ty:ty),*] [$($ret:tt)*] [$($bounds:tt)*]) => {
        $crate::vec::tier_instance! { $tier [$($gen),*] [$($arg: $ty),*] [$($ret)*] [$($bounds)*] }
        $crate::vec::tier_instances! { [$($rest)*] [$($gen),*] [$($arg: $ty),*] [$($ret)*] [$($bounds)*] }
    };
}

macro_rules! tier_instance {
    (avx512 $($signature:tt)*) => {
        $crate::vec::tier_instance! {
            @instance avx512 Avx512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
            $($signature)*
        }
    };
    (avx2 $($signature:tt)*) => {
        $crate::vec::tier_instance! { @instance avx2 Avx2 "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt" $($signature)* }
    };
    (
        @instance $tier:ident $capability:ident $features:literal
        [$($gen:ident),*] [$($arg:ident : $ty:ty),*] [$($ret:tt)*] [$($bounds:tt)*]
    ) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        #[allow(clippy::too_many_arguments)]
        fn $tier<$($gen),*>($($arg: $ty),*) $($ret)* where $($bounds)* {
            body::<$crate::vec::math::Fused, $($gen),*>($($arg),*)
        }
        #[cfg(target_arch = "x86_64")]
        if $crate::vec::capability() >= $crate::vec::CpuCapability::$capability {
            // SAFETY: `capability` names a tier only if the CPU was asked and has its features and those of the
            // tiers below it.
            return unsafe { $tier::<$($gen),*>($($arg),*) };
        }
    };
}

pub(crate) use {tier_instance, tier_instances, tiered, tiered_functions};
