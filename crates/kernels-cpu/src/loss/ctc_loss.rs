//! `_ctc_loss`: the probability of a labelling, summed over the paths that spell it.
//!
//! Graves, Fernández, Gomez, Schmidhuber: Connectionist Temporal Classification (ICML 2006). A path through the labels
//! `blank, l1, blank, l2, …, blank` stays or moves on by one, or by two from a label to a different one. `alpha[t][s]` is
//! the log probability of all beginnings that are at `s` after step `t`; `beta[t][s]` that of all endings from there.

use c10::{check, check_index, Element, Result, ScalarType, Tensor};
use iter::parallel::parallel_for_result;
use iter::to_dtype;

use crate::address::{byte_stride, const_data_ptr, mutable_data_ptr, Address};
use crate::dense::{deliver, dense, writable};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        ctc_loss_kernel: fn(&Tensor, &Tensor, &[i64], &[i64], i64, &[Tensor]);
        ctc_loss_backward_kernel: fn(&Tensor, &Tensor, &Tensor, &[i64], &[i64], &Tensor, &Tensor, i64, bool, &[Tensor]);
    }
}

const NEVER: f64 = f64::NEG_INFINITY;

/// `log(sum(exp(x)))`
fn log_sum_exp(terms: &[f64]) -> f64 {
    let greatest = terms.iter().copied().fold(NEVER, f64::max);
    if greatest == NEVER {
        return NEVER;
    }
    greatest + terms.iter().map(|x| (x - greatest).exp()).sum::<f64>().ln()
}

/// Log probabilities of a batch of sequences, and their labels, all within bounds.
struct Batch<'a> {
    scores: Address,
    /// Of steps, sequences and classes, in bytes.
    strides: [i64; 3],
    steps: usize,
    classes: usize,
    labels: Vec<i64>,
    /// Where in `labels` each sequence begins.
    starts: Vec<usize>,
    input_lengths: &'a [i64],
    target_lengths: &'a [i64],
    blank: i64,
}

impl<'a> Batch<'a> {
    fn new<T: Element>(
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &'a [i64],
        target_lengths: &'a [i64],
        blank: i64,
    ) -> Result<Batch<'a>> {
        let (&[steps, sequences, classes], &[of_step, of_sequence, of_class]) =
            (log_probs.sizes()?, log_probs.strides()?)
        else {
            c10::bail!(Internal, "ctc_loss: expected log_probs of 3 dimensions, got {}", log_probs.dim())
        };
        let item_size = log_probs.item_size();
        let targets = dense(&to_dtype(targets, ScalarType::Long)?)?;
        let n = targets.numel()? as usize;
        let from = const_data_ptr::<i64>(&targets)?;
        let mut labels = c10::try_with_capacity(n)?;
        // SAFETY: a dense tensor of `n` int64.
        labels.extend((0..n).map(|i| unsafe { from.add(i).read_unaligned() }));
        let padded = (targets.dim() == 2).then(|| targets.size(1)).transpose()?;
        let mut starts = c10::try_with_capacity(target_lengths.len())?;
        let mut next = 0;
        for (i, (&length, &target)) in input_lengths.iter().zip(target_lengths).enumerate() {
            let start = padded.map_or(next, |width| i as i64 * width);
            next = start.saturating_add(target);
            check!(
                (0..=steps).contains(&length) && target >= 0 && next <= n as i64,
                "ctc_loss: lengths {length} and {target} of sequence {i} are out of bounds"
            );
            starts.push(start as usize);
            for &label in &labels[start as usize..next as usize] {
                check_index!((0..classes).contains(&label), "ctc_loss: Target {label} is out of bounds.");
            }
        }
        check!((0..classes).contains(&blank), "blank must be in label range");
        check!(starts.len() as i64 == sequences, "input_lengths must be of size batch_size");
        Ok(Batch {
            scores: Address(const_data_ptr::<T>(log_probs)?.cast_mut().cast()),
            strides: [of_step, of_sequence, of_class].map(|stride| byte_stride(stride, item_size)),
            steps: steps as usize,
            classes: classes as usize,
            labels,
            starts,
            input_lengths,
            target_lengths,
            blank,
        })
    }

    fn path(&self, sequence: usize) -> Path<'_> {
        let start = self.starts[sequence];
        Path {
            labels: &self.labels[start..start + self.target_lengths[sequence] as usize],
            blank: self.blank,
        }
    }

    #[inline]
    fn score<T: Stored<Raw = T>>(&self, step: usize, sequence: usize, class: i64) -> f64 {
        let [of_step, of_sequence, of_class] = self.strides;
        let offset = of_step * step as i64 + of_sequence * sequence as i64 + of_class * class;
        // SAFETY: steps, sequences and classes are those of the tensor: labels were checked against the classes.
        unsafe { self.scores.offset(offset).read::<T>() }.to_f64()
    }
}

