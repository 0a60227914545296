//! `abi_test::scale(Tensor x, float by) -> Tensor` with CPU, Meta and Autograd kernels.

use abi::{Api, Call, Error, Library, LibraryKind, Result, Tag, Tensor, Value};

const FLOAT32: u32 = 6;
const CONTIGUOUS_FORMAT: i64 = 0;

pub fn register(api: Api) -> Result<Library> {
    let mut library = api.library(LibraryKind::Def, "abi_test")?;
    library.def("scale(Tensor x, float by) -> Tensor")?;
    library.kernel("scale", "CPU", move |call| compute(api, call, true))?;
    library.kernel("scale", "Meta", move |call| compute(api, call, false))?;
    library.kernel("scale", "Autograd", move |call| autograd(api, call))?;
    Ok(library)
}

fn arguments(call: &mut Call) -> Result<(Tensor, f64)> {
    let mut values = call.stack.pop(2)?.into_iter();
    let (Some(x), Some(by)) = (values.next(), values.next()) else {
        return Err(Error::runtime("scale(): expected two arguments"));
    };
    Ok((x.tensor()?, by.double()?))
}

fn compute(api: Api, call: &mut Call, has_memory: bool) -> Result<()> {
    let (mut x, by) = arguments(call)?;
    if x.dtype() != FLOAT32 {
        return Err(Error::runtime("scale(): expected a float32 tensor for x"));
    }
    if !x.is_contiguous()? {
        x = contiguous(api, x)?;
    }
    let out = api.empty_strided(&x.sizes()?, &x.strides()?, FLOAT32, x.device())?;
    if has_memory {
        let n = x.numel()? as usize;
        let (from, to) = (x.data_ptr().cast::<f32>(), out.data_ptr().cast::<f32>());
        for i in 0..n {
            // SAFETY: both tensors are contiguous float32 with n elements.
            unsafe { *to.add(i) = *from.add(i) * by as f32 };
        }
    }
    call.stack.push(Value::Tensor(out))
}

/// Runs the operator below autograd and records that the gradient of `x` is the output's, scaled likewise.
fn autograd(api: Api, call: &mut Call) -> Result<()> {
    let (x, by) = arguments(call)?;
    let below = call.keyset & api.keyset_below("ADInplaceOrView");
    let excluded = api.keyset_of("AutogradCPU") | api.keyset_of("ADInplaceOrView");
    call.stack.push(Value::Tensor(x.clone()))?;
    call.stack.push(Value::Double(by))?;
    let op = call.op;
    api.with_keys(0, excluded & !api.keyset_of("CPU"), || op.redispatch(below, &mut call.stack))?;
    let mut out = call.stack.pop(1)?;
    call.stack.push(Value::Tensor(x))?;
    call.stack.push(out.pop().unwrap_or(Value::None))?;
    api.record(&mut call.stack, 1, 1, "ScaleBackward", move |backward| {
        let grad = backward.stack.pop(1)?.pop().unwrap_or(Value::None).tensor()?;
        backward.stack.push(Value::Tensor(grad))?;
        backward.stack.push(Value::Double(by))?;
        // The operator again: so the gradient can be differentiated in turn.
        match api.find("abi_test::scale", "") {
            Some(scale) => scale.call(&mut backward.stack),
            None => Err(Error::runtime("abi_test::scale is gone")),
        }
    })?;
    let mut values = call.stack.pop(2)?;
    call.stack.push(values.pop().unwrap_or(Value::None))
}

/// A copy in row-major order, made by the process's own operator.
fn contiguous(api: Api, x: Tensor) -> Result<Tensor> {
    let clone = api.find("aten::clone", "").ok_or_else(|| Error::runtime("aten::clone is not defined"))?;
    let mut stack = api.stack();
    stack.push(Value::Tensor(x))?;
    stack.push(Value::Enum(Tag::MemoryFormat, CONTIGUOUS_FORMAT))?;
    clone.call(&mut stack)?;
    stack.pop(1)?.pop().unwrap_or(Value::None).tensor()
}
