//! `KernelFunction`: one kernel of one operator, callable boxed and unboxed.

use std::any::TypeId;

use c10::{DispatchKeySet, Result};

use super::arg_tuple::ArgTuple;
use super::device_rules::DeviceRules;
use super::ivalue::Stack;
use super::ret_type::RetType;
use crate::dispatcher::OperatorHandle;

/// A boxed kernel: pops the operator's arguments from the stack and pushes its returns.
pub type BoxedFn = fn(OperatorHandle, DispatchKeySet, &mut Stack) -> Result<()>;

/// An unboxed kernel of signature `A -> R`. The arguments come as one tuple.
pub type Unboxed<A, R> = for<'a> fn(DispatchKeySet, <A as ArgTuple>::Refs<'a>) -> Result<R>;

type BoxedClosure = Box<dyn Fn(OperatorHandle, DispatchKeySet, &mut Stack) -> Result<()> + Send + Sync>;

enum Call {
    /// Not a kernel: dispatch goes on with the next key.
    Fallthrough,
    /// Not a kernel: several kernels could serve the key, and neither is better.
    Ambiguous,
    Boxed(BoxedFn),
    BoxedClosure(BoxedClosure),
    /// An unboxed kernel: its erased address, its signature, and the adapter for boxed calls.
    Unboxed {
        function: *const (),
        signature: TypeId,
        // SAFETY contract: to be called with the `function` beside it only.
        boxed: unsafe fn(*const (), DispatchKeySet, &mut Stack) -> Result<()>,
    },
    OnDevice(OnDevice),
}

/// An unboxed kernel with what holds around it.
struct OnDevice {
    rules: DeviceRules,
    function: *const (),
    signature: TypeId,
    // SAFETY contract: to be called with the `function` beside it only.
    boxed: unsafe fn(&OnDevice, OperatorHandle, DispatchKeySet, &mut Stack) -> Result<()>,
}

/// A kernel in either calling convention; the other one is derived.
pub struct KernelFunction(Call);

// SAFETY: the only non-Send, non-Sync part is the erased address of a plain function, which any thread may call.
unsafe impl Send for KernelFunction {}
// SAFETY: as above.
unsafe impl Sync for KernelFunction {}

impl KernelFunction {
    /// A kernel from a typed function.
    pub fn from_unboxed<A: ArgTuple, R: RetType>(function: Unboxed<A, R>) -> KernelFunction {
        KernelFunction(Call::Unboxed {
            function: function as *const (),
            signature: TypeId::of::<(A, R)>(),
            boxed: call_unboxed_from_stack::<A, R>,
        })
    }

    /// A kernel of a backend from a typed function: the rules hold around each call.
    pub fn from_unboxed_on_device<A: ArgTuple, R: RetType>(
        function: Unboxed<A, R>,
        rules: DeviceRules,
    ) -> KernelFunction {
        KernelFunction(Call::OnDevice(OnDevice {
            rules,
            function: function as *const (),
            signature: TypeId::of::<(A, R)>(),
            boxed: call_on_device_from_stack::<A, R>,
        }))
    }

    /// A kernel from a function over the stack.
    pub fn from_boxed(function: BoxedFn) -> KernelFunction {
        KernelFunction(Call::Boxed(function))
    }

    /// A kernel from a closure over the stack.
    pub fn from_boxed_closure(
        closure: impl Fn(OperatorHandle, DispatchKeySet, &mut Stack) -> Result<()> + Send + Sync + 'static,
    ) -> KernelFunction {
        KernelFunction(Call::BoxedClosure(Box::new(closure)))
    }

    /// "No kernel here": dispatch goes on with the next key.
    pub const fn fallthrough() -> KernelFunction {
        KernelFunction(Call::Fallthrough)
    }

    /// "Several kernels could serve this key": calling it is an error that says so.
    pub const fn ambiguous() -> KernelFunction {
        KernelFunction(Call::Ambiguous)
    }

    /// Whether this is [`KernelFunction::fallthrough`].
    #[inline]
    pub fn is_fallthrough(&self) -> bool {
        matches!(self.0, Call::Fallthrough)
    }

    /// The signature of an unboxed kernel; `None` for boxed ones, which fit every operator.
    pub fn signature(&self) -> Option<TypeId> {
        match self.0 {
            Call::Unboxed { signature, .. } | Call::OnDevice(OnDevice { signature, .. }) => Some(signature),
            _ => None,
        }
    }

    /// Calls the kernel with typed arguments.
    #[inline]
    pub fn call<A: ArgTuple, R: RetType>(
        &self,
        op: OperatorHandle,
        keyset: DispatchKeySet,
        args: A::Refs<'_>,
    ) -> Result<R> {
        if let Call::Unboxed { function, signature, .. } = self.0 {
            if signature == TypeId::of::<(A, R)>() {
                // SAFETY: `function` was an `Unboxed<A, R>` when the kernel was made, as its signature proves.
                let function: Unboxed<A, R> = unsafe { std::mem::transmute(function) };
                return function(keyset, args);
            }
        }
        if let Call::OnDevice(kernel) = &self.0 {
            if kernel.signature == TypeId::of::<(A, R)>() {
                let _guard = kernel.rules.enter::<A>(op, keyset, args)?;
                // SAFETY: as above.
                let function: Unboxed<A, R> = unsafe { std::mem::transmute(kernel.function) };
                return function(keyset, args);
            }
        }
        let mut stack = Stack::new();
        A::push(args, &mut stack);
        self.call_boxed(op, keyset, &mut stack)?;
        R::pop(&mut stack)
    }

    /// Calls the kernel with the arguments on a stack.
    #[inline]
    pub fn call_boxed(&self, op: OperatorHandle, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        match &self.0 {
            // SAFETY: `boxed` is the adapter made for this `function`.
            Call::Unboxed { function, boxed, .. } => unsafe { boxed(*function, keyset, stack) },
            // SAFETY: as above.
            Call::OnDevice(kernel) => unsafe { (kernel.boxed)(kernel, op, keyset, stack) },
            Call::Boxed(function) => function(op, keyset, stack),
            Call::BoxedClosure(closure) => closure(op, keyset, stack),
            Call::Fallthrough => op.fell_through(),
            Call::Ambiguous => op.ambiguous(keyset),
        }
    }
}

/// The boxed form of an unboxed kernel: one instance per signature, not per operator.
///
/// # Safety
/// `function` must be an `Unboxed<A, R>`.
unsafe fn call_unboxed_from_stack<A: ArgTuple, R: RetType>(
    function: *const (),
    keyset: DispatchKeySet,
    stack: &mut Stack,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let function: Unboxed<A, R> = unsafe { std::mem::transmute(function) };
    let holders = A::pop(stack)?;
    function(keyset, A::borrow(&holders))?.push(stack);
    Ok(())
}

/// [`call_unboxed_from_stack`] with the rules around it.
///
/// # Safety
/// The kernel's function must be an `Unboxed<A, R>`.
unsafe fn call_on_device_from_stack<A: ArgTuple, R: RetType>(
    kernel: &OnDevice,
    op: OperatorHandle,
    keyset: DispatchKeySet,
    stack: &mut Stack,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let function: Unboxed<A, R> = unsafe { std::mem::transmute(kernel.function) };
    let holders = A::pop(stack)?;
    let args = A::borrow(&holders);
    let _guard = kernel.rules.enter::<A>(op, keyset, args)?;
    function(keyset, args)?.push(stack);
    Ok(())
}