/// The labels of one sequence with blanks around them.
struct Path<'a> {
    labels: &'a [i64],
    blank: i64,
}

impl Path<'_> {
    fn len(&self) -> usize {
        2 * self.labels.len() + 1
    }

    fn label(&self, s: usize) -> i64 {
        if s % 2 == 1 {
            self.labels[s / 2]
        } else {
            self.blank
        }
    }

    /// Whether a step may go from `s - 2` to `s`.
    fn skips_to(&self, s: usize) -> bool {
        s >= 2 && self.label(s) != self.label(s - 2)
    }
}

/// `outs`: the negative log likelihood of each sequence, and `alpha`.
fn ctc_loss_kernel(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
    outs: &[Tensor],
) -> Result<()> {
    let results = outs.iter().map(|out| writable(out, log_probs.dtype())).collect::<Result<Vec<_>>>()?;
    let width = results[1].size(2)? as usize;
    dispatch!(log_probs.dtype(), "ctc_loss_cpu", FLOATING, |T| {
        let batch = Batch::new::<T>(log_probs, targets, input_lengths, target_lengths, blank)?;
        let losses = Address(mutable_data_ptr::<T>(&results[0])?.cast());
        let alphas = Address(mutable_data_ptr::<T>(&results[1])?.cast());
        parallel_for_result(0, input_lengths.len(), 1, &|begin, end| {
            for n in begin..end {
                let offset = (n * batch.steps * width * size_of::<T>()) as i64;
                // SAFETY: this sequence's part of the dense output.
                let alpha = unsafe { alphas.offset(offset).slice_mut::<T>(batch.steps * width) };
                alpha.fill(<T as Element>::from_f64(NEVER));
                let loss = -forward::<T>(&batch, n, width, alpha)?;
                // SAFETY: this sequence's loss.
                unsafe { losses.offset((n * size_of::<T>()) as i64).write(<T as Element>::from_f64(loss)) };
            }
            Ok(())
        })
    })?;
    deliver(outs, &results.iter().collect::<Vec<_>>())
}

/// The log likelihood of a sequence. `alpha` has `width` places for each step.
fn forward<T: Stored<Raw = T>>(batch: &Batch<'_>, n: usize, width: usize, alpha: &mut [T]) -> Result<f64> {
    let path = batch.path(n);
    let length = batch.input_lengths[n] as usize;
    if length == 0 {
        return Ok(if path.labels.is_empty() { 0.0 } else { NEVER });
    }
    let mut before = c10::try_from_fn(path.len(), || NEVER)?;
    let mut now = c10::try_from_fn(path.len(), || NEVER)?;
    for t in 0..length {
        for s in 0..path.len() {
            let arrived = if t == 0 {
                if s < 2 {
                    0.0
                } else {
                    NEVER
                }
            } else {
                log_sum_exp(&[
                    before[s],
                    if s >= 1 { before[s - 1] } else { NEVER },
                    if path.skips_to(s) { before[s - 2] } else { NEVER },
                ])
            };
            now[s] = arrived + batch.score::<T>(t, n, path.label(s));
        }
        for (alpha, &value) in alpha[t * width..][..width].iter_mut().zip(&now) {
            *alpha = T::from_f64(value);
        }
        std::mem::swap(&mut before, &mut now);
    }
    Ok(log_sum_exp(&before[path.len().saturating_sub(2)..]))
}

