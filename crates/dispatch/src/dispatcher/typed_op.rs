//! `TypedOp`: an operator called with typed arguments.

use std::marker::PhantomData;
use std::sync::OnceLock;

use c10::{DispatchKeySet, Result};

use super::observer;
use super::operator_handle::OperatorHandle;
use super::registry::Dispatcher;
use crate::boxing::{ArgTuple, RetType};

/// A static handle on an operator of signature `A -> R`, resolved at its first call.
///
/// ```ignore
/// static ADD: TypedOp<(Tensor, Tensor, Scalar), Tensor> = TypedOp::new("aten::add", "Tensor");
/// let sum = ADD.call((&a, &b, &Scalar::Int(1)))?;
/// ```
pub struct TypedOp<A, R> {
    name: &'static str,
    overload: &'static str,
    handle: OnceLock<OperatorHandle>,
    signature: PhantomData<fn(A) -> R>,
}

impl<A: ArgTuple, R: RetType> TypedOp<A, R> {
    /// Names the operator; nothing is looked up yet.
    pub const fn new(name: &'static str, overload: &'static str) -> TypedOp<A, R> {
        TypedOp { name, overload, handle: OnceLock::new(), signature: PhantomData }
    }

    /// The operator, or an error if nobody defined it.
    #[inline]
    pub fn handle(&self) -> Result<OperatorHandle> {
        match self.handle.get() {
            Some(handle) => Ok(*handle),
            None => self.resolve(),
        }
    }

    #[cold]
    fn resolve(&self) -> Result<OperatorHandle> {
        let handle = Dispatcher::find_schema_or_err(self.name, self.overload)?;
        Ok(*self.handle.get_or_init(|| handle))
    }

    /// Calls the operator.
    #[inline]
    pub fn call(&self, args: A::Refs<'_>) -> Result<R> {
        let op = self.handle()?;
        let keyset = op.dispatch_keyset(A::key_set(args));
        let (kernel, keyset) = op.entry.lookup(keyset)?;
        if observer::active() {
            return observer::observe_unboxed::<A, R>(op, keyset, kernel, args);
        }
        kernel.call::<A, R>(op, keyset, args)
    }

    /// Goes on with a call, considering only the keys in `keyset` (thread-local sets do not count).
    #[inline]
    pub fn redispatch(&self, keyset: DispatchKeySet, args: A::Refs<'_>) -> Result<R> {
        let op = self.handle()?;
        let (kernel, keyset) = op.entry.lookup(op.entry.without_fallthrough(keyset))?;
        kernel.call::<A, R>(op, keyset, args)
    }
}
