//! `einsum`: its language, and the contraction of pairs of operands as batched matrix products.

use c10::{bail, check, sym_multiply_integers, Result, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;

/// A dimension of an operand: a letter, or the n-th of the dimensions that an ellipsis stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// What an operand's subscripts are, before the number of dimensions under the ellipsis is known.
struct Subscripts {
    before: Vec<char>,
    after: Vec<char>,
    has_ellipsis: bool,
}

impl Subscripts {
    fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// The labels where the ellipsis covers `covered` of `widest` dimensions: the last ones.
    fn labels(&self, covered: usize, widest: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.before.iter().copied().map(Label::Letter).collect();
        if self.has_ellipsis {
            labels.extend((widest - covered..widest).map(Label::Ellipsis));
        }
        labels.extend(self.after.iter().copied().map(Label::Letter));
        labels
    }
}

fn parse(text: &str, place: &str) -> Result<Subscripts> {
    let mut found = Subscripts { before: Vec::new(), after: Vec::new(), has_ellipsis: false };
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' => {}
            '.' => {
                check!(
                    !found.has_ellipsis && rest.next() == Some('.') && rest.next() == Some('.'),
                    "einsum(): found '.' for {place} that is not part of any ellipsis"
                );
                found.has_ellipsis = true;
            }
            c if c.is_ascii_alphabetic() => {
                if found.has_ellipsis {
                    found.after.push(c);
                } else {
                    found.before.push(c);
                }
            }
            c => bail!(
                Runtime,
                "einsum(): invalid subscript given for {place} in the equation string, subscripts must be in [a-zA-Z], got \
                 '{c}'"
            ),
        }
    }
    Ok(found)
}

/// An operand, with a label for each of its dimensions, all different.
struct Operand {
    tensor: Tensor,
    labels: Vec<Label>,
}

impl Operand {
    /// Takes the diagonal along dimensions with one label.
    fn new(mut tensor: Tensor, mut labels: Vec<Label>, index: usize) -> Result<Operand> {
        let mut first = 0;
        while first < labels.len() {
            let label = labels[first];
            let Some(second) = labels.iter().skip(first + 1).position(|&l| l == label) else {
                first += 1;
                continue;
            };
            let second = first + 1 + second;
            let (a, b) = (tensor.sym_size(first as i64)?, tensor.sym_size(second as i64)?);
            check!(
                a.expect_eq(&b)?,
                "einsum(): subscript {} is repeated for operand {index} but the sizes don't match, {b} != {a}",
                name(label)
            );
            // The diagonal comes last; it takes the place of the first.
            tensor =
                at::movedim_int(&at::diagonal(&tensor, 0, first as i64, second as i64)?, -1, first as i64)?;
            labels.remove(second);
        }
        Ok(Operand { tensor, labels })
    }

