//! Operators (`x + y`, `x[i]`, `x < y`) and conversions to Python numbers.

use c10::{Scalar, ScalarType, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::object::TENSOR;
use super::{of_self, overridden_method};
use crate::convert::scalar;
use crate::ops::torch_function::{self, handle_special_method, is_offered};
use crate::ops::SlotOp;
use crate::raw::objects::NewError;
use crate::raw::{borrow, guard, guard_int, guard_len, owned, token, Raised, Res, TypeBuilder};

/// A new reference to `NotImplemented`.
fn not_implemented() -> *mut ffi::PyObject {
    // SAFETY: the singleton is alive.
    unsafe {
        let singleton = ffi::Py_NotImplemented();
        ffi::Py_INCREF(singleton);
        singleton
    }
}

/// The result of an operator; arguments that it does not take leave the other operand its turn.
fn or_not_implemented(result: Res<Option<*mut ffi::PyObject>>) -> Res<*mut ffi::PyObject> {
    result.map(|r| r.unwrap_or_else(not_implemented))
}

/// The same where classes or modes may have taken over the call: a `TypeError` is how they refuse it.
fn or_refused(
    operands: [&Bound<'_, PyAny>; 2],
    result: Res<Option<*mut ffi::PyObject>>,
) -> Res<*mut ffi::PyObject> {
    let Err(raised) = result else { return or_not_implemented(result) };
    let py = operands[0].py();
    let error = raised.fetch(py);
    if error.is_instance_of::<PyTypeError>(py) && operands.into_iter().any(is_offered) {
        return Ok(not_implemented());
    }
    Err(error.into())
}

/// The operators that subclasses and modes see by the name of Python's method instead of the operator's.
#[derive(Clone, Copy)]
struct Special {
    /// With the tensor on the left (`__and__`); empty if there is none.
    left: &'static str,
    /// With the tensor on the right (`__rsub__`); empty if there is none.
    right: &'static str,
}

impl Special {
    const NONE: Special = Special { left: "", right: "" };

    /// Offers the call `a op b` if there is such a name. The method's own operand comes first.
    #[inline(always)]
    fn offer(
        self,
        left_is_tensor: bool,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
    ) -> Res<Option<*mut ffi::PyObject>> {
        let (name, own, other) = if left_is_tensor { (self.left, a, b) } else { (self.right, b, a) };
        if name.is_empty() || !(is_offered(own) || torch_function::overrides(other)) {
            return Ok(None);
        }
        or_refused([own, other], handle_special_method(own.py(), name, &[own, other], &[own, other]))
            .map(Some)
    }
}

/// Offers the call of a method with no arguments to the tensor's class and to modes.
///
/// # Safety
///
/// CPython called with `object`, an instance of the type.
#[inline(always)]
unsafe fn overridden(object: *mut ffi::PyObject, name: &str) -> Res<Option<*mut ffi::PyObject>> {
    // SAFETY: as the caller says.
    unsafe { overridden_method(object, name, std::ptr::null(), 0, std::ptr::null_mut()) }
}

/// How an operator is called when the tensor is on the right.
enum Reflected {
    /// As a method of the tensor: `1 + x` is `x.add(1)`.
    Method(&'static SlotOp),
    /// As a function: `2 ** x` is `pow(2, x)`.
    Function(&'static SlotOp),
    /// As a function with the operands swapped: `1 - x` is `rsub(x, 1)`.
    Swapped(&'static SlotOp),
}

unsafe fn binary(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: &SlotOp,
    reflected: &Reflected,
    special: Special,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls binary slots with live operands, one of them an instance of the type.
        let (py, left, right) = unsafe {
            let py = token();
            (py, borrow(py, a), borrow(py, b))
        };
        let left_is_tensor = TENSOR.is_instance(&left);
        if let Some(result) = special.offer(left_is_tensor, &left, &right)? {
            return Ok(result);
        }
        let result = match (left_is_tensor, reflected) {
            (true, _) => op.call_method(&left, &[b]),
            (false, Reflected::Method(op)) => op.call_method(&right, &[a]),
            (false, Reflected::Function(op)) => op.call_function(py, &[a, b]),
            (false, Reflected::Swapped(op)) => op.call_function(py, &[b, a]),
        };
        or_refused([&left, &right], result)
    })
}

macro_rules! binary_slots {
    ($($slot:ident = $op:ident($name:literal), $reflected:expr, [$left:literal, $right:literal];)*) => {$(
        static $op: SlotOp = SlotOp::method($name);
        unsafe extern "C" fn $slot(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: passed on from CPython.
            unsafe { binary(a, b, &$op, &$reflected, Special { left: $left, right: $right }) }
        }
    )*};
}

static RSUB: SlotOp = SlotOp::function("rsub");
static FLOOR_DIVIDE_FUNCTION: SlotOp = SlotOp::function("floor_divide");
static REMAINDER_FUNCTION: SlotOp = SlotOp::function("remainder");
static POW_FUNCTION: SlotOp = SlotOp::function("pow");
static MATMUL_FUNCTION: SlotOp = SlotOp::function("matmul");
static LEFT_SHIFT_FUNCTION: SlotOp = SlotOp::function("bitwise_left_shift");
static RIGHT_SHIFT_FUNCTION: SlotOp = SlotOp::function("bitwise_right_shift");
static RECIPROCAL: SlotOp = SlotOp::method("reciprocal");

binary_slots! {
    add = ADD("add"), Reflected::Method(&ADD), ["", ""];
    subtract = SUB("sub"), Reflected::Swapped(&RSUB), ["", "__rsub__"];
    multiply = MUL("mul"), Reflected::Method(&MUL), ["", ""];
    floor_divide = FLOOR_DIVIDE("floor_divide"), Reflected::Function(&FLOOR_DIVIDE_FUNCTION), ["__floordiv__", "__rfloordiv__"];
    remainder = REMAINDER("remainder"), Reflected::Function(&REMAINDER_FUNCTION), ["", "__rmod__"];
    matrix_multiply = MATMUL("matmul"), Reflected::Function(&MATMUL_FUNCTION), ["", "__rmatmul__"];
    and = AND("bitwise_and"), Reflected::Method(&AND), ["__and__", ""];
    or = OR("bitwise_or"), Reflected::Method(&OR), ["__or__", ""];
    xor = XOR("bitwise_xor"), Reflected::Method(&XOR), ["__xor__", ""];
    left_shift = LEFT_SHIFT("bitwise_left_shift"), Reflected::Function(&LEFT_SHIFT_FUNCTION), ["__lshift__", "__rlshift__"];
    right_shift = RIGHT_SHIFT("bitwise_right_shift"), Reflected::Function(&RIGHT_SHIFT_FUNCTION), ["__rshift__", "__rrshift__"];
}

static DIV: SlotOp = SlotOp::method("div");

/// `1 / x` is `x.reciprocal() * 1`, as in PyTorch, whatever stands for the 1: for an array that is NumPy's product.
unsafe extern "C" fn true_divide(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls binary slots with live operands, one of them an instance of the type.
        let (py, left, right) = unsafe {
            let py = token();
            (py, borrow(py, a), borrow(py, b))
        };
        if TENSOR.is_instance(&left) {
            return or_refused([&left, &right], DIV.call_method(&left, &[b]));
        }
        let special = Special { left: "", right: "__rdiv__" };
        if let Some(result) = special.offer(false, &left, &right)? {
            return Ok(result);
        }
        let reciprocal = RECIPROCAL.call_method_or_raise(&right, &[])?;
        // SAFETY: a new reference.
        let reciprocal = unsafe { owned(py, reciprocal)? };
        if let Some(result) = MUL.call_method(&reciprocal, &[a])? {
            return Ok(result);
        }
        match reciprocal.mul(left) {
            Ok(result) => Ok(result.into_ptr()),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(not_implemented()),
            Err(error) => Err(error.into()),
        }
    })
}

static POW: SlotOp = SlotOp::method("pow");
static POW_: SlotOp = SlotOp::method("pow_");

unsafe extern "C" fn power(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    modulus: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with live operands; the modulus is None unless `pow` was called with three arguments.
    unsafe {
        if ffi::Py_IsNone(modulus) == 0 {
            return not_implemented();
        }
        binary(a, b, &POW, &Reflected::Function(&POW_FUNCTION), Special { left: "", right: "__rpow__" })
    }
}

unsafe extern "C" fn inplace_power(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with live operands, the first an instance of the type.
    unsafe { inplace(a, b, &POW_, Special::NONE) }
}

/// # Safety
///
/// CPython called an in-place slot with live operands, the first an instance of the type.
unsafe fn inplace(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: &SlotOp,
    special: Special,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: as the caller says.
        let (left, right) = unsafe { (borrow(token(), a), borrow(token(), b)) };
        match special.offer(true, &left, &right)? {
            Some(result) => Ok(result),
            None => or_refused([&left, &right], op.call_method(&left, &[b])),
        }
    })
}

