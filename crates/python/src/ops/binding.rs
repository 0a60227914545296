//! The callable objects: `ptr.add`, `ptr.Tensor.add`, `ptr._C._nn.linear`, ….
//!
//! Two types, one for functions and one for methods, and one vectorcall function for all objects of both. The method type
//! says that it is a method descriptor, so that CPython calls `x.add(y)` without making a bound method.

use std::ffi::{c_void, CString};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

use super::call;
use super::parser::{Args, Call};
use super::signature::Signature;
use crate::gen::{bindings, Binding, Namespaces};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{
    borrow, callable, getset, guard, method_noargs, owned, token, Raised, Res, StaticType, TypeBuilder,
};
use crate::tensor::TENSOR;

/// A Python name of operators: its binding, seen as a function of one namespace or as a method.
pub(crate) struct OpTable {
    binding: &'static Binding,
    namespace: Namespaces,
    /// What to import to find a function.
    module: &'static str,
    signatures: OnceLock<Vec<Signature>>,
    /// The callable object, which lives for ever.
    callable: AtomicPtr<ffi::PyObject>,
}

impl OpTable {
    fn new(binding: &'static Binding, namespace: Namespaces, module: &'static str) -> &'static OpTable {
        Box::leak(Box::new(OpTable {
            binding,
            namespace,
            module,
            signatures: OnceLock::new(),
            callable: AtomicPtr::new(std::ptr::null_mut()),
        }))
    }

    /// The Python name.
    pub(crate) fn name(&self) -> &'static str {
        self.binding.name
    }

    /// The generated row.
    pub(super) fn binding(&self) -> &'static Binding {
        self.binding
    }

    /// Whether this is the method.
    pub(super) fn is_method(&self) -> bool {
        self.namespace == Namespaces::METHOD
    }

    /// The callable object.
    pub(super) fn callable(&self) -> *mut ffi::PyObject {
        self.callable.load(Ordering::Relaxed)
    }

    /// The signatures, made when first called.
    #[inline]
    pub(super) fn signatures(&self, py: Python<'_>) -> Res<&[Signature]> {
        match self.signatures.get() {
            Some(signatures) => Ok(signatures),
            None => self.make_signatures(py),
        }
    }

    #[cold]
    fn make_signatures(&self, py: Python<'_>) -> Res<&[Signature]> {
        let visible = self.binding.overloads.iter().filter(|o| o.namespaces.contains(self.namespace));
        let signatures = visible
            .map(|overload| Signature::new(py, self.binding, overload, self.is_method()))
            .collect::<c10::Result<Vec<_>>>()?;
        Ok(self.signatures.get_or_init(|| signatures))
    }
}

/// The layout of the callable objects.
#[repr(C)]
struct PyOp {
    ob_base: ffi::PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    table: &'static OpTable,
}

static OP_FUNCTION: StaticType = StaticType::new();
static OP_METHOD: StaticType = StaticType::new();

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with one of our callables and the arguments of a vectorcall.
        let (py, table, mut values, mut num_positional) = unsafe {
            let nargs = ffi::PyVectorcall_NARGS(nargsf) as usize;
            let keywords = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) as usize };
            let values: &[*mut ffi::PyObject] =
                if nargs + keywords == 0 { &[] } else { std::slice::from_raw_parts(args, nargs + keywords) };
            (token(), (*callable.cast::<PyOp>()).table, values, nargs)
        };
        let mut self_ = None;
        if table.is_method() {
            // SAFETY: the arguments live as long as the call.
            match values.first().map(|&first| unsafe { borrow(py, first) }) {
                Some(first) if num_positional > 0 && TENSOR.is_instance(&first) => self_ = Some(first),
                first => return Err(wrong_self(py, table, first.filter(|_| num_positional > 0).as_deref())),
            }
            values = &values[1..];
            num_positional -= 1;
        }
        call::call(&mut Call::new(py, table, self_, Args { values, num_positional, names }))
    })
}

#[cold]
fn wrong_self(py: Python<'_>, table: &OpTable, first: Option<&Bound<'_, PyAny>>) -> Raised {
    let name = table.name();
    // A method of an object that overrides functions without being a tensor is called by `__torch_function__` itself.
    let text = match first {
        None => format!("unbound method TensorBase.{name}() needs an argument"),
        Some(object) => match object.get_type().name() {
            Ok(class) => {
                format!("descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{class}' object")
            }
            Err(error) => return error.into(),
        },
    };
    let _ = py;
    pyo3::exceptions::PyTypeError::error(text).into()
}

/// # Safety
///
/// `object` is one of our callables.
unsafe fn table_of(object: *mut ffi::PyObject) -> &'static OpTable {
    // SAFETY: passed on to the caller.
    unsafe { (*object.cast::<PyOp>()).table }
}