/// `outs[0]`: the gradient with respect to scores that came out of `log_softmax`.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn ctc_loss_backward_kernel(
    grad: &Tensor,
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    neg_log_likelihood: &Tensor,
    log_alpha: &Tensor,
    blank: i64,
    zero_infinity: bool,
    outs: &[Tensor],
) -> Result<()> {
    let result = writable(&outs[0], log_probs.dtype())?;
    let (grad, losses, alphas) = (dense(grad)?, dense(neg_log_likelihood)?, dense(log_alpha)?);
    let width = alphas.size(2)? as usize;
    dispatch!(log_probs.dtype(), "ctc_loss_backward_cpu", FLOATING, |T| {
        let batch = Batch::new::<T>(log_probs, targets, input_lengths, target_lengths, blank)?;
        let [grad, losses, alphas] = [
            Address(const_data_ptr::<T>(&grad)?.cast_mut().cast()),
            Address(const_data_ptr::<T>(&losses)?.cast_mut().cast()),
            Address(const_data_ptr::<T>(&alphas)?.cast_mut().cast()),
        ];
        let out = Address(mutable_data_ptr::<T>(&result)?.cast());
        let (sequences, classes) = (input_lengths.len(), batch.classes);
        parallel_for_result(0, sequences, 1, &|begin, end| {
            for n in begin..end {
                let at = (n * size_of::<T>()) as i64;
                // SAFETY: one element of each per sequence.
                let (grad, loss) = unsafe { (grad.offset(at).read::<T>(), losses.offset(at).read::<T>()) };
                let rows = |t: usize| {
                    let row = out.offset(((t * sequences + n) * classes * size_of::<T>()) as i64);
                    // SAFETY: this sequence's row of a step of the dense output.
                    unsafe { row.slice_mut::<T>(classes) }
                };
                let at = (n * batch.steps * width * size_of::<T>()) as i64;
                // SAFETY: this sequence's part of a dense tensor, which nobody writes to.
                let alpha = unsafe { alphas.offset(at).slice::<T>(batch.steps * width) };
                backward::<T>(&batch, n, grad.to_f64(), loss.to_f64(), zero_infinity, (width, alpha), &rows)?;
            }
            Ok(())
        })
    })?;
    deliver(outs, &[&result])
}