macro_rules! inplace_slots {
    ($($slot:ident = $op:ident($name:literal), $special:literal;)*) => {$(
        static $op: SlotOp = SlotOp::method($name);
        unsafe extern "C" fn $slot(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: passed on from CPython.
            unsafe { inplace(a, b, &$op, Special { left: $special, right: "" }) }
        }
    )*};
}

inplace_slots! {
    inplace_add = ADD_("add_"), "";
    inplace_subtract = SUB_("sub_"), "";
    inplace_multiply = MUL_("mul_"), "";
    inplace_true_divide = DIV_("div_"), "";
    inplace_floor_divide = FLOOR_DIVIDE_("floor_divide_"), "";
    inplace_remainder = REMAINDER_("remainder_"), "";
    inplace_and = AND_("bitwise_and_"), "__iand__";
    inplace_or = OR_("bitwise_or_"), "__ior__";
    inplace_xor = XOR_("bitwise_xor_"), "__ixor__";
    inplace_left_shift = LEFT_SHIFT_("bitwise_left_shift_"), "__ilshift__";
    inplace_right_shift = RIGHT_SHIFT_("bitwise_right_shift_"), "__irshift__";
}

macro_rules! unary_slots {
    ($($slot:ident = $op:ident($name:literal);)*) => {$(
        static $op: SlotOp = SlotOp::method($name);
        unsafe extern "C" fn $slot(a: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: CPython calls it with an instance of the type.
            guard(|| $op.call_method_or_raise(&*unsafe { borrow(token(), a) }, &[]))
        }
    )*};
}