macro_rules! text_attribute {
    ($name:ident, $table:ident => $text:expr) => {
        unsafe extern "C" fn $name(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls it with one of our callables.
                let (py, $table) = unsafe { (token(), table_of(object)) };
                Ok(objects::string(py, &$text)?.into_ptr())
            })
        }
    };
}

fn qualified_name(table: &OpTable) -> String {
    if table.is_method() {
        format!("Tensor.{}", table.name())
    } else {
        table.name().to_owned()
    }
}

text_attribute!(op_name, table => table.name());
text_attribute!(op_qualname, table => qualified_name(table));
text_attribute!(op_module, table => table.module);
text_attribute!(op_doc, table => doc(table));

/// The signatures, as the docstring begins.
fn doc(table: &OpTable) -> String {
    let mut lines = Vec::new();
    for overload in table.binding.overloads {
        for op in [overload.op, overload.out].into_iter().flatten() {
            let (base, name) = op.split_once('.').unwrap_or((op, ""));
            if let Some(schema) =
                dispatch::Dispatcher::find_schema(base, name).and_then(|op| op.schema().ok())
            {
                lines.push(schema.to_string());
            }
        }
    }
    lines.join("\n")
}

unsafe extern "C" fn op_objclass(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with one of our callables.
        let (py, table) = unsafe { (token(), table_of(object)) };
        if !table.is_method() {
            return Err(c10::Error::attribute("a function has no attribute '__objclass__'").into());
        }
        Ok(TENSOR.bound(py).into_ptr())
    })
}

unsafe extern "C" fn op_repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with one of our callables.
        let (py, table) = unsafe { (token(), table_of(object)) };
        let name = table.name();
        let text = match table.is_method() {
            true => format!("<method '{name}' of 'ptr.Tensor' objects>"),
            false => format!("<built-in function {name}>"),
        };
        Ok(objects::string(py, &text)?.into_ptr())
    })
}

/// By name: pickle finds the object in its module.
unsafe extern "C" fn op_reduce(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with one of our callables.
        let (py, table) = unsafe { (token(), table_of(object)) };
        Ok(objects::string(py, &qualified_name(table))?.into_ptr())
    })
}

/// An operator that a slot of the tensor type calls: `x + y`.
pub(crate) struct SlotOp {
    name: &'static str,
    namespace: Namespaces,
    table: AtomicPtr<OpTable>,
}

