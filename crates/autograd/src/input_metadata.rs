//! What a node knows of each of its inputs (the outputs of the forward operator): enough to check and to repair
//! the gradients that arrive, and to make zeros for those that do not.

use c10::{
    Device, DeviceType, DimVector, DispatchKey, Layout, Result, ScalarType, SizeInt, Stream, SymDimVector,
    SymInt, Tensor,
};

use crate::tensor_ops;

/// Sizes of the forward output, inline when they are plain integers.
#[derive(Clone)]
enum Shape {
    Int(DimVector),
    Sym(Box<SymDimVector>),
}

/// What the gradient of one output must look like.
#[derive(Clone)]
pub struct InputMetadata {
    shape: Shape,
    dtype: ScalarType,
    device: Device,
    layout: Layout,
    is_tensor_subclass: bool,
    /// The stream on which the forward operator ran, for devices that have streams. Boxed: most nodes are on the CPU.
    stream: Option<Box<Stream>>,
}

impl InputMetadata {
    /// Records a forward output.
    pub fn new(tensor: &Tensor) -> Self {
        let shape = match tensor.sizes() {
            Ok(sizes) => Shape::Int(DimVector::from_slice(sizes)),
            Err(_) => Shape::Sym(Box::new(tensor.sym_sizes())),
        };
        let device = tensor.device();
        Self {
            shape,
            dtype: tensor.scalar_type(),
            device,
            layout: tensor.layout(),
            is_tensor_subclass: tensor.key_set().has(DispatchKey::Python),
            stream: current_stream(device).map(Box::new),
        }
    }

    /// Stands for an output that has no gradient (an undefined tensor).
    pub fn undefined() -> Self {
        Self {
            shape: Shape::Int(DimVector::new()),
            dtype: ScalarType::Float,
            device: Device::new(DeviceType::CPU, -1),
            layout: Layout::Strided,
            is_tensor_subclass: false,
            stream: None,
        }
    }

    /// The dtype a gradient is cast to.
    pub fn dtype(&self) -> ScalarType {
        self.dtype
    }

    /// The device a gradient must be on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The layout of the forward output.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The stream on which the forward operator ran.
    pub fn stream(&self) -> Option<Stream> {
        self.stream.as_deref().copied()
    }

    /// Whether the output was a tensor that Python handles.
    pub fn is_tensor_subclass(&self) -> bool {
        self.is_tensor_subclass
    }

    /// The sizes of the forward output.
    pub fn sym_sizes(&self) -> SymDimVector {
        match &self.shape {
            Shape::Int(sizes) => sizes.iter().map(|&n| SymInt::from(n)).collect(),
            Shape::Sym(sizes) => (**sizes).clone(),
        }
    }

    /// Whether a gradient has exactly the shape of the forward output.
    #[inline]
    pub fn is_same_shape(&self, grad: &Tensor) -> Result<bool> {
        match (&self.shape, grad.sizes()) {
            (Shape::Int(shape), Ok(sizes)) => Ok(shape.as_slice() == sizes),
            _ => SymInt::guard_same(&self.sym_sizes(), &grad.sym_sizes()),
        }
    }

    /// Whether the forward output's shape broadcasts to the gradient's, so that summing repairs the gradient.
    pub fn is_expandable_to_shape(&self, grad: &Tensor) -> Result<bool> {
        let (shape, sizes) = (self.sym_sizes(), grad.sym_sizes());
        if shape.len() > sizes.len() {
            return Ok(false);
        }
        let lead = sizes.len() - shape.len();
        for (want, have) in shape.iter().zip(&sizes[lead..]) {
            let same = want.guard_eq(have)?;
            if !same && want.maybe_as_int() != Some(1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The shape as an error message shows it.
    pub fn shape_as_string(&self) -> String {
        format_sizes(&self.sym_sizes())
    }

    /// A gradient of zeros.
    pub fn zeros_like(&self) -> Result<Tensor> {
        tensor_ops::zeros(&self.sym_sizes(), self.dtype, self.layout, self.device)
    }
}

/// Sizes as PyTorch prints an `IntArrayRef`: `[2, 3]`.
pub(crate) fn format_sizes(sizes: &[SymInt]) -> String {
    let items: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// The current stream of a device that has streams; `None` for the CPU and meta.
fn current_stream(device: Device) -> Option<Stream> {
    if device.type_ == DeviceType::CPU || device.type_ == DeviceType::Meta {
        return None;
    }
    let guard = c10::get_device_guard_impl(device.type_).ok()?;
    guard.get_stream(device).ok()
}
