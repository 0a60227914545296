//! `IValue`: any value an operator takes or returns, and the stack of them that boxed kernels work on.

use std::any::Any;
use std::sync::Arc;

use c10::{
    Device, DispatchKeySet, Error, Generator, Layout, MemoryFormat, Result, Scalar, ScalarType, Storage,
    Stream, SymBool, SymFloat, SymInt, Tensor,
};
use num_complex::Complex64;
use smallvec::SmallVec;

/// The arguments or results of a boxed call. An operator's `n` arguments are the last `n` values.
pub type Stack = SmallVec<[IValue; 8]>;

/// A tagged value of the schema language (PyTorch's `IValue`).
///
/// Lists are shared and immutable, so that cloning a stack for a saved graph or a replayed view costs
/// reference counts only.
#[derive(Clone, Default)]
pub enum IValue {
    /// An absent optional.
    #[default]
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A storage.
    Storage(Storage),
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Double(f64),
    /// A complex number.
    ComplexDouble(Complex64),
    /// A possibly symbolic integer.
    SymInt(SymInt),
    /// A possibly symbolic real number.
    SymFloat(SymFloat),
    /// A possibly symbolic boolean.
    SymBool(SymBool),
    /// A string.
    String(Arc<str>),
    /// A dtype.
    ScalarType(ScalarType),
    /// A layout.
    Layout(Layout),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A device.
    Device(Device),
    /// A random generator.
    Generator(Generator),
    /// A stream of a device.
    Stream(Stream),
    /// `int[]`.
    IntList(Arc<[i64]>),
    /// `SymInt[]`.
    SymIntList(Arc<[SymInt]>),
    /// `float[]`.
    DoubleList(Arc<[f64]>),
    /// `bool[]`.
    BoolList(Arc<[bool]>),
    /// `Tensor[]`.
    TensorList(Arc<[Tensor]>),
    /// `Tensor?[]`.
    OptionalTensorList(Arc<[Option<Tensor>]>),
    /// A list of anything else.
    List(Arc<Vec<IValue>>),
    /// A tuple.
    Tuple(Arc<Vec<IValue>>),
    /// A dictionary, in insertion order.
    Dict(Arc<Vec<(IValue, IValue)>>),
    /// A value of a type this crate does not know, such as a Python object.
    Object(Arc<dyn Any + Send + Sync>),
}

