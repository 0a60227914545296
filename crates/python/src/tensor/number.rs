//! Operators (`x + y`, `x[i]`, `x < y`) and conversions to Python numbers.

use c10::{Scalar, ScalarType, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;

use super::object::TENSOR;
use super::of_self;
use crate::convert::scalar;
use crate::ops::SlotOp;
use crate::raw::{borrow, guard, guard_int, guard_len, owned, token, Res, TypeBuilder};

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
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls binary slots with live operands, one of them an instance of the type.
        let (py, left) = unsafe {
            let py = token();
            (py, borrow(py, a))
        };
        if TENSOR.is_instance(&left) {
            return or_not_implemented(op.call_method(&left, &[b]));
        }
        match reflected {
            // SAFETY: as above.
            Reflected::Method(op) => or_not_implemented(op.call_method(&*unsafe { borrow(py, b) }, &[a])),
            Reflected::Function(op) => or_not_implemented(op.call_function(py, &[a, b])),
            Reflected::Swapped(op) => or_not_implemented(op.call_function(py, &[b, a])),
        }
    })
}

macro_rules! binary_slots {
    ($($slot:ident = $op:ident($name:literal), $reflected:expr;)*) => {$(
        static $op: SlotOp = SlotOp::method($name);
        unsafe extern "C" fn $slot(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: passed on from CPython.
            unsafe { binary(a, b, &$op, &$reflected) }
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
    add = ADD("add"), Reflected::Method(&ADD);
    subtract = SUB("sub"), Reflected::Swapped(&RSUB);
    multiply = MUL("mul"), Reflected::Method(&MUL);
    floor_divide = FLOOR_DIVIDE("floor_divide"), Reflected::Function(&FLOOR_DIVIDE_FUNCTION);
    remainder = REMAINDER("remainder"), Reflected::Function(&REMAINDER_FUNCTION);
    matrix_multiply = MATMUL("matmul"), Reflected::Function(&MATMUL_FUNCTION);
    and = AND("bitwise_and"), Reflected::Method(&AND);
    or = OR("bitwise_or"), Reflected::Method(&OR);
    xor = XOR("bitwise_xor"), Reflected::Method(&XOR);
    left_shift = LEFT_SHIFT("bitwise_left_shift"), Reflected::Function(&LEFT_SHIFT_FUNCTION);
    right_shift = RIGHT_SHIFT("bitwise_right_shift"), Reflected::Function(&RIGHT_SHIFT_FUNCTION);
}

static DIV: SlotOp = SlotOp::method("div");

/// `1 / x` is `x.reciprocal() * 1`, as in PyTorch.
unsafe extern "C" fn true_divide(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls binary slots with live operands, one of them an instance of the type.
        let (py, left, right) = unsafe {
            let py = token();
            (py, borrow(py, a), borrow(py, b))
        };
        if TENSOR.is_instance(&left) {
            return or_not_implemented(DIV.call_method(&left, &[b]));
        }
        if scalar::number_kind(&left).is_none() {
            return Ok(not_implemented());
        }
        let reciprocal = RECIPROCAL.call_method_or_raise(&right, &[])?;
        // SAFETY: a new reference.
        let reciprocal = unsafe { owned(py, reciprocal)? };
        or_not_implemented(MUL.call_method(&reciprocal, &[a]))
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
        binary(a, b, &POW, &Reflected::Function(&POW_FUNCTION))
    }
}

unsafe extern "C" fn inplace_power(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with live operands, the first an instance of the type.
    guard(|| or_not_implemented(POW_.call_method(&*unsafe { borrow(token(), a) }, &[b])))
}

macro_rules! inplace_slots {
    ($($slot:ident = $op:ident($name:literal);)*) => {$(
        static $op: SlotOp = SlotOp::method($name);
        unsafe extern "C" fn $slot(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: CPython calls it with live operands, the first an instance of the type.
            guard(|| or_not_implemented($op.call_method(&*unsafe { borrow(token(), a) }, &[b])))
        }
    )*};
}

inplace_slots! {
    inplace_add = ADD_("add_");
    inplace_subtract = SUB_("sub_");
    inplace_multiply = MUL_("mul_");
    inplace_true_divide = DIV_("div_");
    inplace_floor_divide = FLOOR_DIVIDE_("floor_divide_");
    inplace_remainder = REMAINDER_("remainder_");
    inplace_and = AND_("bitwise_and_");
    inplace_or = OR_("bitwise_or_");
    inplace_xor = XOR_("bitwise_xor_");
    inplace_left_shift = LEFT_SHIFT_("bitwise_left_shift_");
    inplace_right_shift = RIGHT_SHIFT_("bitwise_right_shift_");
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
        if !tensor.dtype().is_integral(true) {
            let text = "~ (operator.invert) is only implemented on integer and Boolean-type tensors";
            return Err(PyTypeError::new_err(text).into());
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
    let op = match op {
        ffi::Py_EQ => &EQ,
        ffi::Py_NE => &NE,
        ffi::Py_LT => &LT,
        ffi::Py_LE => &LE,
        ffi::Py_GT => &GT,
        _ => &GE,
    };
    // SAFETY: CPython calls it with an instance of the type first.
    guard(|| or_not_implemented(op.call_method(&*unsafe { borrow(token(), a) }, &[b])))
}

/// Identity, since equality is elementwise.
unsafe extern "C" fn hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    object as ffi::Py_hash_t
}

/// The one value of a tensor, for conversions to Python numbers.
fn only_value(tensor: &Tensor) -> Res<Scalar> {
    if tensor.numel()? != 1 {
        return Err(
            PyValueError::new_err("only one element tensors can be converted to Python scalars").into()
        );
    }
    super::item(tensor)
}

unsafe extern "C" fn truth(object: *mut ffi::PyObject) -> std::ffi::c_int {
    guard_int(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let tensor = unsafe { of_self(object) };
        match tensor.numel()? {
            1 => {}
            0 => {
                return Err(
                    PyRuntimeError::new_err("Boolean value of Tensor with no values is ambiguous").into()
                )
            }
            _ => {
                let text = "Boolean value of Tensor with more than one value is ambiguous";
                return Err(PyRuntimeError::new_err(text).into());
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
        let (py, tensor) = unsafe { (token(), of_self(object)) };
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
        let tensor = unsafe { of_self(object) };
        let value = only_value(tensor)?.to_f64()?;
        // SAFETY: a new reference.
        Ok(unsafe { ffi::PyFloat_FromDouble(value) })
    })
}

unsafe extern "C" fn to_index(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let (py, tensor) = unsafe { (token(), of_self(object)) };
        if tensor.numel()? != 1 || !tensor.dtype().is_integral(true) {
            let text = "only integer tensors of a single element can be converted to an index";
            return Err(PyTypeError::new_err(text).into());
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
        let (py, tensor) = unsafe { (token(), of_self(object)) };
        Ok(scalar::complex_to_python(py, only_value(tensor)?.to_complex()?).into_ptr())
    })
}

unsafe extern "C" fn length(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    guard_len(|| {
        // SAFETY: CPython calls it with an instance of the type.
        let tensor = unsafe { of_self(object) };
        if tensor.dim() == 0 {
            return Err(PyTypeError::new_err("len() of a 0-d tensor").into());
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
            return Err(PyTypeError::new_err("iteration over a 0-d tensor").into());
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
