//! `nll_loss`.

use c10::{check, check_index, Element, Result, ScalarType, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};
use parking_lot::Mutex;

use crate::address::{byte_stride, const_data_ptr, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        nll_loss_forward_kernel: fn(&Tensor, &Tensor, Option<&Tensor>, i64, i64, &[Tensor]);
        nll_loss_backward_kernel: fn(&Tensor, &Tensor, Option<&Tensor>, i64, i64, &Tensor, &[Tensor]);
    }
}

const NONE: i64 = 0;
const MEAN: i64 = 1;

/// Samples per piece of a parallel loop.
const PIECE: usize = GRAIN_SIZE / 4;

/// A vector of elements, strides in bytes; one element stands for a vector without dimensions.
#[derive(Clone, Copy)]
struct Vector {
    data: Address,
    stride: i64,
}

impl Vector {
    /// The only dimension of a tensor of `T`.
    fn of<T: Element>(tensor: &Tensor) -> Result<Vector> {
        check!(tensor.dim() <= 1, "nll_loss: expected a vector, got a tensor of sizes {:?}", tensor.sizes()?);
        Vector::along::<T>(tensor, 0)
    }

    fn along<T: Element>(tensor: &Tensor, dim: i64) -> Result<Vector> {
        let stride = if tensor.dim() == 0 { 0 } else { byte_stride(tensor.stride(dim)?, tensor.item_size()) };
        Ok(Vector { data: Address(const_data_ptr::<T>(tensor)?.cast_mut().cast()), stride })
    }

    fn at(self, i: usize) -> Address {
        self.data.offset(self.stride * i as i64)
    }
}

/// A batch of samples: a single one is a batch of one.
#[derive(Clone, Copy)]
struct Samples {
    count: usize,
    classes: usize,
    /// Over samples.
    rows: Vector,
    /// Bytes between classes.
    class_stride: i64,
    target: Vector,
    target_is_byte: bool,
    ignore_index: i64,
}

impl Samples {
    /// `scores` is the input, or its gradient.
    fn new<T: Element>(scores: &Tensor, target: &Tensor, ignore_index: i64) -> Result<Samples> {
        let batched = scores.dim() == 2;
        let target_is_byte = target.dtype() == ScalarType::Byte;
        let rows = Vector::along::<T>(scores, 0)?;
        Ok(Samples {
            count: if batched { scores.size(0)? as usize } else { 1 },
            classes: scores.size(-1)? as usize,
            rows: Vector { stride: if batched { rows.stride } else { 0 }, ..rows },
            class_stride: scores.stride(-1)? * scores.item_size() as i64,
            target: if target_is_byte { Vector::of::<u8>(target)? } else { Vector::of::<i64>(target)? },
            target_is_byte,
            ignore_index,
        })
    }

    /// The class of a sample: `None` if it is to be ignored.
    #[inline(always)]
    fn class(&self, i: usize) -> Result<Option<usize>> {
        // SAFETY: the target has `count` elements of one of the two dtypes that the meta function admits.
        let class = unsafe {
            if self.target_is_byte {
                i64::from(self.target.at(i).read::<u8>())
            } else {
                self.target.at(i).read::<i64>()
            }
        };
        if class == self.ignore_index {
            return Ok(None);
        }
        check_index!(class >= 0 && (class as usize) < self.classes, "Target {class} is out of bounds.");
        Ok(Some(class as usize))
    }

    /// Where a sample's score of a class lies.
    #[inline(always)]
    fn score(&self, i: usize, class: usize) -> Address {
        self.rows.at(i).offset(self.class_stride * class as i64)
    }
}

/// The weight of a class: 1 without weights.
#[inline(always)]
fn weight_of<T: Stored<Raw = T>>(weight: Option<Vector>, class: usize) -> f64 {
    // SAFETY: there is a weight per class, of the input's dtype.
    weight.map_or(1.0, |weight| unsafe { weight.at(class).read::<T>() }.to_f64())
}