impl IValue {
    /// The schema language's name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            IValue::None => "None",
            IValue::Tensor(_) => "Tensor",
            IValue::Storage(_) => "Storage",
            IValue::Bool(_) => "bool",
            IValue::Int(_) => "int",
            IValue::Double(_) => "float",
            IValue::ComplexDouble(_) => "complex",
            IValue::SymInt(_) => "SymInt",
            IValue::SymFloat(_) => "SymFloat",
            IValue::SymBool(_) => "SymBool",
            IValue::String(_) => "str",
            IValue::ScalarType(_) => "ScalarType",
            IValue::Layout(_) => "Layout",
            IValue::MemoryFormat(_) => "MemoryFormat",
            IValue::Device(_) => "Device",
            IValue::Generator(_) => "Generator",
            IValue::Stream(_) => "Stream",
            IValue::IntList(_) => "int[]",
            IValue::SymIntList(_) => "SymInt[]",
            IValue::DoubleList(_) => "float[]",
            IValue::BoolList(_) => "bool[]",
            IValue::TensorList(_) => "Tensor[]",
            IValue::OptionalTensorList(_) => "Tensor?[]",
            IValue::List(_) => "list",
            IValue::Tuple(_) => "tuple",
            IValue::Dict(_) => "dict",
            IValue::Object(_) => "object",
        }
    }

    /// The error for a value of another type than the schema asks for.
    #[cold]
    pub(crate) fn mismatch(&self, expected: &str) -> Error {
        Error::type_(format!("expected a value of type {expected}, got {}", self.type_name()))
    }

    /// Whether this is an absent optional.
    pub fn is_none(&self) -> bool {
        matches!(self, IValue::None)
    }

    /// Whether this is a tensor.
    pub fn is_tensor(&self) -> bool {
        matches!(self, IValue::Tensor(_))
    }

    /// The tensor held.
    pub fn to_tensor(&self) -> Result<&Tensor> {
        match self {
            IValue::Tensor(t) => Ok(t),
            other => Err(other.mismatch("Tensor")),
        }
    }

    /// The tensor held, if this is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            IValue::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The integer held. A symbolic one is guarded on, a boolean counts as 0 or 1.
    pub fn to_int(&self) -> Result<i64> {
        match self {
            IValue::Int(v) => Ok(*v),
            IValue::SymInt(s) => s.guard_int(),
            IValue::Bool(b) => Ok(*b as i64),
            other => Err(other.mismatch("int")),
        }
    }

    /// The integer held, symbolic or not.
    pub fn to_sym_int(&self) -> Result<SymInt> {
        match self {
            IValue::Int(v) => Ok(SymInt::from(*v)),
            IValue::SymInt(s) => Ok(s.clone()),
            IValue::Bool(b) => Ok(SymInt::from(*b as i64)),
            other => Err(other.mismatch("SymInt")),
        }
    }

    /// The real number held; integers widen. A symbolic number is guarded on.
    #[track_caller]
    pub fn to_double(&self) -> Result<f64> {
        match self {
            IValue::Double(v) => Ok(*v),
            IValue::Int(v) => Ok(*v as f64),
            IValue::Bool(b) => Ok(f64::from(*b as u8)),
            IValue::SymInt(s) => Ok(s.guard_int()? as f64),
            IValue::SymFloat(s) => s.guard_float(),
            other => Err(other.mismatch("float")),
        }
    }

    /// The boolean held. A symbolic one is guarded on.
    #[track_caller]
    pub fn to_bool(&self) -> Result<bool> {
        match self {
            IValue::Bool(v) => Ok(*v),
            IValue::Int(v) => Ok(*v != 0),
            IValue::SymBool(s) => s.guard_bool(),
            other => Err(other.mismatch("bool")),
        }
    }

    /// The number held as a `Scalar`.
    pub fn to_scalar(&self) -> Result<Scalar> {
        match self {
            IValue::Int(v) => Ok(Scalar::Int(*v)),
            IValue::Double(v) => Ok(Scalar::Float(*v)),
            IValue::Bool(v) => Ok(Scalar::Bool(*v)),
            IValue::ComplexDouble(v) => Ok(Scalar::Complex(*v)),
            IValue::SymInt(v) => Ok(Scalar::SymInt(v.clone())),
            IValue::SymFloat(v) => Ok(Scalar::SymFloat(v.clone())),
            IValue::SymBool(v) => Ok(Scalar::SymBool(v.clone())),
            IValue::Object(v) => match v.downcast_ref::<u64>() {
                Some(big) => Ok(Scalar::UInt(*big)),
                None => Err(self.mismatch("Scalar")),
            },
            other => Err(other.mismatch("Scalar")),
        }
    }

    /// The string held.
    pub fn to_str(&self) -> Result<&str> {
        match self {
            IValue::String(s) => Ok(s),
            other => Err(other.mismatch("str")),
        }
    }

    /// The integers held; symbolic ones are guarded on.
    pub fn to_int_list(&self) -> Result<Arc<[i64]>> {
        match self {
            IValue::IntList(v) => Ok(v.clone()),
            IValue::SymIntList(v) => v.iter().map(SymInt::guard_int).collect(),
            IValue::List(v) => v.iter().map(IValue::to_int).collect(),
            other => Err(other.mismatch("int[]")),
        }
    }

    /// The integers held, symbolic or not.
    pub fn to_sym_int_list(&self) -> Result<Arc<[SymInt]>> {
        match self {
            IValue::SymIntList(v) => Ok(v.clone()),
            IValue::IntList(v) => Ok(v.iter().map(|&i| SymInt::from(i)).collect()),
            IValue::List(v) => v.iter().map(IValue::to_sym_int).collect(),
            other => Err(other.mismatch("SymInt[]")),
        }
    }

    /// The real numbers held; symbolic ones are guarded on.
    pub fn to_double_list(&self) -> Result<Arc<[f64]>> {
        match self {
            IValue::DoubleList(v) => Ok(v.clone()),
            IValue::IntList(v) => Ok(v.iter().map(|&i| i as f64).collect()),
            IValue::SymIntList(v) => v.iter().map(|i| Ok(i.guard_int()? as f64)).collect(),
            IValue::List(v) => v.iter().map(IValue::to_double).collect(),
            other => Err(other.mismatch("float[]")),
        }
    }

    /// The booleans held; symbolic ones are guarded on.
    pub fn to_bool_list(&self) -> Result<Arc<[bool]>> {
        match self {
            IValue::BoolList(v) => Ok(v.clone()),
            IValue::List(v) => v.iter().map(IValue::to_bool).collect(),
            other => Err(other.mismatch("bool[]")),
        }
    }

    /// The tensors held.
    pub fn to_tensor_list(&self) -> Result<Arc<[Tensor]>> {
        match self {
            IValue::TensorList(v) => Ok(v.clone()),
            IValue::OptionalTensorList(v) => {
                v.iter().map(|t| t.clone().ok_or_else(|| self.mismatch("Tensor[]"))).collect()
            }
            IValue::List(v) => v.iter().map(|t| t.to_tensor().cloned()).collect(),
            other => Err(other.mismatch("Tensor[]")),
        }
    }

    /// The tensors held, absent ones included.
    pub fn to_optional_tensor_list(&self) -> Result<Arc<[Option<Tensor>]>> {
        match self {
            IValue::OptionalTensorList(v) => Ok(v.clone()),
            IValue::TensorList(v) => Ok(v.iter().cloned().map(Some).collect()),
            IValue::List(v) => v
                .iter()
                .map(|t| if t.is_none() { Ok(None) } else { t.to_tensor().cloned().map(Some) })
                .collect(),
            other => Err(other.mismatch("Tensor?[]")),
        }
    }

    /// The dtype held; an integer is read as PyTorch's number of a dtype.
    pub fn to_scalar_type(&self) -> Result<ScalarType> {
        match self {
            IValue::ScalarType(v) => Ok(*v),
            IValue::Int(v) => u8::try_from(*v)
                .ok()
                .and_then(|v| ScalarType::try_from(v).ok())
                .ok_or_else(|| self.mismatch("ScalarType")),
            other => Err(other.mismatch("ScalarType")),
        }
    }

    /// Calls `f` with every tensor in the value, lists included.
    #[inline]
    pub fn for_each_tensor(&self, f: &mut dyn FnMut(&Tensor)) {
        match self {
            IValue::Tensor(t) => f(t),
            IValue::TensorList(v) => v.iter().for_each(f),
            IValue::OptionalTensorList(v) => v.iter().flatten().for_each(f),
            IValue::List(v) => v.iter().for_each(|v| v.for_each_tensor(f)),
            _ => {}
        }
    }

    /// As [`IValue::for_each_tensor`], with absent tensors: those of an optional list, and whatever takes a tensor's place.
    #[inline]
    pub fn for_each_optional_tensor(&self, f: &mut dyn FnMut(Option<&Tensor>)) {
        match self {
            IValue::Tensor(t) => f(Some(t)),
            IValue::TensorList(v) => v.iter().for_each(|t| f(Some(t))),
            IValue::OptionalTensorList(v) => v.iter().for_each(|t| f(t.as_ref())),
            IValue::List(v) => v.iter().for_each(|v| v.for_each_optional_tensor(f)),
            _ => f(None),
        }
    }

    /// Whether the value is a list of tensors, optional ones included, or may be one.
    #[inline]
    pub fn is_tensor_list(&self) -> bool {
        matches!(self, IValue::TensorList(_) | IValue::OptionalTensorList(_) | IValue::List(_))
    }

    /// Whether `f` holds for any tensor in the value, lists included.
    #[inline]
    pub fn any_tensor(&self, f: &mut dyn FnMut(&Tensor) -> bool) -> bool {
        match self {
            IValue::Tensor(t) => f(t),
            IValue::TensorList(v) => v.iter().any(f),
            IValue::OptionalTensorList(v) => v.iter().flatten().any(f),
            IValue::List(v) => v.iter().any(|v| v.any_tensor(f)),
            _ => false,
        }
    }

    /// Lets `f` change every tensor in the value, lists included, and stops at its first error. A list that others share
    /// is cloned first.
    pub fn for_each_tensor_mut(&mut self, f: &mut dyn FnMut(&mut Tensor) -> Result<()>) -> Result<()> {
        match self {
            IValue::Tensor(t) => f(t),
            IValue::TensorList(v) => Arc::make_mut(v).iter_mut().try_for_each(f),
            IValue::OptionalTensorList(v) => Arc::make_mut(v).iter_mut().flatten().try_for_each(f),
            IValue::List(v) => Arc::make_mut(v).iter_mut().try_for_each(|v| v.for_each_tensor_mut(f)),
            _ => Ok(()),
        }
    }

    /// The same value with `f` of every tensor in it, lists included.
    pub fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<IValue> {
        let mut mapped = self.clone();
        mapped.for_each_tensor_mut(&mut |tensor| {
            *tensor = f(tensor)?;
            Ok(())
        })?;
        Ok(mapped)
    }

    /// The union of the key sets of the tensors in the value. A generator counts too: it selects the
    /// backend of a random factory.
    #[inline]
    pub fn key_set(&self) -> DispatchKeySet {
        match self {
            IValue::Tensor(t) => t.key_set(),
            IValue::Int(_) | IValue::Double(_) | IValue::Bool(_) | IValue::None => DispatchKeySet::default(),
            _ => self.key_set_of_rest(),
        }
    }

    fn key_set_of_rest(&self) -> DispatchKeySet {
        let mut keys = DispatchKeySet::default();
        if let IValue::Generator(g) = self {
            return g.key_set();
        }
        self.for_each_tensor(&mut |t| keys |= t.key_set());
        keys
    }
}

