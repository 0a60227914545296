//! `StructuredOutputs`: who owns the outputs of a structured operator.
//!
//! A meta function says which outputs there are; whether they are made (`add`), given (`add.out`) or are the input
//! itself (`add_`) is decided here, once for all operators.

use c10::{
    can_cast, check, compute_contiguous_strides, internal_assert, DimVector, Error, Result, ScalarType,
    SizeInt, SmallVec, SymInt, Tensor, TensorOptions,
};

use crate::cast::copy_into;
use crate::empty::{empty, empty_strided};
use crate::resize::{resize_impl, resize_output};

/// Who makes the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Functional,
    Out,
    Inplace,
}

#[derive(Default)]
struct Slot {
    /// The output: given, or made by `set_output_*`.
    output: Option<Tensor>,
    /// What the kernel writes in its place, if it cannot write there.
    proxy: Option<Tensor>,
}

/// The outputs of one call.
pub struct StructuredOutputs {
    mode: Mode,
    slots: SmallVec<[Slot; 2]>,
}

impl StructuredOutputs {
    /// `n` outputs that are to be made.
    pub fn functional(n: usize) -> Self {
        Self { mode: Mode::Functional, slots: (0..n).map(|_| Slot::default()).collect() }
    }

    /// Outputs given as `out=`.
    pub fn out(outputs: &[&Tensor]) -> Self {
        let slots = outputs.iter().map(|&t| Slot { output: Some(t.clone()), proxy: None }).collect();
        Self { mode: Mode::Out, slots }
    }

    /// One output that is the operator's first input.
    pub fn inplace(self_: &Tensor) -> Self {
        let slot = Slot { output: Some(self_.clone()), proxy: None };
        Self { mode: Mode::Inplace, slots: std::iter::once(slot).collect() }
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether outputs are made by this call.
    pub fn is_functional(&self) -> bool {
        self.mode == Mode::Functional
    }

    /// Whether the output is the operator's first input.
    pub fn is_inplace(&self) -> bool {
        self.mode == Mode::Inplace
    }

    /// Whether a given output has symbolic sizes or strides.
    #[inline]
    pub fn is_symbolic(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.output.as_ref().is_some_and(|output| output.has_symbolic_sizes_strides()))
    }

    /// Sets an output's shape for a kernel that writes only these strides (empty: row-major).
    pub fn set_output_strided<I: SizeInt>(
        &mut self,
        i: usize,
        sizes: &[I],
        strides: &[I],
        options: TensorOptions,
    ) -> Result<()> {
        self.set_output(i, sizes, strides, options)?;
        // An output made here has the wanted strides, and no kernel writes symbolic ones.
        if self.mode == Mode::Functional || self.is_symbolic() {
            return Ok(());
        }
        let (Some(sizes), Some(strides)) = (I::as_ints(sizes), I::as_ints(strides)) else { return Ok(()) };
        let wanted = if strides.is_empty() {
            compute_contiguous_strides(sizes)
        } else {
            DimVector::from_slice(strides)
        };
        let slot = &mut self.slots[i];
        if let Some(output) = slot.output.as_ref() {
            if *output.strides()? != *wanted {
                slot.proxy = Some(empty_strided(sizes, &wanted, &options)?);
            }
        }
        Ok(())
    }

    /// Sets an output's shape for a kernel that writes any strides; these (empty: row-major) are preferred.
    pub fn set_output_raw_strided<I: SizeInt>(
        &mut self,
        i: usize,
        sizes: &[I],
        strides: &[I],
        options: TensorOptions,
    ) -> Result<()> {
        self.set_output(i, sizes, strides, options)
    }

    /// Sets an output's shape for a kernel that writes row-major outputs only.
    pub fn set_output_contiguous<I: SizeInt>(
        &mut self,
        i: usize,
        sizes: &[I],
        options: TensorOptions,
    ) -> Result<()> {
        self.set_output_strided(i, sizes, &[], options)
    }

    /// What the kernel writes, if it is known yet: with `out=` and in place it is given from the start.
    pub fn maybe_get_output(&self, i: usize) -> Option<&Tensor> {
        let slot = self.slots.get(i)?;
        slot.proxy.as_ref().or(slot.output.as_ref())
    }

    /// What the kernel writes.
    pub fn output(&self, i: usize) -> Result<&Tensor> {
        self.maybe_get_output(i).ok_or_else(|| unset(i))
    }

    /// What the kernel writes, all outputs.
    pub fn outputs(&self) -> Result<SmallVec<[Tensor; 2]>> {
        (0..self.len()).map(|i| self.output(i).cloned()).collect()
    }

    /// The output itself, not a proxy.
    pub(crate) fn given(&self, i: usize) -> Option<&Tensor> {
        self.slots.get(i)?.output.as_ref()
    }

    /// Lets the kernel write `proxy` in place of output `i`.
    pub(crate) fn set_proxy(&mut self, i: usize, proxy: Tensor) {
        self.slots[i].proxy = Some(proxy);
    }

