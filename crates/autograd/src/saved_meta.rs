//! Facts about tensors that a node keeps instead of the tensors.

use c10::{Device, Layout, Result, ScalarType, SymDimVector, SymInt, Tensor, TensorOptions};
use dispatch::IValue;

use crate::derivative_entry::MetaKind;

/// A saved fact; the kinds are those of [`MetaKind`].
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
    /// A flag.
    Bool(bool),
    /// The sizes of each tensor of a list.
    ListSizes(Box<[SymDimVector]>),
    /// The dtype of each tensor of a list.
    ListScalarTypes(Box<[ScalarType]>),
}

impl SavedMeta {
    /// Takes the fact from an argument. An undefined tensor gives the fact of an empty one.
    pub(crate) fn capture(what: MetaKind, value: &IValue) -> Result<Self> {
        match what {
            MetaKind::TensorListSizes => {
                let sizes = list(value).map(|t| t.map(|t| t.sym_sizes()).unwrap_or_default());
                return Ok(Self::ListSizes(sizes.collect()));
            }
            MetaKind::TensorListScalarTypes => {
                let dtypes = list(value).map(|t| t.map_or(ScalarType::Float, |t| t.scalar_type()));
                return Ok(Self::ListScalarTypes(dtypes.collect()));
            }
            MetaKind::TensorListLen => return Ok(Self::Int(list(value).count() as i64)),
            _ => {}
        }
        let tensor = if value.is_none() { None } else { Some(value.to_tensor()?) };
        Ok(match tensor {
            Some(tensor) => Self::of_tensor(what, tensor),
            None => Self::of_undefined(what),
        })
    }

    fn of_tensor(what: MetaKind, tensor: &Tensor) -> Self {
        match what {
            MetaKind::SymSizes => Self::SymInts(Box::new(tensor.sym_sizes())),
            MetaKind::SymStrides => Self::SymInts(Box::new(tensor.sym_strides())),
            MetaKind::SymStorageOffset => Self::SymInt(tensor.sym_storage_offset()),
            MetaKind::SymNumel => Self::SymInt(tensor.sym_numel()),
            MetaKind::ScalarType => Self::ScalarType(tensor.scalar_type()),
            MetaKind::Options => Self::Options(Box::new(tensor.options())),
            MetaKind::Dim => Self::Int(tensor.dim()),
            MetaKind::Device => Self::Device(tensor.device()),
            MetaKind::Layout => Self::Layout(tensor.layout()),
            MetaKind::IsComplex => Self::Bool(tensor.scalar_type().is_complex()),
            MetaKind::TensorListSizes | MetaKind::TensorListScalarTypes | MetaKind::TensorListLen => {
                Self::Int(0)
            }
        }
    }

    fn of_undefined(what: MetaKind) -> Self {
        match what {
            MetaKind::SymSizes | MetaKind::SymStrides => Self::SymInts(Box::default()),
            MetaKind::SymStorageOffset | MetaKind::SymNumel => Self::SymInt(SymInt::from(0)),
            MetaKind::ScalarType => Self::ScalarType(ScalarType::Float),
            MetaKind::Options => Self::Options(Box::default()),
            MetaKind::Device => Self::Device(Device::new(c10::DeviceType::CPU, -1)),
            MetaKind::Layout => Self::Layout(Layout::Strided),
            MetaKind::IsComplex => Self::Bool(false),
            _ => Self::Int(0),
        }
    }
}

fn list(value: &IValue) -> Box<dyn Iterator<Item = Option<&Tensor>> + '_> {
    match value {
        IValue::TensorList(tensors) => Box::new(tensors.iter().map(Some)),
        IValue::OptionalTensorList(tensors) => Box::new(tensors.iter().map(Option::as_ref)),
        _ => Box::new(std::iter::empty()),
    }
}
