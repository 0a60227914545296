//! What an operator returns, boxed and unboxed.

use std::sync::Arc;

use c10::{internal_assert, Error, Result, Scalar, ScalarType, Storage, SymBool, SymFloat, SymInt, Tensor};

use num_complex::Complex64;

use super::ivalue::{IValue, Stack};
use super::schema_type::SchemaType;
use crate::schema::Type;

/// An operator's return type: one value, a tuple of values (one stack slot each), or `()`.
pub trait RetType: Sized + 'static {
    /// How many stack slots the value takes.
    const LEN: usize;
    /// The values' types in a schema.
    fn schema_types() -> Vec<Type>;
    /// Boxes the value onto a stack.
    fn push(self, stack: &mut Stack);
    /// Pops the value from a stack.
    fn pop(stack: &mut Stack) -> Result<Self>;
}

impl RetType for () {
    const LEN: usize = 0;
    fn schema_types() -> Vec<Type> {
        Vec::new()
    }
    fn push(self, _stack: &mut Stack) {}
    fn pop(_stack: &mut Stack) -> Result<()> {
        Ok(())
    }
}

/// A type that takes one stack slot.
trait OneSlot: SchemaType + Into<IValue> + 'static {
    /// Unboxes the slot's value.
    fn take(value: IValue) -> Result<Self>;
}

macro_rules! one_slot {
    ($($ty:ty, |$value:ident| $take:expr);* $(;)?) => {$(
        impl OneSlot for $ty {
            #[inline]
            fn take($value: IValue) -> Result<$ty> {
                $take
            }
        }
        impl RetType for $ty {
            const LEN: usize = 1;
            fn schema_types() -> Vec<Type> {
                vec![<$ty as SchemaType>::schema_type()]
            }
            #[inline]
            fn push(self, stack: &mut Stack) {
                stack.push(self.into());
            }
            #[inline]
            fn pop(stack: &mut Stack) -> Result<$ty> {
                let value = stack.pop();
                let missing = || Error::internal("a boxed kernel left no return value on the stack");
                <$ty as OneSlot>::take(value.ok_or_else(missing)?)
            }
        }
    )*};
}

one_slot! {
    Tensor, |value| match value {
        IValue::Tensor(t) => Ok(t),
        other => Err(other.mismatch("Tensor")),
    };
    Option<Tensor>, |value| match value {
        IValue::Tensor(t) => Ok(Some(t)),
        IValue::None => Ok(None),
        other => Err(other.mismatch("Tensor?")),
    };
    Vec<Tensor>, |value| value.to_tensor_list().map(|v| v.to_vec());
    i64, |value| value.to_int();
    f64, |value| value.to_double();
    bool, |value| value.to_bool();
    Complex64, |value| match value {
        IValue::ComplexDouble(v) => Ok(v),
        other => other.to_double().map(Complex64::from),
    };
    Scalar, |value| value.to_scalar();
    SymInt, |value| value.to_sym_int();
    SymFloat, |value| match value {
        IValue::SymFloat(v) => Ok(v),
        other => other.to_double().map(SymFloat::from),
    };
    SymBool, |value| match value {
        IValue::SymBool(v) => Ok(v),
        other => other.to_bool().map(SymBool::from),
    };
    ScalarType, |value| value.to_scalar_type();
    Storage, |value| match value {
        IValue::Storage(v) => Ok(v),
        other => Err(other.mismatch("Storage")),
    };
    Arc<[i64]>, |value| value.to_int_list();
    String, |value| value.to_str().map(str::to_owned);
}

macro_rules! tuple {
    ($len:literal; $($T:ident $i:tt),*) => {
        #[allow(private_bounds)]
        impl<$($T: OneSlot),*> RetType for ($($T,)*) {
            const LEN: usize = $len;
            fn schema_types() -> Vec<Type> {
                vec![$($T::schema_type()),*]
            }
            #[inline]
            fn push(self, stack: &mut Stack) {
                $(stack.push(self.$i.into());)*
            }
            fn pop(stack: &mut Stack) -> Result<Self> {
                internal_assert!(stack.len() >= $len, "a boxed kernel left {} of {} return values on the stack", stack.len(), $len);
                let first = stack.len() - $len;
                let mut slots = stack[first..].iter_mut();
                let values = ($($T::take(slots.next().map(std::mem::take).unwrap_or_default())?,)*);
                stack.truncate(first);
                Ok(values)
            }
        }
    };
}

tuple!(2; A 0, B 1);
tuple!(3; A 0, B 1, C 2);
tuple!(4; A 0, B 1, C 2, D 3);
tuple!(5; A 0, B 1, C 2, D 3, E 4);
tuple!(6; A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(7; A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(8; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(9; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