impl SlotOp {
    /// The method of that name.
    pub(crate) const fn method(name: &'static str) -> SlotOp {
        SlotOp { name, namespace: Namespaces::METHOD, table: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The function of that name.
    pub(crate) const fn function(name: &'static str) -> SlotOp {
        SlotOp { name, namespace: Namespaces::FUNCTION, table: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn resolve(&self) -> Res<&'static OpTable> {
        let known = self.table.load(Ordering::Relaxed);
        // SAFETY: tables are leaked.
        if let Some(table) = unsafe { known.as_ref() } {
            return Ok(table);
        }
        let tables = TABLES.get().map(Vec::as_slice).unwrap_or_default();
        match tables.iter().find(|t| t.name() == self.name && t.namespace == self.namespace) {
            Some(table) => {
                self.table.store(std::ptr::from_ref(*table).cast_mut(), Ordering::Relaxed);
                Ok(table)
            }
            None => {
                Err(c10::Error::not_implemented(format!("the operator {} is not available", self.name))
                    .into())
            }
        }
    }

    /// Calls the method of `self_`. `Ok(None)` if it takes no such arguments.
    pub(crate) fn call_method(
        &self,
        self_: &Bound<'_, PyAny>,
        args: &[*mut ffi::PyObject],
    ) -> Res<Option<*mut ffi::PyObject>> {
        let table = self.resolve()?;
        call::try_call(&mut Call::new(self_.py(), table, Some(self_.as_borrowed()), Args::positional(args)))
    }

    /// Calls the method, or raises.
    pub(crate) fn call_method_or_raise(
        &self,
        self_: &Bound<'_, PyAny>,
        args: &[*mut ffi::PyObject],
    ) -> Res<*mut ffi::PyObject> {
        let table = self.resolve()?;
        call::call(&mut Call::new(self_.py(), table, Some(self_.as_borrowed()), Args::positional(args)))
    }

    /// Calls the function. `Ok(None)` if it takes no such arguments.
    pub(crate) fn call_function(
        &self,
        py: Python<'_>,
        args: &[*mut ffi::PyObject],
    ) -> Res<Option<*mut ffi::PyObject>> {
        let table = self.resolve()?;
        call::try_call(&mut Call::new(py, table, None, Args::positional(args)))
    }
}

/// A method is bound by hand exactly where its declaration says so.
#[cold]
fn wrongly_bound(binding: &Binding) -> Raised {
    let text = if binding.is_manual {
        "is declared with `python: manual`, but nothing binds it"
    } else {
        "is bound by hand, which its declaration does not say: `python: manual`"
    };
    c10::Error::internal(format!("Tensor.{} {text}", binding.name)).into()
}

static TABLES: OnceLock<Vec<&'static OpTable>> = OnceLock::new();

fn make_type(py: Python<'_>, name: &'static std::ffi::CStr, method: bool) -> Res<*mut ffi::PyTypeObject> {
    let mut builder = TypeBuilder::new::<PyOp>(name)
        .flags(ffi::Py_TPFLAGS_HAVE_VECTORCALL | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
        .offset(c"__vectorcalloffset__", std::mem::offset_of!(PyOp, vectorcall))
        .slot(ffi::Py_tp_call, callable::PyVectorcall_Call as *const ())
        .slot(ffi::Py_tp_repr, op_repr as *const ())
        .getsets([
            getset(c"__name__", op_name, None),
            getset(c"__qualname__", op_qualname, None),
            getset(c"__module__", op_module, None),
            getset(c"__doc__", op_doc, None),
            getset(c"__objclass__", op_objclass, None),
        ])
        .methods([method_noargs(c"__reduce__", op_reduce)]);
    if method {
        builder = builder
            .flags(ffi::Py_TPFLAGS_METHOD_DESCRIPTOR)
            .slot(ffi::Py_tp_descr_get, callable::descr_get as *const ());
    }
    builder.build(py, None)
}

fn new_callable(py: Python<'_>, type_: &StaticType, table: &'static OpTable) -> Res<Py<PyAny>> {
    // SAFETY: instances of the type have the layout of PyOp.
    unsafe {
        let object = owned(py, ffi::PyType_GenericAlloc(type_.get(), 0))?;
        let op = object.as_ptr().cast::<PyOp>();
        (*op).vectorcall = Some(vectorcall);
        std::ptr::write(&mut (*op).table, table);
        ffi::Py_INCREF(object.as_ptr());
        table.callable.store(object.as_ptr(), Ordering::Relaxed);
        Ok(object.unbind())
    }
}

/// Makes all callables: methods go to the tensor type (unless it has one of that name already), functions to the namespaces.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    OP_FUNCTION.set(make_type(py, c"ptr._C.OpFunction", false)?);
    OP_METHOD.set(make_type(py, c"ptr._C.OpMethod", true)?);
    module.add("OpFunction", OP_FUNCTION.bound(py))?;
    module.add("OpMethod", OP_METHOD.bound(py))?;

    let namespaces = [
        (Namespaces::FUNCTION, "_VariableFunctions", "ptr"),
        (Namespaces::NN, "_nn", "ptr._C._nn"),
        (Namespaces::SPECIAL, "_special", "ptr._C._special"),
        (Namespaces::LINALG, "_linalg", "ptr._C._linalg"),
        (Namespaces::FFT, "_fft", "ptr._C._fft"),
    ];
    let tensor = TENSOR.bound(py);
    let existing = tensor.getattr(intern!(py, "__dict__")?)?;
    let mut tables = Vec::with_capacity(2 * bindings().count());
    let mut submodules = Vec::new();
    for (_, name, _) in namespaces {
        let submodule = PyModule::new(py, &format!("ptr._C.{name}"))?;
        module.add(name, &submodule)?;
        submodules.push(submodule);
    }
    for binding in bindings() {
        for ((namespace, _, home), submodule) in namespaces.iter().zip(&submodules) {
            if binding.namespaces.contains(*namespace) {
                let table = OpTable::new(binding, *namespace, home);
                submodule.add(binding.name, new_callable(py, &OP_FUNCTION, table)?)?;
                tables.push(table);
            }
        }
        if binding.namespaces.contains(Namespaces::METHOD) {
            let table = OpTable::new(binding, Namespaces::METHOD, "ptr");
            let callable = new_callable(py, &OP_METHOD, table)?;
            if existing.contains(binding.name)? != binding.is_manual {
                return Err(wrongly_bound(binding));
            }
            if !binding.is_manual {
                let name = CString::new(binding.name).map_err(PyErr::from)?;
                // SAFETY: a live type and object.
                if unsafe { ffi::PyObject_SetAttrString(tensor.as_ptr(), name.as_ptr(), callable.as_ptr()) }
                    < 0
                {
                    // SAFETY: CPython has set the exception.
                    return Err(unsafe { Raised::already_set() });
                }
            }
            tables.push(table);
        }
    }
    let _ = TABLES.set(tables);
    Ok(())
}
