//! The arguments of an operator as one tuple of [`ArgType`]s.

use c10::{DispatchKeySet, Error, Result};

use super::arg_type::ArgType;
use super::ivalue::Stack;
use crate::schema::Type;

/// A tuple of argument types, `(Tensor, Tensor, Scalar)` for `add.Tensor`.
pub trait ArgTuple: 'static {
    /// What an unboxed kernel receives: the tuple of [`ArgType::Ref`]s.
    type Refs<'a>: Copy;
    /// What a boxed call keeps alive while the kernel runs.
    type Holders;
    /// How many arguments there are.
    const LEN: usize;

    /// The arguments' types in a schema.
    fn schema_types() -> Vec<Type>;
    /// The union of the arguments' key sets.
    fn key_set(refs: Self::Refs<'_>) -> DispatchKeySet;
    /// Boxes the arguments onto a stack.
    fn push(refs: Self::Refs<'_>, stack: &mut Stack);
    /// Pops the last [`ArgTuple::LEN`] values of a stack.
    fn pop(stack: &mut Stack) -> Result<Self::Holders>;
    /// Borrows popped arguments.
    fn borrow(holders: &Self::Holders) -> Self::Refs<'_>;
}

#[cold]
fn too_few(found: usize, expected: usize) -> Error {
    Error::internal(format!("boxed call: expected {expected} arguments on the stack, got {found}"))
}

macro_rules! arg_tuple {
    ($len:literal; $($T:ident $i:tt),*) => {
        impl<$($T: ArgType),*> ArgTuple for ($($T,)*) {
            type Refs<'a> = ($($T::Ref<'a>,)*);
            type Holders = ($($T::Holder,)*);
            const LEN: usize = $len;

            fn schema_types() -> Vec<Type> {
                vec![$($T::schema_type()),*]
            }
            #[inline]
            #[allow(unused_variables)]
            fn key_set(refs: Self::Refs<'_>) -> DispatchKeySet {
                DispatchKeySet::default() $(| $T::key_set(refs.$i))*
            }
            #[inline]
            #[allow(unused_variables)]
            fn push(refs: Self::Refs<'_>, stack: &mut Stack) {
                $(stack.push($T::to_ivalue(refs.$i));)*
            }
            #[allow(unused_mut, unused_variables)]
            fn pop(stack: &mut Stack) -> Result<Self::Holders> {
                let first = stack.len().checked_sub($len).ok_or_else(|| too_few(stack.len(), $len))?;
                let mut slots = stack[first..].iter_mut();
                // Slots are left as `None` and cut off below, so that no value is copied.
                let holders = ($({
                    let slot = slots.next().map(std::mem::take).unwrap_or_default();
                    $T::hold(slot).map_err(|e| e.context(concat!("in argument ", stringify!($i))))?
                },)*);
                stack.truncate(first);
                Ok(holders)
            }
            #[inline]
            #[allow(clippy::unused_unit)]
            fn borrow(holders: &Self::Holders) -> Self::Refs<'_> {
                let _ = holders;
                ($($T::borrow(&holders.$i),)*)
            }
        }
    };
}

arg_tuple!(0;);
arg_tuple!(1; A 0);
arg_tuple!(2; A 0, B 1);
arg_tuple!(3; A 0, B 1, C 2);
arg_tuple!(4; A 0, B 1, C 2, D 3);
arg_tuple!(5; A 0, B 1, C 2, D 3, E 4);
arg_tuple!(6; A 0, B 1, C 2, D 3, E 4, F 5);
arg_tuple!(7; A 0, B 1, C 2, D 3, E 4, F 5, G 6);
arg_tuple!(8; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
arg_tuple!(9; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
arg_tuple!(10; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
arg_tuple!(11; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
arg_tuple!(12; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
arg_tuple!(13; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
arg_tuple!(14; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
arg_tuple!(15; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
arg_tuple!(16; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15);
arg_tuple!(17; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16);
arg_tuple!(18; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17);
arg_tuple!(19; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18);
arg_tuple!(20; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19);
arg_tuple!(21; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19, U 20);
arg_tuple!(22; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19, U 20, V 21);
arg_tuple!(23; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19, U 20, V 21, W 22);
arg_tuple!(24; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19, U 20, V 21, W 22, X 23);
