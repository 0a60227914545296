//! A boxed fallback on a functorch key, which sees every call beneath it and goes on below.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use abi::{Api, Error, LibraryKind, Result, Tag, Value};

const KEY: &str = "FuncTorchVmapMode";

pub fn count_calls(api: Api) -> Result<i64> {
    let seen = Arc::new(AtomicI64::new(0));
    let counter = seen.clone();
    let mut library = api.library(LibraryKind::Impl, "_")?;
    library.fallback(KEY, move |call| {
        counter.fetch_add(1, Ordering::Relaxed);
        let op = call.op;
        let below = call.keyset & api.keyset_below(KEY);
        // Operators called by what runs below are seen again: the key stays included.
        op.redispatch(below, &mut call.stack)
    })?;
    let find = |name, overload| {
        api.find(name, overload).ok_or_else(|| Error::runtime(format!("{name} is not defined")))
    };
    let (ones, neg) = (find("aten::ones", "")?, find("aten::neg", "")?);
    api.with_keys(api.keyset_of(KEY), 0, || {
        let mut stack = api.stack();
        // ones(SymInt[] size, *, ScalarType? dtype, Layout?, Device?, bool? pin_memory)
        stack.push(Value::IntList(vec![2, 3]))?;
        stack.push(Value::Enum(Tag::ScalarType, 6))?;
        for _ in 0..3 {
            stack.push(Value::None)?;
        }
        ones.call(&mut stack)?;
        neg.call(&mut stack)?;
        let result = stack.pop(1)?.pop().unwrap_or(Value::None).tensor()?;
        // SAFETY: a contiguous float32 tensor of six elements.
        let first = unsafe { *result.data_ptr().cast::<f32>() };
        if first != -1.0 {
            return Err(Error::runtime(format!("neg(ones) gave {first}")));
        }
        Ok(())
    })?;
    Ok(seen.load(Ordering::Relaxed))
}