/// `outs`: the loss (one per sample without reduction), and the sum of the weights that took part.
fn nll_loss_forward_kernel(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: i64,
    outs: &[Tensor],
) -> Result<()> {
    dispatch!(input.dtype(), "nll_loss_out_frame", FLOATING_AND_HALF, |T| {
        let samples = Samples::new::<T>(input, target, ignore_index)?;
        let weight = weight.map(Vector::of::<T>).transpose()?;
        if reduction == NONE && input.dim() == 2 {
            each::<T>(samples, weight, Vector::of::<T>(&outs[0])?)?;
            return write_scalar::<T>(&outs[1], 0.0);
        }
        let (sum, total) = reduce::<T>(samples, weight)?;
        write_scalar::<T>(&outs[0], if reduction == MEAN { sum / total } else { sum })?;
        write_scalar::<T>(&outs[1], total)
    })
}

fn write_scalar<T: Element>(out: &Tensor, value: f64) -> Result<()> {
    // SAFETY: an output of one element of the input's dtype.
    unsafe { Address(mutable_data_ptr::<T>(out)?.cast()).write(T::from_f64(value)) };
    Ok(())
}

fn each<T: Stored<Raw = T>>(samples: Samples, weight: Option<Vector>, out: Vector) -> Result<()> {
    parallel_for_result(0, samples.count, PIECE, &|begin, end| {
        for i in begin..end {
            let loss = match samples.class(i)? {
                // SAFETY: a class within the input's bounds.
                Some(class) => {
                    // SAFETY: the sample exists, and its class was checked against the number of classes.
                    unsafe { samples.score(i, class).read::<T>() }.to_f64() * -weight_of::<T>(weight, class)
                }
                None => 0.0,
            };
            // SAFETY: element `i` of the output, which has one per sample.
            unsafe { out.at(i).write(T::from_f64(loss)) };
        }
        Ok(())
    })
}

/// The sum of losses and the sum of weights, both kept in double precision: the same for any number of threads.
fn reduce<T: Stored<Raw = T>>(samples: Samples, weight: Option<Vector>) -> Result<(f64, f64)> {
    let partial = c10::try_from_fn(samples.count.div_ceil(PIECE), || Mutex::new((0.0, 0.0)))?;
    parallel_for_result(0, samples.count, PIECE, &|begin, end| {
        let (mut sum, mut total) = (0.0, 0.0);
        for i in begin..end {
            if let Some(class) = samples.class(i)? {
                let weight = weight_of::<T>(weight, class);
                // SAFETY: a class within the input's bounds.
                sum -= unsafe { samples.score(i, class).read::<T>() }.to_f64() * weight;
                total += weight;
            }
        }
        *partial[begin / PIECE].lock() = (sum, total);
        Ok(())
    })?;
    Ok(partial.into_iter().map(Mutex::into_inner).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d)))
}