unary_slots! {
    negative = NEG("neg");
    positive = POSITIVE("positive");
    absolute = ABS("abs");
}

static BITWISE_NOT: SlotOp = SlotOp::method("bitwise_not");

unsafe extern "C" fn invert(a: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (tensor, object) = unsafe { (of_self(a), borrow(token(), a)) };
        // SAFETY: as above.
        if let Some(result) = unsafe { overridden(a, "__invert__")? } {
            return Ok(result);
        }
        if !tensor.dtype().is_integral(true) {
            let text = "~ (operator.invert) is only implemented on integer and Boolean-type tensors";
            return Err(PyTypeError::error(text).into());
        }
        BITWISE_NOT.call_method_or_raise(&object, &[])
    })
}

static EQ: SlotOp = SlotOp::method("eq");
static NE: SlotOp = SlotOp::method("ne");
static LT: SlotOp = SlotOp::method("lt");
static LE: SlotOp = SlotOp::method("le");
static GT: SlotOp = SlotOp::method("gt");
static GE: SlotOp = SlotOp::method("ge");

unsafe extern "C" fn richcompare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: std::ffi::c_int,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with live operands, the first an instance of the type.
        let (left, right) = unsafe { (borrow(token(), a), borrow(token(), b)) };
        let op = match op {
            ffi::Py_EQ => return equal(&left, &right),
            ffi::Py_NE => &NE,
            ffi::Py_LT => &LT,
            ffi::Py_LE => &LE,
            ffi::Py_GT => &GT,
            _ => &GE,
        };
        or_refused([&left, &right], op.call_method(&left, &[b]))
    })
}

/// `x == other`, which alone among the comparisons takes NumPy's arrays, as PyTorch's does.
fn equal(left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> Res<*mut ffi::PyObject> {
    let special = Special { left: "__eq__", right: "" };
    if let Some(result) = special.offer(true, left, right)? {
        return Ok(result);
    }
    if !crate::data::is_array(right) {
        return or_refused([left, right], EQ.call_method(left, &[right.as_ptr()]));
    }
    match crate::data::from_array(right).and_then(super::wrap) {
        Ok(array) => {
            // SAFETY: a new reference.
            let array = unsafe { owned(left.py(), array)? };
            or_not_implemented(EQ.call_method(left, &[array.as_ptr()]))
        }
        Err(raised) => {
            let error = raised.fetch(left.py());
            match error.is_instance_of::<PyTypeError>(left.py()) {
                // Of a dtype that no tensor has.
                true => Ok(not_implemented()),
                false => Err(error.into()),
            }
        }
    }
}

/// Identity, since equality is elementwise.
unsafe extern "C" fn hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    object as ffi::Py_hash_t
}

