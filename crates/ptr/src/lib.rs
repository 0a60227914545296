//! Tensors and automatic differentiation with PyTorch's semantics, for Rust programs.
//!
//! ```
//! use ptr::{at, Config, RequiresGrad};
//!
//! ptr::init(Config::default())?;
//! let x = ptr::tensor(&[1.0f32, 2.0, 3.0], &[3])?.set_requires_grad(true)?;
//! let y = at::sum(&at::mul_tensor(&x, &x)?, None)?;
//! ptr::backward(&y)?;
//! assert_eq!(y.to_string(), "tensor(14., grad_fn=<SumBackward0>)");
//! assert_eq!(ptr::grad(&x).map(|g| ptr::to_vec::<f32>(&g)).transpose()?, Some(vec![2.0, 4.0, 6.0]));
//! # Ok::<(), ptr::Error>(())
//! ```
//!
//! * [`at`] has every operator as a typed function, under PyTorch's name with the overload appended:
//!   `add.Tensor` is [`at::add_tensor`].
//! * Everything fallible returns [`Result`]; no operator panics on bad input.
//! * A tensor displays as in Python: `println!("{x}")` prints `tensor([1., 2., 3.], requires_grad=True)`.
//! * Tensors are counted references: `clone` shares memory, as in PyTorch.
//! * Work is split over [`Config::threads`] threads of the engine's own pool; results have the same bits for any number.
//! * A program that installs [`ReserveAllocator`] as its global allocator gets an error, and goes on, when memory is
//!   exhausted.
//!
//! # What shares a tensor
//!
//! As in PyTorch, all handles to a tensor see the same sizes, strides and storage, and operators that change these
//! (`resize_`, `set_`, `unsqueeze_` and their like, and an `out` that has the wrong size) take it by shared reference.
//! The compiler does not know that such a call ends what [`Tensor::sizes`](c10::TensorImpl::sizes),
//! [`strides`](c10::TensorImpl::strides) and [`storage`](c10::TensorImpl::storage) have lent: copy what you keep across
//! it. Nor does it order threads that share a tensor when one of them writes to it: a lock is the program's to take, or a
//! [`TensorPin`](c10::TensorPin).

mod config;
mod data;
mod gradients;

pub use autograd;
pub use c10::{
    Complex, Device, DeviceType, Element, Error, ErrorKind, Generator, Layout, MemoryFormat, NoGradGuard,
    ReserveAllocator, Result, Scalar, ScalarType, SymInt, Tensor,
};
pub use config::{init, num_threads, set_num_threads, Config};
pub use data::{manual_seed, tensor, to_vec};
pub use dispatch;
pub use gradients::{backward, grad, RequiresGrad};
pub use ops::at;
