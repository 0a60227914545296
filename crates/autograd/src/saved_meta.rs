//! Facts about tensors that a node keeps instead of the tensors.
//!
//! [`saved_facts!`] is the one table of them: how a formula writes the fact, under which name users see it, how it is
//! taken from an argument, and how a formula reads it. opgen reads the rows too, to know which facts there are.

use c10::{Device, Layout, MemoryFormat, Result, ScalarType, SymDimVector, SymInt, Tensor, TensorOptions};
use dispatch::IValue;

use crate::backward_ctx::BackwardCtx;

/// A saved fact; which one it is says a [`MetaKind`].
#[derive(Clone)]
pub enum SavedMeta {
    /// Sizes or strides.
    SymInts(Box<SymDimVector>),
    /// A storage offset or an element count.
    SymInt(SymInt),
    /// A dtype.
    ScalarType(ScalarType),
    /// Dtype, layout and device.
    Options(Box<TensorOptions>),
    /// A number of dimensions, or the length of a list.
    Int(i64),
    /// A device.
    Device(Device),
    /// A layout.
    Layout(Layout),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A flag.
    Bool(bool),
    /// The sizes of each tensor of a list.
    ListSizes(Box<[SymDimVector]>),
    /// The dtype of each tensor of a list.
    ListScalarTypes(Box<[ScalarType]>),
}

/// The tensors of a list argument; `None` where one is missing.
type Tensors<'a> = Box<dyn Iterator<Item = Option<&'a Tensor>> + 'a>;

macro_rules! saved_facts {
    (
        $($kind:ident: $place:ident.$method:ident() as $shown:literal, fn $accessor:ident -> $type:ty:
            $variant:ident($value:ident) => $read:expr, from $source:pat => $take:expr;)*
    ) => {
        /// Which fact about a tensor, or a list of them, is saved.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MetaKind {
            $(
                #[doc = concat!("`", stringify!($method), "()` of a ", stringify!($place))]
                $kind,
            )*
        }

        impl MetaKind {
            /// What follows the argument's name where users see the fact: `_saved_self_sym_sizes`.
            pub(crate) fn shown(self) -> &'static str {
                match self {
                    $(MetaKind::$kind => $shown,)*
                }
            }
        }

        impl SavedMeta {
            /// Takes the fact from an argument.
            pub(crate) fn capture(what: MetaKind, value: &IValue) -> Result<Self> {
                Ok(match what {
                    $(MetaKind::$kind => {
                        let $source = saved_facts!(@source $place value);
                        Self::$variant($take)
                    })*
                })
            }
        }

        impl<'a> BackwardCtx<'a> {
            $(
                #[doc = concat!("The saved fact `", stringify!($method), "()` of a ", stringify!($place), ".")]
                pub fn $accessor(&self, slot: usize) -> Result<$type> {
                    match self.meta(slot, MetaKind::$kind)? {
                        SavedMeta::$variant($value) => Ok($read),
                        _ => Err(self.misuse("saved fact", slot)),
                    }
                }
            )*
        }
    };
    (@source tensor $value:ident) => { tensor_or_none($value)? };
    (@source list $value:ident) => { tensors($value) };
}

// How a missing tensor counts: as one without dimensions, of the default dtype, on the CPU.
saved_facts! {
    SymSizes: tensor.sym_sizes() as "sym_sizes", fn sym_sizes -> &'a [SymInt]:
        SymInts(v) => v, from t => t.map_or_else(Box::default, |t| Box::new(t.sym_sizes()));
    SymStrides: tensor.sym_strides() as "sym_strides", fn sym_strides -> &'a [SymInt]:
        SymInts(v) => v, from t => t.map_or_else(Box::default, |t| Box::new(t.sym_strides()));
    SymStorageOffset: tensor.sym_storage_offset() as "sym_storage_offset", fn sym_storage_offset -> SymInt:
        SymInt(v) => v.clone(), from t => t.map_or_else(|| SymInt::from(0), |t| t.sym_storage_offset());
    SymNumel: tensor.sym_numel() as "sym_numel", fn sym_numel -> SymInt:
        SymInt(v) => v.clone(), from t => t.map_or_else(|| SymInt::from(0), |t| t.sym_numel());
    ScalarType: tensor.scalar_type() as "scalar_type", fn scalar_type -> ScalarType:
        ScalarType(v) => *v, from t => t.map_or(ScalarType::Float, |t| t.scalar_type());
    Options: tensor.options() as "options", fn options -> TensorOptions:
        Options(v) => **v, from t => t.map_or_else(Box::default, |t| Box::new(t.options()));
    Dim: tensor.dim() as "dim", fn dim -> i64:
        Int(v) => *v, from t => t.map_or(0, |t| t.dim());
    Device: tensor.device() as "device", fn device -> Device:
        Device(v) => *v, from t => t.map_or(Device::CPU, |t| t.device());
    Layout: tensor.layout() as "layout", fn layout -> Layout:
        Layout(v) => *v, from t => t.map_or(Layout::Strided, |t| t.layout());
    MemoryFormat: tensor.suggest_memory_format() as "memory_format", fn suggest_memory_format -> MemoryFormat:
        MemoryFormat(v) => *v, from t => t.map_or(MemoryFormat::Contiguous, |t| t.suggest_memory_format());
    IsComplex: tensor.is_complex() as "is_complex", fn is_complex -> bool:
        Bool(v) => *v, from t => t.is_some_and(|t| t.scalar_type().is_complex());
    TensorListSizes: list.sym_sizes() as "sizes", fn tensor_list_sizes -> &'a [SymDimVector]:
        ListSizes(v) => v, from l => l.map(|t| t.map(|t| t.sym_sizes()).unwrap_or_default()).collect();
    TensorListScalarTypes: list.scalar_types() as "args_scalartypes",
        fn tensor_list_scalar_types -> &'a [ScalarType]:
        ListScalarTypes(v) => v, from l => l.map(|t| t.map_or(ScalarType::Float, |t| t.scalar_type())).collect();
    TensorListLen: list.len() as "size_", fn list_size -> usize:
        Int(v) => *v as usize, from l => l.count() as i64;
}

fn tensor_or_none(value: &IValue) -> Result<Option<&Tensor>> {
    if value.is_none() {
        return Ok(None);
    }
    value.to_tensor().map(Some)
}

fn tensors(value: &IValue) -> Tensors<'_> {
    match value {
        IValue::TensorList(tensors) => Box::new(tensors.iter().map(Some)),
        IValue::OptionalTensorList(tensors) => Box::new(tensors.iter().map(Option::as_ref)),
        _ => Box::new(std::iter::empty()),
    }
}