/// The one value of a tensor, for conversions to Python numbers.
fn only_value(tensor: &Tensor) -> Res<Scalar> {
    if tensor.numel()? != 1 {
        return Err(PyValueError::error("only one element tensors can be converted to Python scalars").into());
    }
    super::item(tensor)
}

/// The error for what a `__torch_function__` returned for a method that Python wants something else of.
#[cold]
fn wrong_result(method: &str, expected: &str, result: &Bound<'_, PyAny>) -> Raised {
    match result.get_type().name() {
        Ok(found) => {
            PyTypeError::error(format!("{method} should return {expected}, returned {found}")).into()
        }
        Err(error) => error.into(),
    }
}

unsafe extern "C" fn truth(object: *mut ffi::PyObject) -> std::ffi::c_int {
    guard_int(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let tensor = unsafe {
            if let Some(result) = overridden(object, "__bool__")? {
                let result = owned(token(), result)?;
                return match result.cast::<PyBool>() {
                    Ok(value) => Ok(value.is_true().into()),
                    Err(_) => Err(wrong_result("__bool__", "bool", &result)),
                };
            }
            of_self(object)
        };
        match tensor.numel()? {
            1 => {}
            0 => {
                return Err(
                    PyRuntimeError::error("Boolean value of Tensor with no values is ambiguous").into()
                )
            }
            _ => {
                let text = "Boolean value of Tensor with more than one value is ambiguous";
                return Err(PyRuntimeError::error(text).into());
            }
        }
        let value = super::item(tensor)?;
        Ok(match value {
            Scalar::Complex(v) => i32::from(v.re != 0.0 || v.im != 0.0),
            Scalar::Float(v) => i32::from(v != 0.0),
            other => i32::from(other.to_bool()?),
        })
    })
}

unsafe extern "C" fn to_int(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (py, tensor) = unsafe {
            if let Some(result) = overridden(object, "__int__")? {
                return Ok(result);
            }
            (token(), of_self(object))
        };
        let value = only_value(tensor)?;
        match value {
            // Python's own conversion raises for nan and inf, and has no upper limit.
            Scalar::Float(v) => {
                // SAFETY: a new reference, or null with the exception set.
                Ok(unsafe { ffi::PyLong_FromDouble(v) })
            }
            Scalar::UInt(_) => Ok(scalar::scalar_to_python(py, &value)?.into_ptr()),
            other => super::attributes::int_ref(other.to_i64()?),
        }
    })
}

unsafe extern "C" fn to_float(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let tensor = unsafe {
            if let Some(result) = overridden(object, "__float__")? {
                return Ok(result);
            }
            of_self(object)
        };
        let value = only_value(tensor)?.to_f64()?;
        // SAFETY: a new reference.
        Ok(unsafe { ffi::PyFloat_FromDouble(value) })
    })
}

unsafe extern "C" fn to_index(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (py, tensor) = unsafe {
            if let Some(result) = overridden(object, "__index__")? {
                return Ok(result);
            }
            (token(), of_self(object))
        };
        if tensor.numel()? != 1 || !tensor.dtype().is_integral(true) {
            let text = "only integer tensors of a single element can be converted to an index";
            return Err(PyTypeError::error(text).into());
        }
        let value = super::item(tensor)?;
        if tensor.dtype() == ScalarType::Bool {
            return super::attributes::int_ref(value.to_i64()?);
        }
        Ok(scalar::scalar_to_python(py, &value)?.into_ptr())
    })
}

/// `__complex__`, which has no slot.
pub(super) unsafe extern "C" fn to_complex(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (py, tensor) = unsafe {
            if let Some(result) = overridden(object, "__complex__")? {
                return Ok(result);
            }
            (token(), of_self(object))
        };
        Ok(scalar::complex_to_python(py, only_value(tensor)?.to_complex()?)?.into_ptr())
    })
}