    /// Has the kernel write output `i` in a dtype of its own; a given output of another dtype is cast to from a proxy.
    pub fn compute_in<I: SizeInt>(&mut self, i: usize, dtype: ScalarType, sizes: &[I]) -> Result<()> {
        let Some(out) = self.given(i).filter(|out| out.dtype() != dtype) else { return Ok(()) };
        check!(
            can_cast(dtype, out.dtype()),
            "result type {} can't be cast to the desired output type {}",
            dtype.short_name(),
            out.dtype().short_name()
        );
        resize_output(out, sizes)?;
        let proxy = empty(sizes, &out.options().dtype(dtype))?;
        self.set_proxy(i, proxy);
        Ok(())
    }

    /// Copies proxies to their outputs. Call it after the kernel.
    pub fn finish(&mut self) -> Result<()> {
        for slot in &mut self.slots {
            if let (Some(proxy), Some(output)) = (slot.proxy.take(), &slot.output) {
                copy_into(output, &proxy, false)?;
            }
        }
        Ok(())
    }

    /// Moves an output out.
    pub fn take(&mut self, i: usize) -> Result<Tensor> {
        self.slots.get_mut(i).and_then(|slot| slot.output.take()).ok_or_else(|| unset(i))
    }

    fn set_output<I: SizeInt>(
        &mut self,
        i: usize,
        sizes: &[I],
        strides: &[I],
        options: TensorOptions,
    ) -> Result<()> {
        let count = self.slots.len();
        let Some(slot) = self.slots.get_mut(i) else {
            return Err(Error::internal(format!("output {i} of an operator with {count}")));
        };
        match (self.mode, &slot.output) {
            (Mode::Functional, None) => slot.output = Some(empty_strided(sizes, strides, &options)?),
            (Mode::Functional, Some(_)) => internal_assert!(false, "output {i} was set twice"),
            (Mode::Out, Some(out)) => {
                resize_out(slot.proxy.as_ref().unwrap_or(out), sizes, strides, &options)?
            }
            (Mode::Inplace, Some(self_)) => check_inplace(self_, sizes, &options)?,
            (Mode::Out | Mode::Inplace, None) => return Err(unset(i)),
        }
        Ok(())
    }
}

#[cold]
fn unset(i: usize) -> Error {
    Error::internal(format!("output {i} was not set by the operator's meta function, or was taken"))
}

/// Checks a given output and gives it the wanted size.
fn resize_out<I: SizeInt>(out: &Tensor, sizes: &[I], strides: &[I], options: &TensorOptions) -> Result<()> {
    let (dtype, device) = (options.dtype_or_default(), options.device_or_default());
    check!(
        dtype == out.dtype(),
        "Expected out tensor to have dtype {}, but got {} instead",
        type_meta_name(dtype),
        type_meta_name(out.dtype())
    );
    check!(
        device == out.device(),
        "Expected out tensor to have device {device}, but got {} instead",
        out.device()
    );
    if resize_output(out, sizes)? && !strides.is_empty() {
        resize_impl(out, sizes, Some(strides))?;
    }
    Ok(())
}

/// Checks that an operator may write its result over its input.
fn check_inplace<I: SizeInt>(self_: &Tensor, sizes: &[I], options: &TensorOptions) -> Result<()> {
    let (dtype, device) = (options.dtype_or_default(), options.device_or_default());
    check!(
        dtype == self_.dtype(),
        "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
        type_meta_name(self_.dtype()),
        type_meta_name(dtype)
    );
    check!(
        device == self_.device(),
        "Bad in-place call: input tensor device {} and output tensor device {device} should match",
        self_.device()
    );
    let same = match I::as_ints(sizes).filter(|_| !self_.has_symbolic_sizes_strides()) {
        Some(sizes) => sizes == self_.sizes()?,
        None => SymInt::expect_same(&self_.sym_sizes(), &I::to_sym_slice(sizes))?,
    };
    check!(
        same,
        "Bad in-place call: input tensor size {:?} and output tensor size {sizes:?} should match",
        self_.sym_sizes()
    );
    Ok(())
}

/// The C++ name that some of PyTorch's messages use for a dtype ("long int").
pub fn type_meta_name(dtype: ScalarType) -> &'static str {
    match dtype {
        ScalarType::Bool => "bool",
        ScalarType::Byte => "unsigned char",
        ScalarType::Char => "signed char",
        ScalarType::Short => "short int",
        ScalarType::Int => "int",
        ScalarType::Long => "long int",
        ScalarType::UInt16 => "short unsigned int",
        ScalarType::UInt32 => "unsigned int",
        ScalarType::UInt64 => "long unsigned int",
        ScalarType::Half => "c10::Half",
        ScalarType::BFloat16 => "c10::BFloat16",
        ScalarType::Float => "float",
        ScalarType::Double => "double",
        ScalarType::ComplexHalf => "c10::complex<c10::Half>",
        ScalarType::ComplexFloat => "c10::complex<float>",
        ScalarType::ComplexDouble => "c10::complex<double>",
        other => other.name(),
    }
}