    /// The size of a label's dimension, if there is one.
    fn size(&self, label: Label) -> Result<Option<SymInt>> {
        match self.labels.iter().position(|&l| l == label) {
            Some(dim) => self.tensor.sym_size(dim as i64).map(Some),
            None => Ok(None),
        }
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    /// Sums the dimensions of the given labels away.
    fn sum(self, labels: &[Label]) -> Result<Operand> {
        if labels.is_empty() {
            return Ok(self);
        }
        let dims: Vec<i64> =
            (0..self.labels.len()).filter(|&d| labels.contains(&self.labels[d])).map(|d| d as i64).collect();
        let tensor = at::sum_dim_intlist(&self.tensor, Some(&dims), false, None)?;
        Ok(Operand { tensor, labels: self.labels.into_iter().filter(|l| !labels.contains(l)).collect() })
    }

    /// Sums a label's dimension away; one of a single element is dropped, so that small integers keep their dtype.
    fn without(mut self, label: Label) -> Result<Operand> {
        let Some(dim) = self.labels.iter().position(|&l| l == label) else { return Ok(self) };
        if !self.tensor.sym_size(dim as i64)?.is_one()? {
            return self.sum(&[label]);
        }
        self.tensor = at::squeeze_dim(&self.tensor, dim as i64)?;
        self.labels.remove(dim);
        Ok(self)
    }

    /// Dimensions in the order of the labels, one of size 1 for each that it lacks.
    fn arranged(&self, labels: &[Label]) -> Result<Tensor> {
        let order: Vec<i64> =
            labels.iter().filter_map(|l| self.labels.iter().position(|o| o == l)).map(|d| d as i64).collect();
        let mut tensor = at::permute(&self.tensor, &order)?;
        for (dim, &label) in labels.iter().enumerate() {
            if !self.has(label) {
                tensor = at::unsqueeze(&tensor, dim as i64)?;
            }
        }
        Ok(tensor)
    }
}

fn name(label: Label) -> String {
    match label {
        Label::Letter(c) => c.to_string(),
        Label::Ellipsis(_) => "...".to_owned(),
    }
}

/// `aten::einsum`
pub fn einsum(equation: &str, tensors: &[Tensor], path: Option<&[i64]>) -> Result<Tensor> {
    check!(!tensors.is_empty(), "einsum(): must provide at least one operand");
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    check!(
        parts.len() <= tensors.len(),
        "einsum(): more operands were provided in the equation than specified in the arguments"
    );
    check!(
        parts.len() == tensors.len(),
        "einsum(): fewer operands were provided in the equation than specified in the arguments"
    );
    let mut subscripts = Vec::with_capacity(parts.len());
    let mut widest = 0;
    for (i, (part, tensor)) in parts.iter().zip(tensors).enumerate() {
        let parsed = parse(part, &format!("operand {i}"))?;
        let ndim = tensor.dim() as usize;
        check!(
            if parsed.has_ellipsis { parsed.len() <= ndim } else { parsed.len() == ndim },
            "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({ndim}) for \
             operand {i}{}",
            parsed.len(),
            if parsed.has_ellipsis { "" } else { " and no ellipsis was given" }
        );
        if parsed.has_ellipsis {
            widest = widest.max(ndim - parsed.len());
        }
        subscripts.push(parsed);
    }
    let labels: Vec<Vec<Label>> = subscripts
        .iter()
        .zip(tensors)
        .map(|(s, t)| s.labels((t.dim() as usize).saturating_sub(s.len()), widest))
        .collect();
    let output = output_labels(output, &labels, subscripts.iter().any(|s| s.has_ellipsis), widest)?;
    let mut operands = Vec::with_capacity(tensors.len());
    for (i, (tensor, labels)) in tensors.iter().zip(labels).enumerate() {
        operands.push(Operand::new(tensor.clone(), labels, i)?);
    }
    check_sizes(&operands)?;
    let mut step = 0;
    while operands.len() > 1 {
        let (first, second) = next_pair(path, step, operands.len())?;
        step += 1;
        let b = operands.remove(second);
        let a = operands.remove(first);
        let kept = |label: Label| output.contains(&label) || operands.iter().any(|other| other.has(label));
        let joined = contract(a, b, kept)?;
        // Without a path operands are joined from the left; a path counts on new ones at the end.
        if path.is_some() {
            operands.push(joined);
        } else {
            operands.insert(0, joined);
        }
    }
    let Some(last) = operands.pop() else { bail!(Internal, "einsum(): no operand is left") };
    let dropped: Vec<Label> = last.labels.iter().copied().filter(|l| !output.contains(l)).collect();
    last.sum(&dropped)?.arranged(&output)
}

/// The output's labels: as given, or those that occur once, in alphabetical order.
fn output_labels(
    output: Option<&str>,
    inputs: &[Vec<Label>],
    has_ellipsis: bool,
    widest: usize,
) -> Result<Vec<Label>> {
    let occurs = |label: Label| inputs.iter().flatten().filter(|&&l| l == label).count();
    let Some(output) = output else {
        let mut labels: Vec<Label> = inputs.iter().flatten().copied().collect();
        labels.retain(|&label| matches!(label, Label::Ellipsis(_)) || occurs(label) == 1);
        labels.sort_unstable();
        labels.dedup();
        return Ok(labels);
    };
    let parsed = parse(output, "the output")?;
    check!(
        !parsed.has_ellipsis || has_ellipsis || widest == 0,
        "einsum(): ellipsis (...) in the output but not in any of the operands"
    );
    for (i, &c) in parsed.before.iter().chain(&parsed.after).enumerate() {
        check!(
            !parsed.before.iter().chain(&parsed.after).take(i).any(|&other| other == c),
            "einsum(): output subscript {c} appears more than once in the output"
        );
        check!(
            occurs(Label::Letter(c)) > 0,
            "einsum(): output subscript {c} does not appear in the equation for any input operand"
        );
    }
    Ok(parsed.labels(widest, widest))
}

fn check_sizes(operands: &[Operand]) -> Result<()> {
    for (i, operand) in operands.iter().enumerate() {
        for (dim, &label) in operand.labels.iter().enumerate() {
            let size = operand.tensor.sym_size(dim as i64)?;
            for other in &operands[..i] {
                let Some(before) = other.size(label)? else { continue };
                check!(
                    before.is_one()? || size.is_one()? || before.expect_eq(&size)?,
                    "einsum(): subscript {} has size {size} for operand {i} which does not broadcast with previously seen \
                     size {before}",
                    name(label)
                );
            }
        }
    }
    Ok(())
}

fn next_pair(path: Option<&[i64]>, step: usize, left: usize) -> Result<(usize, usize)> {
    let Some(path) = path else { return Ok((0, 1)) };
    let (Some(&a), Some(&b)) = (path.get(2 * step), path.get(2 * step + 1)) else {
        bail!(
            Runtime,
            "einsum(): expected contraction path given in path parameter to have two entries per contraction"
        );
    };
    let (a, b) = (a.min(b), a.max(b));
    check!(
        a >= 0 && a != b && b < left as i64,
        "einsum(): invalid contraction path, ({a}, {b}) with {left} operands left"
    );
    Ok((a as usize, b as usize))
}

/// Multiplies two operands, and sums the dimensions that nothing else needs.
fn contract(a: Operand, b: Operand, kept: impl Fn(Label) -> bool) -> Result<Operand> {
    // What only one of the two has, and nothing else needs, is summed first.
    let alone = |own: &Operand, other: &Operand| -> Vec<Label> {
        own.labels.iter().copied().filter(|&l| !kept(l) && !other.has(l)).collect()
    };
    let (only_a, only_b) = (alone(&a, &b), alone(&b, &a));
    let (mut a, mut b) = (a.sum(&only_a)?, b.sum(&only_b)?);
    // A dimension of one element against a longer one that is summed: the longer one is summed first.
    let shared: Vec<Label> = a.labels.iter().copied().filter(|&l| b.has(l)).collect();
    for &label in shared.iter().filter(|&&l| !kept(l)) {
        let (Some(size_a), Some(size_b)) = (a.size(label)?, b.size(label)?) else { continue };
        if size_a.is_one()? || size_b.is_one()? {
            a = a.without(label)?;
            b = b.without(label)?;
        }
    }
    let mut batch = Vec::new();
    let mut inner = Vec::new();
    let mut rows = Vec::new();
    let mut columns: Vec<Label> = b.labels.iter().copied().filter(|&l| !a.has(l)).collect();
    for &label in &a.labels {
        match (a.size(label)?, b.size(label)?) {
            (Some(size_a), Some(size_b)) => {
                if !kept(label) {
                    inner.push(label);
                } else if size_a.is_one()? && !size_b.is_one()? {
                    columns.push(label);
                } else if size_b.is_one()? && !size_a.is_one()? {
                    rows.push(label);
                } else {
                    batch.push(label);
                }
            }
            _ => rows.push(label),
        }
    }
    let sizes_of = |operand: &Operand, labels: &[Label]| -> Result<SymDimVector> {
        labels.iter().map(|&l| Ok(operand.size(l)?.unwrap_or(SymInt::ONE))).collect()
    };
    let (batch_sizes, inner_sizes) = (sizes_of(&a, &batch)?, sizes_of(&a, &inner)?);
    let (row_sizes, column_sizes) = (sizes_of(&a, &rows)?, sizes_of(&b, &columns)?);
    let matrices = |operand: &Operand, groups: [(&[Label], &SymDimVector); 3]| -> Result<Tensor> {
        let order: Vec<Label> = groups.iter().flat_map(|(labels, _)| labels.iter().copied()).collect();
        // Labels of size one that broadcast against the other operand are not in the order.
        let extra: Vec<Label> = operand.labels.iter().copied().filter(|l| !order.contains(l)).collect();
        let all: Vec<Label> = order.into_iter().chain(extra).collect();
        let shape =
            groups.iter().map(|(_, sizes)| sym_multiply_integers(sizes)).collect::<Result<Vec<_>>>()?;
        at::reshape(&operand.arranged(&all)?, &shape)
    };
    let left = matrices(&a, [(&batch, &batch_sizes), (&rows, &row_sizes), (&inner, &inner_sizes)])?;
    let right = matrices(&b, [(&batch, &batch_sizes), (&inner, &inner_sizes), (&columns, &column_sizes)])?;
    let joined = if inner.is_empty() {
        // An outer product: no sum, so a multiplication will do.
        at::mul_tensor(&left, &right)?
    } else {
        // A sum of small integers may have made one side int64.
        let dtype = c10::promote_types(left.dtype(), right.dtype())?;
        let same = |t: &Tensor| at::to_dtype(t, dtype, false, false, None);
        at::bmm(&same(&left)?, &same(&right)?)?
    };
    let mut shape = batch_sizes;
    shape.extend(row_sizes);
    shape.extend(column_sizes);
    let labels = batch.into_iter().chain(rows).chain(columns).collect();
    Ok(Operand { tensor: at::reshape(&joined, &shape)?, labels })
}