/// `outs[0]`: zero but for each sample's target class.
fn nll_loss_backward_kernel(
    grad_output: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: i64,
    total_weight: &Tensor,
    outs: &[Tensor],
) -> Result<()> {
    let grad_input = &outs[0];
    dispatch!(grad_input.dtype(), "nll_loss_backward_out_frame", FLOATING_AND_HALF, |T| {
        let samples = Samples::new::<T>(grad_input, target, ignore_index)?;
        let weight = weight.map(Vector::of::<T>).transpose()?;
        let per_sample = reduction == NONE && grad_input.dim() == 2;
        let grad = Vector::of::<T>(grad_output)?;
        let grad = Vector { stride: if per_sample { grad.stride } else { 0 }, ..grad };
        // SAFETY: one element of the input's dtype.
        let total = unsafe { const_data_ptr::<T>(total_weight)?.read_unaligned() }.to_f64();
        let divisor = if reduction == MEAN { total } else { 1.0 };
        let piece = (GRAIN_SIZE / samples.classes.max(1)).max(1);
        parallel_for_result(0, samples.count, piece, &|begin, end| {
            for i in begin..end {
                for class in 0..samples.classes {
                    // SAFETY: indices within the output, whose rows belong to one piece each.
                    unsafe { samples.score(i, class).write(<T as Element>::ZERO) };
                }
                if let Some(class) = samples.class(i)? {
                    // SAFETY: an element of the incoming gradient: one per sample, or one for all.
                    let grad = unsafe { grad.at(i).read::<T>() }.to_f64();
                    let value = -(grad / divisor) * weight_of::<T>(weight, class);
                    // SAFETY: a class within bounds.
                    unsafe { samples.score(i, class).write(<T as Element>::from_f64(value)) };
                }
            }
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tensor::{element, elements, kernel, layouts, set_elements, tensor, zeros};

    type Forward = fn(&Tensor, &Tensor, Option<&Tensor>, i64, i64, &[Tensor]) -> Result<()>;
    type Backward = fn(&Tensor, &Tensor, Option<&Tensor>, i64, i64, &Tensor, &[Tensor]) -> Result<()>;

    fn forward(
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<(Tensor, f32)> {
        let sizes: &[i64] = if reduction == NONE && input.dim() == 2 { &[input.size(0)?] } else { &[] };
        let outs = [zeros(sizes, ScalarType::Float), zeros(&[], ScalarType::Float)];
        kernel::<Forward>("nll_loss_forward_kernel")(input, target, weight, reduction, -100, &outs)?;
        Ok((outs[0].clone(), element(&outs[1], 0)))
    }

    /// Recorded from PyTorch 2.13.
    #[test]
    fn reductions_weights_and_ignored_targets() {
        let target = tensor(&[4], &[0i64, 2, 1, -100]);
        let weight = tensor(&[3], &[1f32, 2.0, 3.0]);
        for (layout, input) in
            layouts(&[4, 3], ScalarType::Float).into_iter().filter(|(name, _)| *name != "expanded")
        {
            set_elements(&input, |i| i as f32);
            let (loss, total) = forward(&input, &target, Some(&weight), NONE).unwrap();
            assert_eq!((elements::<f32>(&loss), total), (vec![-0.0, -15.0, -14.0, 0.0], 0.0), "{layout}");
            let (loss, total) = forward(&input, &target, Some(&weight), MEAN).unwrap();
            assert_eq!((element::<f32>(&loss, 0), total), (-29.0 / 6.0, 6.0), "{layout}");
            let (loss, total) = forward(&input, &target, None, 2).unwrap();
            assert_eq!((element::<f32>(&loss, 0), total), (-12.0, 3.0), "{layout}");
        }
        let input = tensor(&[3], &[0f32, 1.0, 2.0]);
        let (loss, total) = forward(&input, &tensor(&[], &[1u8]), Some(&weight), MEAN).unwrap();
        assert_eq!((element::<f32>(&loss, 0), total), (-1.0, 2.0));
        let (loss, total) = forward(&input, &tensor(&[], &[-100i64]), Some(&weight), MEAN).unwrap();
        assert!(element::<f32>(&loss, 0).is_nan() && total == 0.0);
        let (loss, _) =
            forward(&zeros(&[0, 3], ScalarType::Float), &zeros(&[0], ScalarType::Long), None, MEAN).unwrap();
        assert!(element::<f32>(&loss, 0).is_nan());
    }

    #[test]
    fn a_target_out_of_bounds_is_an_index_error() {
        for reduction in [NONE, MEAN, 2] {
            let target = tensor(&[2], &[0i64, 5]);
            let error = forward(&zeros(&[2, 3], ScalarType::Float), &target, None, reduction).unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (c10::ErrorKind::Index, "Target 5 is out of bounds.")
            );
        }
    }

    #[test]
    fn the_gradient_is_at_the_targets() {
        let target = tensor(&[4], &[0i64, 2, 1, -100]);
        let weight = tensor(&[3], &[1f32, 2.0, 3.0]);
        let total = tensor(&[], &[6f32]);
        let backward = kernel::<Backward>("nll_loss_backward_kernel");
        for (layout, out) in
            layouts(&[4, 3], ScalarType::Float).into_iter().filter(|(name, _)| *name != "expanded")
        {
            set_elements(&out, |_| f32::NAN);
            let one = tensor(&[], &[1f32]);
            backward(&one, &target, Some(&weight), MEAN, -100, &total, &[out.clone()]).unwrap();
            let sixth = 1.0 / 6.0;
            let expected = [-sixth, 0.0, 0.0, 0.0, 0.0, -3.0 * sixth, 0.0, -2.0 * sixth, 0.0, 0.0, 0.0, 0.0];
            for (got, expected) in elements::<f32>(&out).into_iter().zip(expected) {
                assert!((got - expected).abs() < 1e-7, "{layout}: {got} {expected}");
            }
            let each = tensor(&[4], &[1f32, 2.0, 3.0, 4.0]);
            backward(&each, &target, None, NONE, -100, &total, &[out.clone()]).unwrap();
            assert_eq!(
                elements::<f32>(&out),
                [-1.0, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0, -3.0, 0.0, 0.0, 0.0, 0.0],
                "{layout}"
            );
        }
    }
}
