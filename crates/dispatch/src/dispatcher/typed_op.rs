//! `TypedOp`: an operator called with typed arguments.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{DispatchKeySet, Error, Result};

use super::observer;
use super::operator_entry::OperatorEntry;
use super::operator_handle::OperatorHandle;
use super::registry::Dispatcher;
use crate::boxing::{signature_fits, ArgTuple, RetType};
use crate::schema::Type;

/// A static handle on an operator of signature `A -> R`, resolved at its first call.
///
/// ```ignore
/// static ADD: TypedOp<(Tensor, Tensor, Scalar), Tensor> = TypedOp::new("aten::add", "Tensor");
/// let sum = ADD.call((&a, &b, &Scalar::Int(1)))?;
/// ```
pub struct TypedOp<A, R> {
    name: &'static str,
    overload: &'static str,
    /// Null until resolved. Not a `OnceLock`, which a fork may leave half initialized.
    entry: AtomicPtr<OperatorEntry>,
    signature: PhantomData<fn(A) -> R>,
}

impl<A: ArgTuple, R: RetType> TypedOp<A, R> {
    /// Names the operator; nothing is looked up yet.
    pub const fn new(name: &'static str, overload: &'static str) -> TypedOp<A, R> {
        TypedOp { name, overload, entry: AtomicPtr::new(ptr::null_mut()), signature: PhantomData }
    }

    /// The operator, or an error if nobody defined it, or with another signature.
    #[inline]
    pub fn handle(&self) -> Result<OperatorHandle> {
        // SAFETY: null, or an entry that `resolve` has stored; entries are leaked.
        match unsafe { self.entry.load(Ordering::Acquire).as_ref() } {
            Some(entry) => Ok(entry.handle()),
            None => self.resolve(),
        }
    }

    #[cold]
    fn resolve(&self) -> Result<OperatorHandle> {
        let handle = Dispatcher::find_schema_or_err(self.name, self.overload)?;
        let schema = handle.schema()?;
        if !signature_fits(&A::schema_types(), &R::schema_types(), schema) {
            return Err(Error::internal(format!(
                "{schema} is called as ({}) -> ({})",
                join(&A::schema_types()),
                join(&R::schema_types())
            )));
        }
        self.entry.store(ptr::from_ref(handle.entry).cast_mut(), Ordering::Release);
        Ok(handle)
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

fn join(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use c10::{ErrorKind, SymInt, Tensor};

    use super::*;
    use crate::dispatcher::{Library, LibraryKind};

    #[test]
    fn a_handle_has_the_types_of_its_schema() {
        let mut library = Library::new(LibraryKind::Def, "typed_op_tests");
        library
            .def("f(Tensor self, SymInt[2] size, int? dim=None, *, str mode) -> (Tensor, Tensor)", &[])
            .unwrap();
        type Two = (Tensor, Tensor);
        let right = TypedOp::<(Tensor, Vec<SymInt>, Option<i64>, String), Two>::new("typed_op_tests::f", "");
        assert!(right.handle().is_ok());
        let optional = TypedOp::<(Tensor, Vec<SymInt>, Option<i64>, String), (Tensor, Option<Tensor>)>::new(
            "typed_op_tests::f",
            "",
        );
        assert!(optional.handle().is_ok(), "a return that may be missing");

        let ints = TypedOp::<(Tensor, Vec<i64>, Option<i64>, String), Two>::new("typed_op_tests::f", "");
        let error = ints.handle().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(
            error.message().ends_with("is called as (Tensor, int[], int?, str) -> (Tensor, Tensor)"),
            "{error}"
        );
        let few = TypedOp::<(Tensor, Vec<SymInt>, Option<i64>), Two>::new("typed_op_tests::f", "");
        assert!(few.handle().is_err());
        let one = TypedOp::<(Tensor, Vec<SymInt>, Option<i64>, String), Tensor>::new("typed_op_tests::f", "");
        assert!(one.handle().is_err());
        let required = TypedOp::<(Tensor, Vec<SymInt>, i64, String), Two>::new("typed_op_tests::f", "");
        assert!(required.handle().is_err());
    }
}