/// The gradient of one sequence, of which `rows` gives the row of each step.
fn backward<'a, T: Stored<Raw = T> + 'a>(
    batch: &Batch<'_>,
    n: usize,
    grad: f64,
    loss: f64,
    zero_infinity: bool,
    (width, alpha): (usize, &[T]),
    rows: &dyn Fn(usize) -> &'a mut [T],
) -> Result<()> {
    let path = batch.path(n);
    let length = batch.input_lengths[n] as usize;
    let nothing = zero_infinity && loss == f64::INFINITY;
    for t in if nothing { 0 } else { length }..batch.steps {
        rows(t).fill(<T as Element>::ZERO);
    }
    if nothing {
        return Ok(());
    }
    let mut after = c10::try_from_fn(path.len(), || NEVER)?;
    let mut now = c10::try_from_fn(path.len(), || NEVER)?;
    let mut through = c10::try_from_fn(batch.classes, || NEVER)?;
    for t in (0..length).rev() {
        through.fill(NEVER);
        for s in 0..path.len() {
            let left = if t + 1 == length {
                if s + 2 >= path.len() {
                    0.0
                } else {
                    NEVER
                }
            } else {
                log_sum_exp(&[
                    after[s],
                    if s + 1 < path.len() { after[s + 1] } else { NEVER },
                    if s + 2 < path.len() && path.skips_to(s + 2) { after[s + 2] } else { NEVER },
                ])
            };
            let label = path.label(s);
            now[s] = left + batch.score::<T>(t, n, label);
            let through = &mut through[label as usize];
            *through = log_sum_exp(&[*through, alpha[t * width + s].to_f64() + now[s]]);
        }
        std::mem::swap(&mut after, &mut now);
        for (class, (to, through)) in rows(t).iter_mut().zip(&through).enumerate() {
            let score = batch.score::<T>(t, n, class as i64);
            *to = T::from_f64((score.exp() - (through + loss - score).exp()) * grad);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tensor::{elements, kernel, layouts, set_elements, tensor, zeros};

    type Forward = fn(&Tensor, &Tensor, &[i64], &[i64], i64, &[Tensor]) -> Result<()>;

    /// What a path spells: repeated classes once, without blanks.
    fn spelled(path: &[usize], blank: usize) -> Vec<i64> {
        let mut classes = path.to_vec();
        classes.dedup();
        classes.into_iter().filter(|&class| class != blank).map(|class| class as i64).collect()
    }

    #[test]
    fn the_loss_counts_every_path_that_spells_the_labels() {
        let run: Forward = kernel("ctc_loss_kernel");
        let (steps, classes, blank) = (5_usize, 3_usize, 1_i64);
        let labels = [[0_i64, 2], [2, 2]];
        for (layout, scores) in layouts(&[steps as i64, 2, classes as i64], ScalarType::Double) {
            set_elements::<f64>(&scores, |i| -((i * 7 % 11) as f64) / 5.0 - 0.1);
            let values = elements::<f64>(&scores);
            for lengths in [[5_i64, 4], [3, 5]] {
                for targets in [[2_i64, 2], [1, 0]] {
                    let outs = [zeros(&[2], ScalarType::Double), zeros(&[2, 5, 5], ScalarType::Double)];
                    let flat = tensor(&[2, 2], &labels.concat());
                    run(&scores, &flat, &lengths, &targets, blank, &outs).unwrap();
                    for n in 0..2 {
                        let wanted = &labels[n][..targets[n] as usize];
                        let length = lengths[n] as usize;
                        let mut probability = 0.0;
                        for code in 0..classes.pow(length as u32) {
                            let path: Vec<usize> =
                                (0..length).map(|t| code / classes.pow(t as u32) % classes).collect();
                            if spelled(&path, blank as usize) == wanted {
                                let at = |(t, &class): (usize, &usize)| values[(t * 2 + n) * classes + class];
                                probability += path.iter().enumerate().map(at).sum::<f64>().exp();
                            }
                        }
                        let got = elements::<f64>(&outs[0])[n];
                        let expected = -probability.ln();
                        assert!(
                            (got - expected).abs() < 1e-10 || got == expected,
                            "{layout}: {got} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn labels_and_lengths_out_of_bounds_are_errors() {
        let run: Forward = kernel("ctc_loss_kernel");
        let scores = zeros(&[4, 1, 3], ScalarType::Float);
        for (labels, input, target, blank) in [
            ([1_i64, 3], 4, 2, 0),
            ([1, -1], 4, 2, 0),
            ([1, 2], 5, 2, 0),
            ([1, 2], -1, 2, 0),
            ([1, 2], 4, i64::MAX, 0),
            ([1, 2], 4, 2, 3),
        ] {
            let outs = [zeros(&[1], ScalarType::Float), zeros(&[1, 4, 5], ScalarType::Float)];
            assert!(run(&scores, &tensor(&[1, 2], &labels), &[input], &[target], blank, &outs).is_err());
        }
    }
}
