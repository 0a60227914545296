//! A device on host memory: an allocator that counts, a few kernels, and the CPU fallback for everything else.

use std::alloc::{alloc, dealloc, Layout};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use abi::{AbiAllocator, Api, Error, Library, LibraryKind, Result, Tag, Tensor, Value};

const PRIVATE_USE_1: i32 = 20;
const DEVICE: i64 = (PRIVATE_USE_1 as i64) << 32;
const FLOAT32: i64 = 6;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the device's allocator has given out and not got back.
#[no_mangle]
pub extern "C" fn abi_test_live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

unsafe extern "C" fn allocate(_context: *mut c_void, nbytes: usize) -> *mut c_void {
    let Ok(layout) = Layout::from_size_align(nbytes.max(1), 64) else {
        return std::ptr::null_mut();
    };
    LIVE_BYTES.fetch_add(nbytes, Ordering::Relaxed);
    // SAFETY: the layout has a size.
    unsafe { alloc(layout) }.cast()
}

unsafe extern "C" fn free(_context: *mut c_void, data: *mut c_void, nbytes: usize) {
    LIVE_BYTES.fetch_sub(nbytes, Ordering::Relaxed);
    if let Ok(layout) = Layout::from_size_align(nbytes.max(1), 64) {
        // SAFETY: `allocate` made the block with this layout.
        unsafe { dealloc(data.cast(), layout) }
    }
}

pub fn register(api: Api) -> Result<Library> {
    let allocator = AbiAllocator { context: std::ptr::null_mut(), allocate, free };
    // SAFETY: both functions are thread-safe and never go away.
    unsafe { api.register_device(PRIVATE_USE_1, 1, allocator)? };
    api.rename_privateuse1("hostdev")?;
    let mut library = api.library(LibraryKind::Impl, "aten")?;
    // empty.memory_format(SymInt[] size, *, ScalarType? dtype, Layout?, Device?, bool? pin_memory, MemoryFormat?)
    library.kernel("empty.memory_format", "PrivateUse1", move |call| {
        let values = call.stack.pop(6)?;
        let sizes = values[0].clone().int_list()?;
        let mut strides = vec![1; sizes.len()];
        for i in (1..sizes.len()).rev() {
            strides[i - 1] = strides[i] * sizes[i].max(1);
        }
        let out = api.empty_strided(&sizes, &strides, dtype(&values[1]), DEVICE)?;
        call.stack.push(Value::Tensor(out))
    })?;
    // empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype, Layout?, Device?, bool? pin_memory)
    library.kernel("empty_strided", "PrivateUse1", move |call| {
        let values = call.stack.pop(6)?;
        let (sizes, strides) = (values[0].clone().int_list()?, values[1].clone().int_list()?);
        let out = api.empty_strided(&sizes, &strides, dtype(&values[2]), DEVICE)?;
        call.stack.push(Value::Tensor(out))
    })?;
    // _copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor
    library.kernel("_copy_from", "PrivateUse1", |call| {
        let mut values = call.stack.pop(3)?.into_iter();
        let (source, target) = match (values.next(), values.next()) {
            (Some(source), Some(target)) => (source.tensor()?, target.tensor()?),
            _ => return Err(Error::runtime("_copy_from(): expected two tensors")),
        };
        copy(&source, &target)?;
        call.stack.push(Value::Tensor(target))
    })?;
    // neg(Tensor self) -> Tensor, as a kernel of the device's own
    library.kernel("neg", "PrivateUse1", move |call| {
        let x = call.stack.pop(1)?.pop().unwrap_or(Value::None).tensor()?;
        if i64::from(x.dtype()) != FLOAT32 || !x.is_contiguous()? {
            return Err(Error::runtime("neg(): hostdev expects a contiguous float32 tensor"));
        }
        let out = api.empty_strided(&x.sizes()?, &x.strides()?, x.dtype(), DEVICE)?;
        for i in 0..x.numel()? as usize {
            // SAFETY: both tensors are contiguous float32 with as many elements.
            unsafe { *out.data_ptr().cast::<f32>().add(i) = -*x.data_ptr().cast::<f32>().add(i) };
        }
        call.stack.push(Value::Tensor(out))
    })?;
    library.cpu_fallback("PrivateUse1")?;
    Ok(library)
}

fn dtype(value: &Value) -> u32 {
    match value {
        Value::Enum(Tag::ScalarType, v) => *v as u32,
        _ => FLOAT32 as u32,
    }
}

/// Bytes per element, by PyTorch's number of the dtype.
fn item_size(dtype: u32) -> Result<usize> {
    match dtype {
        0 | 1 | 11 => Ok(1),
        2 | 5 | 15 => Ok(2),
        3 | 6 => Ok(4),
        4 | 7 | 9 => Ok(8),
        10 => Ok(16),
        other => Err(Error::runtime(format!("hostdev does not know the dtype number {other}"))),
    }
}

/// Copies element by element through the strides of both.
fn copy(source: &Tensor, target: &Tensor) -> Result<()> {
    let (sizes, from, to) = (source.sizes()?, source.strides()?, target.strides()?);
    if sizes != target.sizes()? || source.dtype() != target.dtype() {
        return Err(Error::runtime("_copy_from(): hostdev copies between tensors of one shape and dtype"));
    }
    let size = item_size(source.dtype())?;
    let mut index = vec![0i64; sizes.len()];
    for _ in 0..sizes.iter().product::<i64>() {
        let offset = |strides: &[i64]| index.iter().zip(strides).map(|(i, s)| i * s).sum::<i64>() as usize * size;
        // SAFETY: the index is within the sizes of both tensors, whose memory is the host's.
        unsafe {
            let from = source.data_ptr().cast::<u8>().add(offset(&from));
            let to = target.data_ptr().cast::<u8>().add(offset(&to));
            std::ptr::copy(from, to, size);
        }
        for d in (0..sizes.len()).rev() {
            index[d] += 1;
            if index[d] < sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Ok(())
}
