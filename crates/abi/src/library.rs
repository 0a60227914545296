//! Registration and calls, for extensions.

use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::error::{check, Error, Result};
use crate::stack::Stack;
use crate::table::{Abi, AbiAllocator, AbiError, AbiLibrary, AbiOp, AbiStack, AbiStr, VERSION};
use crate::tensor::Tensor;

/// The interface of the running process.
#[derive(Clone, Copy)]
pub struct Api {
    table: &'static Abi,
}

/// What a library may do.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum LibraryKind {
    /// Owns a namespace.
    Def = 0,
    /// Registers kernels.
    Impl = 1,
    /// Adds to a namespace.
    Fragment = 2,
}

/// An operator.
#[derive(Clone, Copy)]
pub struct Op {
    table: &'static Abi,
    raw: *const AbiOp,
}

// SAFETY: operators live as long as the process and the table's functions are thread-safe.
unsafe impl Send for Op {}
// SAFETY: as above.
unsafe impl Sync for Op {}

/// One boxed call, as a kernel sees it.
pub struct Call {
    /// The operator called.
    pub op: Op,
    /// The keys of the call.
    pub keyset: u64,
    /// Arguments; the kernel replaces them by the returns.
    pub stack: Stack,
}

/// A set of registrations, taken back when dropped.
pub struct Library {
    table: &'static Abi,
    raw: *mut AbiLibrary,
}

// SAFETY: the table's functions are thread-safe; a library has one owner.
unsafe impl Send for Library {}

impl Api {
    /// Checks the table of the process.
    ///
    /// # Safety
    /// `table` must point to the table that `ptr._C` exports.
    pub unsafe fn from_table(table: *const Abi) -> Result<Api> {
        // SAFETY: the caller's promise; the two numbers come first in every version.
        let table: &'static Abi = unsafe { &*table };
        if table.version != VERSION || (table.size as usize) < std::mem::size_of::<Abi>() {
            return Err(Error::runtime(format!(
                "this extension was built for version {VERSION} of the ptr ABI ({} bytes), the process has version {} ({} bytes)",
                std::mem::size_of::<Abi>(),
                table.version,
                table.size
            )));
        }
        Ok(Api { table })
    }

    /// The table, for what the wrappers do not cover.
    pub fn table(&self) -> &'static Abi {
        self.table
    }

    /// A new library.
    pub fn library(&self, kind: LibraryKind, namespace: &str) -> Result<Library> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the arguments live through the call, which writes `raw` on success.
        check(self.table, unsafe {
            (self.table.library_new)(kind as u32, AbiStr::new(namespace), &mut raw)
        })?;
        Ok(Library { table: self.table, raw })
    }

    /// The operator of a name and overload.
    pub fn find(&self, name: &str, overload: &str) -> Option<Op> {
        // SAFETY: the strings live through the call.
        let raw = unsafe { (self.table.op_find)(AbiStr::new(name), AbiStr::new(overload)) };
        (!raw.is_null()).then_some(Op { table: self.table, raw })
    }

    /// An empty stack.
    pub fn stack(&self) -> Stack {
        Stack::new(self.table)
    }

    /// An uninitialized strided tensor.
    pub fn empty_strided(&self, sizes: &[i64], strides: &[i64], dtype: u32, device: i64) -> Result<Tensor> {
        if sizes.len() != strides.len() {
            return Err(Error::runtime("empty_strided(): sizes and strides differ in length"));
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: both lists have `dim` elements; `raw` is written on success.
        unsafe {
            check(
                self.table,
                (self.table.tensor_empty_strided)(
                    sizes.as_ptr(),
                    strides.as_ptr(),
                    sizes.len(),
                    dtype,
                    device,
                    &mut raw,
                ),
            )?;
            Ok(Tensor::from_raw(self.table, raw))
        }
    }

    /// Registers the allocator of a device type.
    ///
    /// # Safety
    /// The allocator must keep its promises (see [`AbiAllocator`]) for the life of the process.
    pub unsafe fn register_device(
        &self,
        device_type: i32,
        devices: u32,
        allocator: AbiAllocator,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        check(self.table, unsafe { (self.table.device_register)(device_type, devices, allocator) })
    }

    /// Names the device type `PrivateUse1`.
    pub fn rename_privateuse1(&self, name: &str) -> Result<()> {
        // SAFETY: the string lives through the call.
        check(self.table, unsafe { (self.table.device_rename)(AbiStr::new(name)) })
    }

    /// The set of the keys with less priority than `key`.
    pub fn keyset_below(&self, key: &str) -> u64 {
        // SAFETY: the string lives through the call.
        unsafe { (self.table.keyset_below)(AbiStr::new(key)) }
    }

    /// Runs `f` with keys included and excluded on this thread.
    pub fn with_keys<R>(&self, include: u64, exclude: u64, f: impl FnOnce() -> R) -> R {
        struct Restore(&'static Abi, [u64; 2]);
        impl Drop for Restore {
            fn drop(&mut self) {
                // SAFETY: `before` was written by `keys_change` on this thread.
                unsafe { (self.0.keys_restore)(&self.1) }
            }
        }
        let mut restore = Restore(self.table, [0; 2]);
        // SAFETY: `before` is writable.
        unsafe { (self.table.keys_change)(include, exclude, &mut restore.1) };
        f()
    }

    /// Records how a call is differentiated: the newest `outputs` values of `stack` become outputs of a graph node
    /// named `name`, whose gradients `backward` replaces by those of the `inputs` values below.
    pub fn record<F>(
        &self,
        stack: &mut Stack,
        inputs: usize,
        outputs: usize,
        name: &str,
        backward: F,
    ) -> Result<()>
    where
        F: Fn(&mut Call) -> Result<()> + Send + Sync + 'static,
    {
        let context =
            Box::into_raw(Box::new(Context { table: self.table, kernel: backward })).cast::<c_void>();
        // SAFETY: `trampoline::<F>` and `drop_context::<F>` expect just this context; the stack is live.
        check(self.table, unsafe {
            (self.table.autograd_record)(
                stack.raw,
                inputs,
                outputs,
                AbiStr::new(name),
                trampoline::<F>,
                context,
                Some(drop_context::<F>),
            )
        })
    }

    /// The set that holds one key.
    pub fn keyset_of(&self, key: &str) -> u64 {
        // SAFETY: the string lives through the call.
        unsafe { (self.table.keyset_of)(AbiStr::new(key)) }
    }
}

impl Op {
    /// `aten::add.Tensor`; empty for the backward function of a graph node, which belongs to no operator.
    pub fn name(&self) -> &'static str {
        if self.raw.is_null() {
            return "";
        }
        // SAFETY: operator names live as long as the process.
        unsafe { (self.table.op_name)(self.raw).get() }
    }

    /// How many arguments and returns the operator has.
    pub fn arity(&self) -> Result<(usize, usize)> {
        let (mut arguments, mut returns) = (0, 0);
        // SAFETY: both numbers are writable.
        check(self.table, unsafe { (self.table.op_arity)(self.raw, &mut arguments, &mut returns) })?;
        Ok((arguments, returns))
    }

    /// Calls the operator.
    pub fn call(&self, stack: &mut Stack) -> Result<()> {
        // SAFETY: a live operator and a live stack.
        check(self.table, unsafe { (self.table.op_call)(self.raw, stack.raw) })
    }

    /// Goes on with a call below some keys.
    pub fn redispatch(&self, keyset: u64, stack: &mut Stack) -> Result<()> {
        // SAFETY: as in `call`.
        check(self.table, unsafe { (self.table.op_redispatch)(self.raw, keyset, stack.raw) })
    }
}