impl std::fmt::Debug for IValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IValue::None => f.write_str("None"),
            IValue::Bool(v) => write!(f, "{v}"),
            IValue::Int(v) => write!(f, "{v}"),
            IValue::Double(v) => write!(f, "{v}"),
            IValue::ComplexDouble(v) => write!(f, "{v}"),
            IValue::String(v) => write!(f, "{v:?}"),
            IValue::IntList(v) => write!(f, "{v:?}"),
            IValue::DoubleList(v) => write!(f, "{v:?}"),
            IValue::BoolList(v) => write!(f, "{v:?}"),
            IValue::List(v) | IValue::Tuple(v) => write!(f, "{v:?}"),
            other => f.write_str(other.type_name()),
        }
    }
}

macro_rules! from_value {
    ($($ty:ty => $variant:ident),* $(,)?) => {$(
        impl From<$ty> for IValue {
            #[inline]
            fn from(value: $ty) -> IValue {
                IValue::$variant(value)
            }
        }
    )*};
}

from_value! {
    Tensor => Tensor, Storage => Storage, bool => Bool, i64 => Int, f64 => Double, Complex64 => ComplexDouble,
    SymInt => SymInt, SymFloat => SymFloat, SymBool => SymBool, Arc<str> => String, ScalarType => ScalarType,
    Layout => Layout, MemoryFormat => MemoryFormat, Device => Device, Generator => Generator, Stream => Stream,
    Arc<[i64]> => IntList, Arc<[SymInt]> => SymIntList, Arc<[f64]> => DoubleList, Arc<[bool]> => BoolList,
    Arc<[Tensor]> => TensorList, Arc<[Option<Tensor>]> => OptionalTensorList,
}

