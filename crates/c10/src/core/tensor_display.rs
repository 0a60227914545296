//! `Display` of tensors: PyTorch's look with its default options, as Python's `repr` of the same tensor.
//!
//! All numbers of a tensor have one notation and one width. Of more than 1000 elements only the edges are shown. Values
//! are read where they lie; what has none on the host (the Meta device, sparse tensors) shows its size instead.

use std::fmt;

use crate::{float8, get_default_dtype, Complex, Layout, Result, Scalar, ScalarType, Tensor};

const PRECISION: usize = 4;
const THRESHOLD: usize = 1000;
const EDGE: usize = 3;
const LINE_WIDTH: usize = 80;
const PREFIX: &str = "tensor(";

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(self))
    }
}

fn text_of(tensor: &Tensor) -> String {
    let dtype = tensor.dtype();
    let default = get_default_dtype();
    let mut suffixes = Vec::new();
    if !tensor.is_cpu() {
        suffixes.push(format!("device='{}'", tensor.device()));
    }
    let size = || format!("size={}", tuple(tensor));
    let values = match values_of(tensor) {
        Some(values) => values,
        None => {
            suffixes.push(size());
            Values { text: "...".to_owned(), dtype_is_seen: false }
        }
    };
    if values.text == "[]" && tensor.dim() != 1 {
        suffixes.push(size());
    }
    if dtype != default && !(values.dtype_is_seen && is_read_from_digits(dtype, default)) {
        suffixes.push(format!("dtype=ptr.{}", dtype.name()));
    }
    match tensor.autograd_meta().and_then(|meta| meta.grad_fn_name(tensor)) {
        Some(name) => suffixes.push(format!("grad_fn=<{name}>")),
        None if tensor.requires_grad() => suffixes.push("requires_grad=True".to_owned()),
        None => {}
    }
    with_suffixes(format!("{PREFIX}{}", values.text), &suffixes)
}

/// Whether the way in which numbers are printed says that they are of the dtype.
fn is_read_from_digits(dtype: ScalarType, default: ScalarType) -> bool {
    let complex =
        if default == ScalarType::Double { ScalarType::ComplexDouble } else { ScalarType::ComplexFloat };
    matches!(dtype, ScalarType::Long | ScalarType::Bool) || dtype == complex
}

fn tuple(tensor: &Tensor) -> String {
    let sizes: Vec<String> = tensor.sym_sizes().iter().map(ToString::to_string).collect();
    match &sizes[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", sizes.join(", ")),
    }
}

/// Each suffix on the line if it fits, else on the next.
fn with_suffixes(mut text: String, suffixes: &[String]) -> String {
    let mut line = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
    for suffix in suffixes {
        if line + suffix.len() + 2 > LINE_WIDTH {
            text += &format!(",\n{}{suffix}", " ".repeat(PREFIX.len()));
            line = PREFIX.len() + suffix.len();
        } else {
            text += &format!(", {suffix}");
            line += suffix.len() + 2;
        }
    }
    text + ")"
}

struct Values {
    text: String,
    dtype_is_seen: bool,
}

/// The values in brackets; `None` if there are none to read.
fn values_of(tensor: &Tensor) -> Option<Values> {
    let readable = tensor.is_cpu() && tensor.layout() == Layout::Strided && tensor.has_storage();
    let numel = tensor.numel().ok()?;
    if !readable || tensor.check_in_storage().is_err() {
        return None;
    }
    if numel == 0 {
        return Some(Values { text: "[]".to_owned(), dtype_is_seen: false });
    }
    let sizes = tensor.sizes().ok()?;
    let kept: Vec<Vec<i64>> = sizes
        .iter()
        .map(|&size| match size {
            _ if numel as usize <= THRESHOLD || size <= 2 * EDGE as i64 => (0..size).collect(),
            _ => (0..EDGE as i64).chain(size - EDGE as i64..size).collect(),
        })
        .collect();
    let mut elements = Vec::new();
    collect(tensor, &kept, &mut elements).ok()?;
    let cut = sizes.iter().zip(&kept).map(|(&size, kept)| size as usize != kept.len()).collect();
    let lengths = kept.iter().map(Vec::len).collect();
    let printer = Printer { notation: Notation::of(&elements), cut, lengths };
    Some(Values { text: printer.nested(&elements, 0, PREFIX.len()), dtype_is_seen: true })
}

/// Reads the elements at the kept indices, in row-major order.
fn collect(tensor: &Tensor, kept: &[Vec<i64>], out: &mut Vec<Scalar>) -> Result<()> {
    let strides = tensor.strides()?;
    let mut places = vec![0i64];
    for (indices, stride) in kept.iter().zip(strides) {
        places = places.iter().flat_map(|place| indices.iter().map(move |i| place + i * stride)).collect();
    }
    let wide = float8::values(tensor.dtype());
    let base = tensor.const_data_ptr();
    for place in places {
        let at = base.wrapping_offset((place * tensor.item_size() as i64) as isize);
        let value = match &wide {
            // SAFETY: as below.
            Some(values) => Scalar::Float(f64::from(values[usize::from(unsafe { at.read() })])),
            // SAFETY: the address of an element inside the storage, which `check_in_storage` has compared.
            None => unsafe { read(at, tensor.dtype()) }?,
        };
        out.push(pending(tensor, value));
    }
    Ok(())
}

/// What a lazy conjugation or negation makes of an element.
fn pending(tensor: &Tensor, value: Scalar) -> Scalar {
    match value {
        Scalar::Complex(z) => {
            let z = if tensor.is_conj() { z.conj() } else { z };
            Scalar::Complex(if tensor.is_neg() { -z } else { z })
        }
        Scalar::Float(x) if tensor.is_neg() => Scalar::Float(-x),
        Scalar::Int(x) if tensor.is_neg() => Scalar::Int(x.wrapping_neg()),
        other => other,
    }
}

