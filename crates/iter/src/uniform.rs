//! The short way to build the common case: row-major operands of one shape, dtype and device, and perhaps numbers.
//!
//! It gives what the steps in `build` give, in a fraction of the time, and leaves everything else to them.

use c10::{internal_assert, Result, ScalarType, Tensor, TensorOptions};

use crate::cast::{cast_single_element, has_arithmetic};
use crate::config::TensorIteratorConfig;
use crate::iterator::TensorIterator;
use crate::mem_overlap::assert_no_partial_overlap;
use crate::operand::{check_in_storage, InlineElement, OperandInfo};
use crate::structured_outputs::StructuredOutputs;

/// What the row-major inputs have in common.
struct Common<'a> {
    tensor: &'a Tensor,
    sizes: &'a [i64],
    dtype: ScalarType,
}

impl TensorIterator {
    /// Builds the whole iterator and says so, or changes nothing.
    pub(crate) fn set_up_uniform(
        &mut self,
        config: &TensorIteratorConfig<'_>,
        outs: &mut StructuredOutputs,
    ) -> Result<bool> {
        let Some(common) = common_of(config)? else { return Ok(false) };
        let out_dtype = config.static_dtype.unwrap_or(common.dtype);
        for i in 0..outs.len() {
            if let Some(output) = outs.maybe_get_output(i) {
                if !common.fits(output)? {
                    return Ok(false);
                }
            }
        }
        // From here on it succeeds or fails like the steps in `build`.
        let device = common.tensor.device();
        let element_size = common.dtype.item_size() as i64;
        self.common_dtype = Some(common.dtype);
        self.common_device = device;
        self.is_meta = device.is_meta();
        self.numel = common.tensor.numel()? as usize;
        self.shape.push(self.numel as i64);
        self.noutputs = outs.len();
        let walked = !self.is_meta && self.numel != 0;
        for i in 0..outs.len() {
            // A given output has this size, dtype and device already, so there is nothing to tell `outs`.
            if let Some(output) = outs.maybe_get_output(i) {
                if config.check_mem_overlap {
                    for input in config.inputs.iter().filter(|input| !input.is_same(output)) {
                        assert_no_partial_overlap(output, input)?;
                    }
                }
            } else {
                let options = TensorOptions::new().dtype(out_dtype).device(device);
                outs.set_output_raw_strided(i, common.sizes, &[], options)?;
            }
            let output = outs.output(i)?.clone();
            let stride = output.item_size() as i64;
            self.push_operand(output, true, walked, stride, None)?;
        }
        for &input in &config.inputs {
            let dtype = input.dtype();
            let stride = if input.dim() == 0 { 0 } else { element_size };
            if dtype == common.dtype {
                self.push_operand(input.clone(), false, walked, stride, None)?;
            } else {
                check_in_storage(input, None)?;
                // SAFETY: an input of another dtype is a number (`takes_number`), and was just checked.
                let inline = unsafe { cast_single_element(input, common.dtype) };
                internal_assert!(
                    inline.is_some(),
                    "{}: no cast of {dtype} to {}",
                    self.op_name,
                    common.dtype
                );
                self.push_operand(input.clone(), false, walked, stride, inline)?;
            }
        }
        Ok(true)
    }

    fn push_operand(
        &mut self,
        tensor: Tensor,
        is_output: bool,
        walked: bool,
        stride: i64,
        inline: Option<InlineElement>,
    ) -> Result<()> {
        let mut data = std::ptr::null_mut();
        if walked && inline.is_none() {
            data = self.checked_data(&tensor, is_output, None)?;
        }
        self.operands.push(OperandInfo::new(Some(tensor), is_output));
        if let Some(op) = self.operands.last_mut() {
            op.data = data;
            op.stride_bytes.push(stride);
            if inline.is_some() {
                op.inline = inline;
                op.current_dtype = self.common_dtype;
                op.target_dtype = self.common_dtype;
            }
        }
        Ok(())
    }
}

/// The common shape, dtype and device of the inputs, if this is the common case.
fn common_of<'a>(config: &TensorIteratorConfig<'a>) -> Result<Option<Common<'a>>> {
    let plain = !config.is_reduction && config.static_shape.is_none() && config.static_device.is_none();
    let Some(&tensor) = config.inputs.iter().find(|input| input.dim() > 0) else { return Ok(None) };
    let dtype = tensor.dtype();
    if !plain
        || !tensor.is_contiguous()
        || (config.promote_integer_inputs_to_float && dtype.is_integral(true))
    {
        return Ok(None);
    }
    let common = Common { tensor, sizes: tensor.sizes()?, dtype };
    let mut numbers = false;
    for &input in &config.inputs {
        if input.is_same(tensor) {
            continue;
        }
        if input.dim() == 0 {
            numbers = true;
            if !common.takes_number(input, config) {
                return Ok(None);
            }
        } else if !common.fits(input)? {
            return Ok(None);
        }
    }
    // Next to a number, the strides of the first tensor decide the output's, also along dimensions of size 1 whose
    // strides a row-major tensor may have chosen freely.
    if numbers && !has_canonical_strides(common.sizes, tensor.strides()?) {
        return Ok(None);
    }
    Ok(Some(common))
}

impl Common<'_> {
    /// Whether a tensor walks like the common one.
    fn fits(&self, other: &Tensor) -> Result<bool> {
        Ok(other.dtype() == self.dtype
            && other.is_contiguous()
            && *other.sizes()? == *self.sizes
            && other.device() == self.tensor.device())
    }

    /// Whether a zero-dimensional input repeats along the common shape without changing the dtype: its category is
    /// not above the tensors'.
    fn takes_number(&self, number: &Tensor, config: &TensorIteratorConfig<'_>) -> bool {
        let (own, given) = (self.dtype, number.dtype());
        let promotes = config.promote_inputs_to_common_dtype
            && has_arithmetic(own)
            && has_arithmetic(given)
            && given.category() <= own.category();
        self.tensor.device().is_cpu() && number.device().is_cpu() && (given == own || promotes)
    }
}

fn has_canonical_strides(sizes: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1_i64;
    sizes.iter().zip(strides).rev().all(|(&size, &stride)| {
        let canonical = stride == expected;
        expected = expected.saturating_mul(size.max(1));
        canonical
    })
}
