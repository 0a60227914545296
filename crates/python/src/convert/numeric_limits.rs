//! `ptr.finfo` and `ptr.iinfo`.

use c10::ScalarType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::dtype;
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
                    return Err(PyTypeError::new_err(text).into());
                }
            },
        };
        if dtype.is_complex() {
            dtype = dtype.to_real_value_type();
        }
        if floating(dtype).is_none() {
            let name = dtype.name();
            let text = format!("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.{name}'");
            return Err(PyTypeError::new_err(text).into());
        }
        Ok(FInfo { dtype })
    }
    #[getter]
    fn bits(&self) -> usize {
        self.dtype.item_size() * 8
    }
    #[getter]
    fn eps(&self) -> f64 {
        self.get(|f| f.eps)
    }
    #[getter]
    fn max(&self) -> f64 {
        self.get(|f| f.max)
    }
    #[getter]
    fn min(&self) -> f64 {
        self.get(|f| f.min)
    }
    #[getter]
    fn tiny(&self) -> f64 {
        self.get(|f| f.tiny)
    }
    #[getter]
    fn smallest_normal(&self) -> f64 {
        self.get(|f| f.smallest_normal)
    }
    #[getter]
    fn resolution(&self) -> f64 {
        self.get(|f| f.resolution)
    }
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let number =
            |v: f64| Ok::<_, PyErr>(v.into_pyobject(py)?.call_method1("__format__", ("g",))?.to_string());
        Ok(format!(
            "finfo(resolution={}, min={}, max={}, eps={}, smallest_normal={}, tiny={}, dtype={})",
            number(self.resolution())?,
            number(self.min())?,
            number(self.max())?,
            number(self.eps())?,
            number(self.smallest_normal())?,
            number(self.tiny())?,
            self.dtype()
        ))
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
            return Err(PyTypeError::new_err(text).into());
        };
        if dtype == ScalarType::Bool {
            return Err(PyTypeError::new_err("torch.bool is not supported by torch.iinfo").into());
        }
        if !dtype.is_integral(false) && !dtype.is_quantized() {
            let name = dtype.name();
            let text = format!(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.{name}'"
            );
            return Err(PyTypeError::new_err(text).into());
        }
        Ok(IInfo { dtype })
    }
    #[getter]
    fn bits(&self) -> usize {
        self.dtype.item_size() * 8
    }
    #[getter]
    fn max(&self) -> u64 {
        let value_bits = self.bits() - usize::from(self.dtype.is_signed());
        u64::MAX >> (64 - value_bits)
    }
    #[getter]
    fn min(&self) -> i64 {
        match self.dtype.is_signed() {
            true => i64::MIN >> (64 - self.bits()),
            false => 0,
        }
    }
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }
    fn __repr__(&self) -> String {
        format!("iinfo(min={}, max={}, dtype={})", self.min(), self.max(), self.dtype())
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
