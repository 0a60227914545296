//! The build step that settles dtypes and devices: checks, the common dtype, and casts to and from it.

use c10::{can_cast, check, get_default_dtype, internal_assert, Device, Result, ScalarType};

use crate::cast::{cast_single_element, to_dtype};
use crate::config::TensorIteratorConfig;
use crate::empty::empty_like_dtype;
use crate::iterator::TensorIterator;
use crate::operand::check_in_storage;
use crate::type_promotion::ResultTypeState;

impl TensorIterator {
    /// Sets the common dtype and device, the dtypes of undefined outputs, and makes the casts.
    pub(crate) fn compute_types(&mut self, config: &TensorIteratorConfig<'_>) -> Result<()> {
        let seen = self.survey_types(config)?;
        self.common_device = seen.common_device;
        self.common_dtype = seen.first_input_dtype;

        if config.check_all_same_dtype && !seen.all_same {
            for op in self.operands.iter().filter(|op| op.tensor.is_some()) {
                check!(
                    op.current_dtype == self.common_dtype,
                    "{}Found dtype {} but expected {}",
                    prefix(self.op_name),
                    op.dtype(),
                    self.common_dtype.unwrap_or(op.dtype())
                );
            }
        }
        let promotes = config.promote_inputs_to_common_dtype;
        internal_assert!(
            promotes
                || !seen.input_dtypes_differ
                || !(seen.undefined_outputs
                    || config.enforce_safe_casting_to_output
                    || config.cast_common_dtype_to_outputs),
            "{}: inputs of different dtypes without promotion",
            self.op_name
        );
        if promotes && (seen.input_dtypes_differ || self.all_ops_are_scalars) {
            self.common_dtype = self.compute_common_dtype()?;
        } else if seen.input_dtypes_differ {
            self.common_dtype = None;
        }
        if config.promote_integer_inputs_to_float
            && self.common_dtype.is_some_and(|dtype| dtype.is_integral(true))
        {
            self.common_dtype = Some(get_default_dtype());
        }
        self.settle_operands(config)
    }

    fn survey_types(&mut self, config: &TensorIteratorConfig<'_>) -> Result<Survey> {
        let mut seen = Survey {
            common_device: Device::from(c10::DeviceType::CPU),
            first_input_dtype: None,
            input_dtypes_differ: false,
            undefined_outputs: false,
            all_same: true,
        };
        let mut first_output_dtype = None;
        for op in &mut self.operands {
            let Some(dtype) = op.current_dtype else {
                op.target_dtype = config.static_dtype;
                op.device = config.static_device;
                seen.undefined_outputs |= op.target_dtype.is_none();
                continue;
            };
            if let Some(device) = op.device.filter(|device| !device.is_cpu()) {
                if seen.common_device.is_cpu() {
                    seen.common_device = device;
                }
            }
            let first = if op.is_output { &mut first_output_dtype } else { &mut seen.first_input_dtype };
            let differs = *first.get_or_insert(dtype) != dtype;
            seen.all_same &= !differs;
            seen.input_dtypes_differ |= differs && !op.is_output;
        }
        if let (Some(output), Some(input)) = (first_output_dtype, seen.first_input_dtype) {
            seen.all_same &= output == input;
        }
        // Without inputs (fill), the output's dtype is the dtype of the computation.
        if self.ninputs() == 0 {
            seen.first_input_dtype = first_output_dtype.or(config.static_dtype);
        }
        Ok(seen)
    }

    /// What the inputs promote to.
    fn compute_common_dtype(&self) -> Result<Option<ScalarType>> {
        let mut state = ResultTypeState::default();
        for op in &self.operands[self.noutputs..] {
            if let Some(tensor) = &op.tensor {
                state.update(tensor)?;
            }
        }
        state.result()
    }

    fn settle_operands(&mut self, config: &TensorIteratorConfig<'_>) -> Result<()> {
        let common_device = self.common_device;
        let common_dtype = self.common_dtype;
        let mut cpu_scalars = 0;
        for op in &mut self.operands {
            op.target_dtype = op.target_dtype.or(common_dtype);
            let device = *op.device.get_or_insert(common_device);
            let Some(tensor) = &op.tensor else {
                internal_assert!(
                    op.target_dtype.is_some(),
                    "{}: an undefined output needs a common or declared dtype",
                    self.op_name
                );
                continue;
            };
            if config.check_all_same_device && device != common_device {
                let cpu_scalar =
                    config.allow_cpu_scalars && !op.is_output && device.is_cpu() && tensor.dim() == 0;
                check!(
                    cpu_scalar,
                    "{}Expected all tensors to be on the same device, but found at least two devices, \
                     {common_device} and {device}!",
                    prefix(self.op_name)
                );
                cpu_scalars += 1;
                check!(
                    cpu_scalars <= 1 || common_device.is_meta(),
                    "{}Trying to pass too many CPU scalars to non-CPU kernel!",
                    prefix(self.op_name)
                );
            }
            let (Some(common), Some(current)) = (common_dtype, op.current_dtype) else { continue };
            if current == common {
                continue;
            }
            if op.is_output {
                if config.enforce_safe_casting_to_output {
                    check!(
                        can_cast(common, current),
                        "result type {common} can't be cast to the desired output type {current}"
                    );
                }
                // Other devices' kernels convert while they load and store; without data there is nothing to cast.
                if config.cast_common_dtype_to_outputs && common_device.is_cpu() {
                    op.is_cast_output = true;
                    op.current_dtype = Some(common);
                    op.target_dtype = Some(common);
                    if !op.will_resize {
                        let temporary = empty_like_dtype(tensor, common)?;
                        op.original = op.tensor.replace(temporary);
                    }
                }
            } else if config.promote_inputs_to_common_dtype && common_device.is_cpu() {
                op.target_dtype = Some(common);
                op.current_dtype = Some(common);
                if tensor.numel()? == 1 {
                    check_in_storage(tensor, None)?;
                    // SAFETY: one element, just checked.
                    op.inline = unsafe { cast_single_element(tensor, common) };
                    if op.inline.is_some() {
                        continue;
                    }
                }
                let temporary = to_dtype(tensor, common)?;
                op.original = op.tensor.replace(temporary);
            }
        }
        Ok(())
    }
}

/// What the operands look like before anything is decided.
struct Survey {
    /// The first device that is not the CPU, else the CPU.
    common_device: Device,
    first_input_dtype: Option<ScalarType>,
    input_dtypes_differ: bool,
    undefined_outputs: bool,
    /// Whether all given operands have one dtype.
    all_same: bool,
}

/// `"add(): "`, or nothing for an iterator without a name.
pub(crate) fn prefix(op_name: &str) -> String {
    if op_name.is_empty() {
        String::new()
    } else {
        format!("{op_name}(): ")
    }
}