impl From<&str> for IValue {
    fn from(value: &str) -> IValue {
        IValue::String(Arc::from(value))
    }
}

impl From<String> for IValue {
    fn from(value: String) -> IValue {
        IValue::String(Arc::from(value))
    }
}

impl From<Vec<Tensor>> for IValue {
    fn from(value: Vec<Tensor>) -> IValue {
        IValue::TensorList(Arc::from(value))
    }
}

impl From<Scalar> for IValue {
    fn from(value: Scalar) -> IValue {
        match value {
            Scalar::Bool(v) => IValue::Bool(v),
            Scalar::Int(v) => IValue::Int(v),
            // The one number that no other variant can hold; rare enough to live behind `Object`.
            Scalar::UInt(v) => IValue::Object(Arc::new(v)),
            Scalar::Float(v) => IValue::Double(v),
            Scalar::Complex(v) => IValue::ComplexDouble(v),
            Scalar::SymInt(v) => IValue::SymInt(v),
            Scalar::SymFloat(v) => IValue::SymFloat(v),
            Scalar::SymBool(v) => IValue::SymBool(v),
        }
    }
}

impl<T: Into<IValue>> From<Option<T>> for IValue {
    #[inline]
    fn from(value: Option<T>) -> IValue {
        value.map_or(IValue::None, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_three_words() {
        assert_eq!(std::mem::size_of::<IValue>(), 24);
    }

    #[test]
    fn numbers_widen_and_never_narrow() {
        assert_eq!(IValue::Int(3).to_double().unwrap(), 3.0);
        assert_eq!(IValue::Bool(true).to_int().unwrap(), 1);
        assert!(IValue::Double(1.5).to_int().is_err());
        assert!(IValue::None.to_double().is_err());
    }

    #[test]
    fn symbolic_numbers_serve_where_known_ones_are_asked_for() {
        let (float, flag) = (IValue::SymFloat(SymFloat::Float(2.5)), IValue::SymBool(SymBool::Bool(true)));
        assert_eq!(float.to_double().unwrap(), 2.5);
        assert!(flag.to_bool().unwrap());
        let floats = IValue::List(Arc::new(vec![float, IValue::Int(1), IValue::SymInt(SymInt::from(2))]));
        assert_eq!(floats.to_double_list().unwrap()[..], [2.5, 1.0, 2.0]);
        let flags = IValue::List(Arc::new(vec![flag, IValue::Bool(false)]));
        assert_eq!(flags.to_bool_list().unwrap()[..], [true, false]);
        let sizes = IValue::SymIntList(Arc::from([SymInt::from(3)]));
        assert_eq!(sizes.to_double_list().unwrap()[..], [3.0]);
    }

    #[test]
    fn scalars_survive_the_round_trip() {
        for s in [Scalar::Int(-7), Scalar::UInt(u64::MAX), Scalar::Float(0.5), Scalar::Bool(true)] {
            let back = IValue::from(s.clone()).to_scalar().unwrap();
            assert_eq!(format!("{back:?}"), format!("{s:?}"));
        }
    }

    #[test]
    fn tensors_in_shared_and_nested_lists_are_mapped_in_a_copy() {
        let tensor = |n: i64| c10::empty_cpu(&[n], ScalarType::Float).unwrap();
        let sizes = |value: &IValue| {
            let mut sizes = Vec::new();
            value.for_each_optional_tensor(&mut |t| sizes.push(t.map_or(-1, |t| t.numel().unwrap())));
            sizes
        };
        let optional: Arc<[Option<Tensor>]> = Arc::from([Some(tensor(1)), None]);
        let list = IValue::List(Arc::new(vec![
            IValue::OptionalTensorList(optional),
            IValue::TensorList(Arc::from([tensor(2), tensor(3)])),
            IValue::Int(7),
        ]));
        let shared = list.clone();
        let mapped = list.map_tensors(&mut |t| Ok(tensor(t.numel()? * 10))).unwrap();
        assert_eq!(sizes(&mapped), [10, -1, 20, 30, -1]);
        assert_eq!(sizes(&shared), [1, -1, 2, 3, -1]);
        let error = mapped.map_tensors(&mut |_| Err(Error::runtime("no")));
        assert_eq!(error.err().unwrap().message(), "no");
        assert!(list.any_tensor(&mut |t| t.numel().unwrap() == 3) && !list.any_tensor(&mut |_| false));
    }

    #[test]
    fn int_lists_serve_as_symbolic_lists() {
        let v = IValue::IntList(Arc::from([2i64, 3]));
        let s = v.to_sym_int_list().unwrap();
        assert_eq!(s.len(), 2);
        assert_eq!(s[1].guard_int().unwrap(), 3);
        assert!(v.to_tensor_list().is_err());
    }
}