/// # Safety
/// `at` must be the address of an element of the dtype.
unsafe fn read(at: *const u8, dtype: ScalarType) -> Result<Scalar> {
    if dtype == ScalarType::Bool {
        // SAFETY: a byte, which may hold any number.
        return Ok(Scalar::Bool(unsafe { at.read() } != 0));
    }
    crate::dispatch_dtypes!(dtype, "Display", EVERY, |T| {
        // SAFETY: the caller's promise.
        Scalar::from_element(unsafe { at.cast::<T>().read_unaligned() })
    })
}

/// How the numbers of one tensor look.
enum Notation {
    /// Integers and booleans, of this width.
    Whole(usize),
    Real(Digits),
    Complex(Digits, Digits),
}

impl Notation {
    fn of(elements: &[Scalar]) -> Notation {
        let parts = |part: fn(&Complex<f64>) -> f64| {
            Digits::of(elements.iter().map(|e| if let Scalar::Complex(z) = e { part(z) } else { 0.0 }))
        };
        match elements.first() {
            Some(Scalar::Complex(_)) => Notation::Complex(parts(|z| z.re), parts(|z| z.im)),
            Some(Scalar::Float(_)) => Notation::Real(Digits::of(elements.iter().map(real))),
            _ => Notation::Whole(elements.iter().map(|e| whole(e).len()).max().unwrap_or(1)),
        }
    }

    fn width(&self) -> usize {
        match self {
            Notation::Whole(width) => *width,
            Notation::Real(digits) => digits.width,
            Notation::Complex(re, im) => re.width + im.width + 1,
        }
    }

    fn format(&self, element: &Scalar) -> String {
        match (self, element) {
            (Notation::Complex(re, im), Scalar::Complex(z)) => {
                let imaginary = im.format(z.im);
                let imaginary = imaginary.trim_start();
                let sign = if imaginary.starts_with('-') { "" } else { "+" };
                format!("{}{sign}{imaginary}j", re.format(z.re))
            }
            (Notation::Real(digits), element) => digits.format(real(element)),
            (_, element) => format!("{:>width$}", whole(element), width = self.width()),
        }
    }
}

fn real(element: &Scalar) -> f64 {
    if let Scalar::Float(x) = element {
        *x
    } else {
        0.0
    }
}

fn whole(element: &Scalar) -> String {
    match element {
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Int(x) => x.to_string(),
        Scalar::UInt(x) => x.to_string(),
        _ => String::new(),
    }
}

/// The notation of real numbers.
struct Digits {
    scientific: bool,
    /// All are integers: a point marks them.
    whole: bool,
    width: usize,
}

impl Digits {
    fn of(values: impl Iterator<Item = f64>) -> Digits {
        let finite: Vec<f64> = values.filter(|x| x.is_finite() && *x != 0.0).collect();
        if finite.is_empty() {
            return Digits { scientific: false, whole: true, width: 1 };
        }
        let magnitudes = || finite.iter().map(|x| x.abs());
        let (low, high) = (magnitudes().fold(f64::INFINITY, f64::min), magnitudes().fold(0.0, f64::max));
        let scientific = high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4;
        let whole = finite.iter().all(|x| x.fract() == 0.0);
        let mut digits = Digits { scientific, whole, width: 0 };
        // Zeros, infinities and NaN take part in no width: the first are never wider, the others stick out.
        digits.width = finite.iter().map(|&x| digits.format(x).len()).max().unwrap_or(1);
        digits
    }

    fn format(&self, x: f64) -> String {
        let text = match () {
            () if x.is_nan() => "nan".to_owned(),
            () if x.is_infinite() => if x < 0.0 { "-inf" } else { "inf" }.to_owned(),
            () if self.scientific => scientific(x),
            () if self.whole => format!("{x:.0}."),
            () => format!("{x:.PRECISION$}"),
        };
        format!("{text:>width$}", width = self.width)
    }
}

/// With two digits of the exponent at least, and its sign.
fn scientific(x: f64) -> String {
    let text = format!("{x:.PRECISION$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

struct Printer {
    notation: Notation,
    /// For each dimension whether its middle is left out, and how many indices are shown.
    cut: Vec<bool>,
    lengths: Vec<usize>,
}

impl Printer {
    fn nested(&self, elements: &[Scalar], dim: usize, indent: usize) -> String {
        let left = self.lengths.len() - dim;
        match (left, elements) {
            (0, [element, ..]) => return self.notation.format(element),
            (0, []) => return String::new(),
            (1, _) => return self.row(elements, self.cut[dim], indent),
            _ => {}
        }
        let piece = elements.len() / self.lengths[dim];
        let mut texts: Vec<String> =
            elements.chunks(piece).map(|chunk| self.nested(chunk, dim + 1, indent + 1)).collect();
        if self.cut[dim] {
            texts.insert(EDGE, "...".to_owned());
        }
        let between = format!(",{}{}", "\n".repeat(left - 1), " ".repeat(indent + 1));
        format!("[{}]", texts.join(&between))
    }

    fn row(&self, elements: &[Scalar], cut: bool, indent: usize) -> String {
        let mut texts: Vec<String> = elements.iter().map(|element| self.notation.format(element)).collect();
        if cut {
            texts.insert(EDGE, " ...".to_owned());
        }
        let per_line = (LINE_WIDTH.saturating_sub(indent) / (self.notation.width() + 2)).max(1);
        let lines: Vec<String> = texts.chunks(per_line).map(|line| line.join(", ")).collect();
        format!("[{}]", lines.join(&format!(",\n{}", " ".repeat(indent + 1))))
    }
}