/// A kernel closure and the table it needs, behind the `context` pointer.
struct Context<F> {
    table: &'static Abi,
    kernel: F,
}

impl Library {
    /// Defines an operator.
    pub fn def(&mut self, schema: &str) -> Result<()> {
        // SAFETY: `raw` is live; the string lives through the call.
        check(self.table, unsafe { (self.table.library_def)(self.raw, AbiStr::new(schema)) })
    }

    /// Registers a kernel for an operator and a dispatch key (`"CPU"`, `"AutogradCPU"`, `"Autograd"`, …).
    pub fn kernel<F>(&mut self, name: &str, key: &str, kernel: F) -> Result<()>
    where
        F: Fn(&mut Call) -> Result<()> + Send + Sync + 'static,
    {
        let context = Box::into_raw(Box::new(Context { table: self.table, kernel })).cast::<c_void>();
        // SAFETY: `trampoline::<F>` and `drop_context::<F>` expect just this context, which the process keeps.
        check(self.table, unsafe {
            (self.table.library_impl)(
                self.raw,
                AbiStr::new(name),
                AbiStr::new(key),
                trampoline::<F>,
                context,
                Some(drop_context::<F>),
            )
        })
    }

    /// Registers the process's own CPU fallback as the kernel of all operators that have none for `key`.
    pub fn cpu_fallback(&mut self, key: &str) -> Result<()> {
        // SAFETY: `cpu_fallback` ignores its context.
        check(self.table, unsafe {
            (self.table.library_fallback)(
                self.raw,
                AbiStr::new(key),
                self.table.cpu_fallback,
                std::ptr::null_mut(),
                None,
            )
        })
    }

    /// Registers the kernel of all operators that have none for `key`.
    pub fn fallback<F>(&mut self, key: &str, kernel: F) -> Result<()>
    where
        F: Fn(&mut Call) -> Result<()> + Send + Sync + 'static,
    {
        let context = Box::into_raw(Box::new(Context { table: self.table, kernel })).cast::<c_void>();
        // SAFETY: as in `kernel`.
        check(self.table, unsafe {
            (self.table.library_fallback)(
                self.raw,
                AbiStr::new(key),
                trampoline::<F>,
                context,
                Some(drop_context::<F>),
            )
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: owned and freed once.
        unsafe { (self.table.library_free)(self.raw) }
    }
}

/// # Safety
/// `context` must be a `Context<F>`, and the rest what the process hands to a kernel.
unsafe extern "C" fn trampoline<F>(
    context: *mut c_void,
    op: *const AbiOp,
    keyset: u64,
    stack: *mut AbiStack,
) -> *mut AbiError
where
    F: Fn(&mut Call) -> Result<()>,
{
    // SAFETY: the caller's promise; the context is never freed once registered.
    let context = unsafe { &*context.cast::<Context<F>>() };
    let table = context.table;
    let mut call = Call { op: Op { table, raw: op }, keyset, stack: Stack::borrowed(table, stack) };
    // No panic may cross into the process.
    match catch_unwind(AssertUnwindSafe(|| (context.kernel)(&mut call))) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(error)) => error.into_raw(table),
        Err(_) => {
            Error::runtime(format!("{}: the extension's kernel panicked", call.op.name())).into_raw(table)
        }
    }
}

/// # Safety
/// `context` must be a `Context<F>` that nobody uses any more.
unsafe extern "C" fn drop_context<F>(context: *mut c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(context.cast::<Context<F>>()) });
}
