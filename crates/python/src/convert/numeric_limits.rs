//! `ptr.finfo` and `ptr.iinfo`.

#![expect(clippy::disallowed_methods, reason = "what `#[pyclass(eq)]` writes: a bool, which exists already")]

use c10::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::dtype;
use crate::raw::objects::{self, intern, NewError, Number, Text};
use crate::raw::Res;

/// What there is to know of a floating dtype.
struct Floating {
    eps: f64,
    max: f64,
    min: f64,
    tiny: f64,
    smallest_normal: f64,
    resolution: f64,
}

fn floating(dtype: ScalarType) -> Option<Floating> {
    /// `p` digits in the significand, exponents from `emin`; decimal digits that survive a round trip.
    fn ieee(p: i32, emin: i32, max: f64, digits: i32) -> Floating {
        let tiny = 2f64.powi(emin);
        Floating {
            eps: 2f64.powi(1 - p),
            max,
            min: -max,
            tiny,
            smallest_normal: tiny,
            resolution: format!("1e-{digits}").parse().unwrap_or(0.0),
        }
    }
    Some(match dtype {
        ScalarType::Double => ieee(53, -1022, f64::MAX, 15),
        ScalarType::Float => ieee(24, -126, f64::from(f32::MAX), 6),
        ScalarType::Half => ieee(11, -14, 65504.0, 3),
        ScalarType::BFloat16 => ieee(8, -126, 3.3895313892515355e38, 2),
        ScalarType::Float8_e4m3fn => Floating { resolution: 1.0, ..ieee(4, -6, 448.0, 0) },
        ScalarType::Float8_e5m2 => Floating { resolution: 1.0, ..ieee(3, -14, 57344.0, 0) },
        ScalarType::Float8_e4m3fnuz => Floating { resolution: 1.0, ..ieee(4, -7, 240.0, 0) },
        ScalarType::Float8_e5m2fnuz => Floating { resolution: 1.0, ..ieee(3, -15, 57344.0, 0) },
        _ => return None,
    })
}

/// Limits of a floating dtype.
#[pyclass(name = "finfo", module = "ptr", frozen, eq, skip_from_py_object)]
#[derive(PartialEq, Clone, Copy)]
pub(crate) struct FInfo {
    dtype: ScalarType,
}

#[pymethods]
impl FInfo {
    #[new]
    #[pyo3(signature = (r#type = None))]
    fn new(r#type: Option<&Bound<'_, PyAny>>) -> Res<FInfo> {
        let mut dtype = match r#type {
            None => c10::get_default_dtype(),
            Some(object) => match dtype::extract(object) {
                Some(dtype) => dtype,
                None => {
                    let text = format!(
                        "finfo(): argument 'type' (position 1) must be torch.dtype, not {}",
                        object.get_type().name()?
                    );
                    return Err(PyTypeError::error(text).into());
                }
            },
        };
        if dtype.is_complex() {
            dtype = dtype.to_real_value_type();
        }
        if floating(dtype).is_none() {
            let name = dtype.name();
            let text = format!("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.{name}'");
            return Err(PyTypeError::error(text).into());
        }
        Ok(FInfo { dtype })
    }
    #[getter]
    fn bits(&self) -> Number<usize> {
        Number(self.dtype.item_size() * 8)
    }
    #[getter]
    fn eps(&self) -> Number<f64> {
        Number(self.get(|f| f.eps))
    }
    #[getter]
    fn max(&self) -> Number<f64> {
        Number(self.get(|f| f.max))
    }
    #[getter]
    fn min(&self) -> Number<f64> {
        Number(self.get(|f| f.min))
    }
    #[getter]
    fn tiny(&self) -> Number<f64> {
        Number(self.get(|f| f.tiny))
    }
    #[getter]
    fn smallest_normal(&self) -> Number<f64> {
        Number(self.get(|f| f.smallest_normal))
    }
    #[getter]
    fn resolution(&self) -> Number<f64> {
        Number(self.get(|f| f.resolution))
    }
    #[getter]
    fn dtype(&self) -> Text<&'static str> {
        Text(self.dtype.name())
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<Text<String>> {
        let number = |v: f64| -> PyResult<String> {
            let text =
                objects::float(py, v)?.call_method1(intern!(py, "__format__")?, (intern!(py, "g")?,))?;
            text.extract()
        };
        Ok(Text(format!(
            "finfo(resolution={}, min={}, max={}, eps={}, smallest_normal={}, tiny={}, dtype={})",
            number(self.resolution().0)?,
            number(self.min().0)?,
            number(self.max().0)?,
            number(self.eps().0)?,
            number(self.smallest_normal().0)?,
            number(self.tiny().0)?,
            self.dtype.name()
        )))
    }
    fn __hash__(&self) -> isize {
        self.dtype as isize
    }
}

impl FInfo {
    fn get(&self, f: fn(Floating) -> f64) -> f64 {
        floating(self.dtype).map_or(f64::NAN, f)
    }
}

/// Limits of an integer dtype.
#[pyclass(name = "iinfo", module = "ptr", frozen, eq, skip_from_py_object)]
#[derive(PartialEq, Clone, Copy)]
pub(crate) struct IInfo {
    dtype: ScalarType,
}

#[pymethods]
impl IInfo {
    #[new]
    fn new(r#type: &Bound<'_, PyAny>) -> Res<IInfo> {
        let Some(dtype) = dtype::extract(r#type) else {
            let text = format!(
                "iinfo(): argument 'type' (position 1) must be torch.dtype, not {}",
                r#type.get_type().name()?
            );
            return Err(PyTypeError::error(text).into());
        };
        if dtype == ScalarType::Bool {
            return Err(PyTypeError::error("torch.bool is not supported by torch.iinfo").into());
        }
        if !dtype.is_integral(false) && !dtype.is_quantized() {
            let name = dtype.name();
            let text = format!(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.{name}'"
            );
            return Err(PyTypeError::error(text).into());
        }
        Ok(IInfo { dtype })
    }
    #[getter]
    fn bits(&self) -> Number<usize> {
        Number(self.dtype.item_size() * 8)
    }
    #[getter]
    fn max(&self) -> Number<u64> {
        let value_bits = self.bits().0 - usize::from(self.dtype.is_signed());
        Number(u64::MAX >> (64 - value_bits))
    }
    #[getter]
    fn min(&self) -> Number<i64> {
        Number(match self.dtype.is_signed() {
            true => i64::MIN >> (64 - self.bits().0),
            false => 0,
        })
    }
    #[getter]
    fn dtype(&self) -> Text<&'static str> {
        Text(self.dtype.name())
    }
    fn __repr__(&self) -> Text<String> {
        Text(format!("iinfo(min={}, max={}, dtype={})", self.min().0, self.max().0, self.dtype.name()))
    }
    fn __hash__(&self) -> isize {
        self.dtype as isize
    }
}

/// Adds the classes.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    module.add_class::<FInfo>()?;
    module.add_class::<IInfo>()?;
    Ok(())
}
