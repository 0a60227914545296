//! Default values of arguments.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::printer;
use super::type_::Type;

/// The value after `=`. Floats compare by their bits, so equality is total and `nan` equals itself.
#[derive(Clone, Debug)]
pub enum DefaultValue {
    /// `None`
    None,
    /// `True` or `False`
    Bool(bool),
    /// `-1`; for a list of fixed size also the one value that stands for all of its elements.
    Int(i64),
    /// `0.5`, `inf`, `nan`
    Float(f64),
    /// `0.+1.j`
    Complex {
        /// Real part.
        re: f64,
        /// Imaginary part.
        im: f64,
    },
    /// `"linear"`
    Str(String),
    /// `[0, 1]`
    List(Vec<DefaultValue>),
    /// A named value of an enumeration, or a device: `Mean`, `contiguous_format`, `strided`, `long`, `cuda:0`.
    Symbol(String),
}

/// dtype names in the order of their numbers in PyTorch, with the names that `torch` gives them too.
const SCALAR_TYPES: &[(&str, i64)] = &[
    ("byte", 0),
    ("uint8", 0),
    ("char", 1),
    ("int8", 1),
    ("short", 2),
    ("int16", 2),
    ("int", 3),
    ("int32", 3),
    ("long", 4),
    ("int64", 4),
    ("half", 5),
    ("float16", 5),
    ("float", 6),
    ("float32", 6),
    ("double", 7),
    ("float64", 7),
    ("complex32", 8),
    ("chalf", 8),
    ("complex64", 9),
    ("cfloat", 9),
    ("complex128", 10),
    ("cdouble", 10),
    ("bool", 11),
    ("qint8", 12),
    ("quint8", 13),
    ("qint32", 14),
    ("bfloat16", 15),
    ("quint4x2", 16),
    ("quint2x4", 17),
    ("bits1x8", 18),
    ("bits2x4", 19),
    ("bits4x2", 20),
    ("bits8", 21),
    ("bits16", 22),
    ("float8_e5m2", 23),
    ("float8_e4m3fn", 24),
    ("float8_e5m2fnuz", 25),
    ("float8_e4m3fnuz", 26),
    ("uint16", 27),
    ("uint32", 28),
    ("uint64", 29),
    ("uint1", 30),
    ("uint2", 31),
    ("uint3", 32),
    ("uint4", 33),
    ("uint5", 34),
    ("uint6", 35),
    ("uint7", 36),
    ("int1", 37),
    ("int2", 38),
    ("int3", 39),
    ("int4", 40),
    ("int5", 41),
    ("int6", 42),
    ("int7", 43),
    ("float8_e8m0fnu", 44),
    ("float4_e2m1fn_x2", 45),
];

const LAYOUTS: &[(&str, i64)] = &[
    ("strided", 0),
    ("sparse", 1),
    ("sparse_coo", 1),
    ("sparse_csr", 2),
    ("_mkldnn", 3),
    ("sparse_csc", 4),
    ("sparse_bsr", 5),
    ("sparse_bsc", 6),
    ("jagged", 7),
];

const MEMORY_FORMATS: &[(&str, i64)] =
    &[("contiguous_format", 0), ("preserve_format", 1), ("channels_last", 2), ("channels_last_3d", 3)];

const QSCHEMES: &[(&str, i64)] = &[
    ("per_tensor_affine", 0),
    ("per_channel_affine", 1),
    ("per_tensor_symmetric", 2),
    ("per_channel_symmetric", 3),
    ("per_channel_affine_float_qparams", 4),
];

/// Values of `at::Reduction`; its `None` cannot be named, as `None` is the absent value.
const REDUCTIONS: &[(&str, i64)] = &[("Mean", 1), ("Sum", 2)];

fn lookup(table: &[(&str, i64)], name: &str) -> Option<i64> {
    table.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
}

impl DefaultValue {
    /// The number PyTorch has for `name` where a value of type `ty` is wanted. For `int` these are the names of all
    /// enumerations, since schemas declare `reduction` and others as `int`.
    pub fn symbol_value(ty: &Type, name: &str) -> Option<i64> {
        match ty.unwrap_optional() {
            Type::ScalarType => lookup(SCALAR_TYPES, name),
            Type::Layout => lookup(LAYOUTS, name),
            Type::MemoryFormat => lookup(MEMORY_FORMATS, name),
            Type::QScheme => lookup(QSCHEMES, name),
            Type::Int | Type::SymInt | Type::Scalar | Type::DeviceIndex => {
                [REDUCTIONS, SCALAR_TYPES, LAYOUTS, MEMORY_FORMATS, QSCHEMES]
                    .iter()
                    .find_map(|t| lookup(t, name))
            }
            _ => None,
        }
    }

    /// This value with names of enumerations replaced by their numbers, as PyTorch registers it. Devices stay names.
    pub fn resolved(&self, ty: &Type) -> DefaultValue {
        match self {
            DefaultValue::Symbol(name) => {
                let ty = ty.as_list().map_or(ty, |(element, _)| element);
                DefaultValue::symbol_value(ty, name).map_or_else(|| self.clone(), DefaultValue::Int)
            }
            DefaultValue::List(items) => {
                let element = ty.as_list().map_or(&Type::Any, |(element, _)| element);
                DefaultValue::List(items.iter().map(|item| item.resolved(element)).collect())
            }
            _ => self.clone(),
        }
    }

    /// The elements this default means for a list type: `1` for `int[2]` is `[1, 1]`. `None` if the type is no list or
    /// the default is `None`.
    pub fn elements(&self, ty: &Type) -> Option<Vec<DefaultValue>> {
        let (_, size) = ty.as_list()?;
        match self {
            DefaultValue::None => None,
            DefaultValue::List(items) => Some(items.clone()),
            one => Some(vec![one.clone(); size? as usize]),
        }
    }
}

impl PartialEq for DefaultValue {
    fn eq(&self, other: &DefaultValue) -> bool {
        use DefaultValue::*;
        match (self, other) {
            (None, None) => true,
            (Bool(a), Bool(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            (Float(a), Float(b)) => bits(*a) == bits(*b),
            (Complex { re: a, im: b }, Complex { re: c, im: d }) => {
                (bits(*a), bits(*b)) == (bits(*c), bits(*d))
            }
            (Str(a), Str(b)) | (Symbol(a), Symbol(b)) => a == b,
            (List(a), List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for DefaultValue {}

impl Hash for DefaultValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            DefaultValue::None => {}
            DefaultValue::Bool(b) => b.hash(state),
            DefaultValue::Int(i) => i.hash(state),
            DefaultValue::Float(x) => bits(*x).hash(state),
            DefaultValue::Complex { re, im } => (bits(*re), bits(*im)).hash(state),
            DefaultValue::Str(s) | DefaultValue::Symbol(s) => s.hash(state),
            DefaultValue::List(items) => items.hash(state),
        }
    }
}

/// Bits of `x`, the same for every NaN.
fn bits(x: f64) -> u64 {
    if x.is_nan() {
        f64::NAN.to_bits()
    } else {
        x.to_bits()
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_value(f, self)
    }
}