unsafe extern "C" fn length(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    guard_len(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let tensor = unsafe {
            if let Some(result) = overridden(object, "__len__")? {
                let result = owned(token(), result)?;
                return match result.extract::<isize>() {
                    Ok(len) if len >= 0 => Ok(len),
                    Ok(_) => Err(PyValueError::error("__len__() should return >= 0").into()),
                    Err(_) => Err(wrong_result("__len__", "an integer", &result)),
                };
            }
            of_self(object)
        };
        if tensor.dim() == 0 {
            return Err(PyTypeError::error("len() of a 0-d tensor").into());
        }
        Ok(tensor.size(0)? as isize)
    })
}

static UNBIND: SlotOp = SlotOp::method("unbind");

unsafe extern "C" fn iter(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (py, tensor, object) = unsafe { (token(), of_self(object), borrow(token(), object)) };
        if tensor.dim() == 0 {
            return Err(PyTypeError::error("iteration over a 0-d tensor").into());
        }
        let rows = UNBIND.call_method_or_raise(&object, &[])?;
        // SAFETY: a new reference to a tuple.
        unsafe {
            let rows = owned(py, rows)?;
            Ok(owned(py, ffi::PyObject_GetIter(rows.as_ptr()))?.into_ptr())
        }
    })
}

/// Fills the slots.
pub(super) fn slots(builder: TypeBuilder) -> TypeBuilder {
    let slots: [(std::ffi::c_int, *const ()); 40] = [
        (ffi::Py_nb_add, add as *const ()),
        (ffi::Py_nb_subtract, subtract as *const ()),
        (ffi::Py_nb_multiply, multiply as *const ()),
        (ffi::Py_nb_true_divide, true_divide as *const ()),
        (ffi::Py_nb_floor_divide, floor_divide as *const ()),
        (ffi::Py_nb_remainder, remainder as *const ()),
        (ffi::Py_nb_power, power as *const ()),
        (ffi::Py_nb_matrix_multiply, matrix_multiply as *const ()),
        (ffi::Py_nb_and, and as *const ()),
        (ffi::Py_nb_or, or as *const ()),
        (ffi::Py_nb_xor, xor as *const ()),
        (ffi::Py_nb_lshift, left_shift as *const ()),
        (ffi::Py_nb_rshift, right_shift as *const ()),
        (ffi::Py_nb_inplace_add, inplace_add as *const ()),
        (ffi::Py_nb_inplace_subtract, inplace_subtract as *const ()),
        (ffi::Py_nb_inplace_multiply, inplace_multiply as *const ()),
        (ffi::Py_nb_inplace_true_divide, inplace_true_divide as *const ()),
        (ffi::Py_nb_inplace_floor_divide, inplace_floor_divide as *const ()),
        (ffi::Py_nb_inplace_remainder, inplace_remainder as *const ()),
        (ffi::Py_nb_inplace_power, inplace_power as *const ()),
        (ffi::Py_nb_inplace_and, inplace_and as *const ()),
        (ffi::Py_nb_inplace_or, inplace_or as *const ()),
        (ffi::Py_nb_inplace_xor, inplace_xor as *const ()),
        (ffi::Py_nb_inplace_lshift, inplace_left_shift as *const ()),
        (ffi::Py_nb_inplace_rshift, inplace_right_shift as *const ()),
        (ffi::Py_nb_negative, negative as *const ()),
        (ffi::Py_nb_positive, positive as *const ()),
        (ffi::Py_nb_absolute, absolute as *const ()),
        (ffi::Py_nb_invert, invert as *const ()),
        (ffi::Py_nb_bool, truth as *const ()),
        (ffi::Py_nb_int, to_int as *const ()),
        (ffi::Py_nb_float, to_float as *const ()),
        (ffi::Py_nb_index, to_index as *const ()),
        (ffi::Py_tp_richcompare, richcompare as *const ()),
        (ffi::Py_tp_hash, hash as *const ()),
        (ffi::Py_tp_iter, iter as *const ()),
        (ffi::Py_mp_length, length as *const ()),
        (ffi::Py_mp_subscript, crate::indexing::subscript as *const ()),
        (ffi::Py_mp_ass_subscript, crate::indexing::assign_subscript as *const ()),
        (ffi::Py_tp_setattro, super::attributes::setattro as *const ()),
    ];
    slots.into_iter().fold(builder, |builder, (slot, function)| builder.slot(slot, function))
}
