//! A backend that registers kernels and nothing else: operators reach them under its dispatch key.

use std::sync::atomic::{AtomicI8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use c10::{
    register_device_guard, set_allocator, Allocator, DataPtr, Device, DeviceGuardImplInterface, DeviceType,
    DispatchKey, DispatchKeySet, ErrorKind, Result, Scalar, ScalarType, Stream, Tensor,
};
use dispatch::{KernelFunction, Library, LibraryKind, OperatorHandle, Stack};
use iter::{kernel_registry, TensorIterator};
use ops::{at, sym};

type AddKernel = fn(&TensorIterator, &Scalar) -> Result<()>;
type UnaryKernel = fn(&TensorIterator) -> Result<()>;
type NonzeroKernel = fn(&Tensor) -> Result<Tensor>;

/// Host memory under the name of another device.
struct HostMemory;

impl Allocator for HostMemory {
    fn allocate(&self, nbytes: usize) -> Result<DataPtr> {
        let mut block = vec![0u64; nbytes.div_ceil(8).max(1)];
        let data = block.as_mut_ptr().cast();
        Ok(DataPtr::from_owner(data, block, self.device()))
    }

    fn device(&self) -> Device {
        TWO_DEVICES.get_device().unwrap()
    }

    unsafe fn copy_data(&self, dest: *mut u8, src: *const u8, nbytes: usize) -> Result<()> {
        // SAFETY: the caller promises two valid, disjoint ranges, and the memory is the host's.
        unsafe { std::ptr::copy_nonoverlapping(src, dest, nbytes) };
        Ok(())
    }
}

/// Two devices, one of them current.
struct TwoDevices {
    current: AtomicI8,
}

static TWO_DEVICES: TwoDevices = TwoDevices { current: AtomicI8::new(0) };

impl DeviceGuardImplInterface for TwoDevices {
    fn type_(&self) -> DeviceType {
        DeviceType::PrivateUse1
    }
    fn exchange_device(&self, device: Device) -> Result<Device> {
        Ok(Device::new(DeviceType::PrivateUse1, self.current.swap(device.index, Ordering::Relaxed)))
    }
    fn get_device(&self) -> Result<Device> {
        Ok(Device::new(DeviceType::PrivateUse1, self.current.load(Ordering::Relaxed)))
    }
    fn set_device(&self, device: Device) -> Result<()> {
        self.exchange_device(device).map(drop)
    }
    fn unchecked_set_device(&self, device: Device) {
        self.current.store(device.index, Ordering::Relaxed);
    }
    fn get_stream(&self, device: Device) -> Result<Stream> {
        Ok(Stream::default_stream(device))
    }
    fn exchange_stream(&self, stream: Stream) -> Result<Stream> {
        Ok(stream)
    }
    fn device_count(&self) -> usize {
        2
    }
}

static ADDED: AtomicUsize = AtomicUsize::new(0);

fn add(iter: &TensorIterator, alpha: &Scalar) -> Result<()> {
    ADDED.fetch_add(1, Ordering::Relaxed);
    kernel_registry::find::<AddKernel>("add_kernel", DispatchKey::CPU)?(iter, alpha)
}

/// What a test needs while it runs: calls start below autograd, and one test at a time changes the backend.
struct Started {
    _below: c10::AutoDispatchBelowADInplaceOrView,
    _turn: MutexGuard<'static, ()>,
}

fn start() -> Result<Started> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_allocator(DeviceType::PrivateUse1, &HostMemory, 0);
    register_device_guard(DeviceType::PrivateUse1, &TWO_DEVICES);
    Ok(Started { _below: crate::start()?, _turn: turn })
}

fn ones(sizes: &[i64]) -> Result<Tensor> {
    ones_on(0, sizes)
}

fn ones_on(index: i8, sizes: &[i64]) -> Result<Tensor> {
    let device = Some(Device::new(DeviceType::PrivateUse1, index));
    let tensor =
        at::empty_memory_format(&sym::sym_ints(sizes), Some(ScalarType::Float), None, device, None, None)?;
    // SAFETY: the memory is the host's, contiguous, and of this many floats.
    unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f32>(), tensor.numel()? as usize) }
        .fill(1.0);
    Ok(tensor)
}

fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    let n = tensor.numel()? as usize;
    // SAFETY: as in `ones`.
    Ok(unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<f32>(), n) }.to_vec())
}

#[test]
fn registering_a_kernel_makes_every_form_of_its_operator_work() -> Result<()> {
    let _guard = start()?;
    let (a, b) = (ones(&[2, 1])?, ones(&[3])?);
    let one = Scalar::Int(1);
    let error = at::add_tensor(&a, &b, &one).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(error.message().contains("from the 'PrivateUse1' backend"), "{}", error.message());

    kernel_registry::register::<AddKernel>("add_kernel", DispatchKey::PrivateUse1, add);
    let sum = at::add_tensor(&a, &b, &one)?;
    assert_eq!((sum.sizes()?, sum.device().device_type()), (&[2, 3][..], DeviceType::PrivateUse1));
    assert_eq!(floats(&sum)?, [2.0; 6]);
    at::add__tensor(&sum, &b, &one)?;
    assert_eq!(floats(&sum)?, [3.0; 6]);
    let out = ones(&[0])?;
    assert!(at::add_out(&sum, &b, &Scalar::Int(2), &out)?.is_same(&out));
    assert_eq!(floats(&out)?, [5.0; 6]);
    assert_eq!(ADDED.load(Ordering::Relaxed), 3);

    let absent = ops::missing_kernels(DispatchKey::PrivateUse1);
    assert!(absent.iter().any(|e| e.message() == "mul: no kernel for PrivateUse1"));
    assert!(!absent.iter().any(|e| e.message().starts_with("add:")));
    Ok(())
}

#[test]
fn operators_without_a_kernel_reach_the_backends_fallback() -> Result<()> {
    fn fallback(op: OperatorHandle, _: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        assert_eq!(op.name().base_name(), "neg");
        stack.truncate(1);
        Ok(())
    }
    let _guard = start()?;
    let mut library = Library::new(LibraryKind::Impl, "_");
    library.fallback(DispatchKey::PrivateUse1, KernelFunction::from_boxed(fallback))?;
    let a = ones(&[2])?;
    assert!(at::neg(&a)?.is_same(&a), "the fallback's answer");

    fn neg(iter: &TensorIterator) -> Result<()> {
        kernel_registry::find::<UnaryKernel>("neg_kernel", DispatchKey::CPU)?(iter)
    }
    kernel_registry::register::<UnaryKernel>("neg_kernel", DispatchKey::PrivateUse1, neg);
    assert_eq!(floats(&at::neg(&a)?)?, [-1.0; 2], "the kernel's answer");
    Ok(())
}

#[test]
fn a_kernel_that_allocates_is_found_by_the_key_too() -> Result<()> {
    fn nonzero(self_: &Tensor) -> Result<Tensor> {
        Ok(self_.clone())
    }
    let _guard = start()?;
    let a = ones(&[2])?;
    assert!(at::nonzero(&a).is_err());
    kernel_registry::register::<NonzeroKernel>("nonzero_kernel", DispatchKey::PrivateUse1, nonzero);
    assert!(at::nonzero(&a)?.is_same(&a));
    Ok(())
}

#[test]
fn the_wrapper_checks_and_sets_the_device() -> Result<()> {
    type MmKernel = fn(&Tensor, &Tensor, &[Tensor]) -> Result<()>;
    static SEEN: AtomicI8 = AtomicI8::new(-1);
    fn mm(_: &Tensor, _: &Tensor, _: &[Tensor]) -> Result<()> {
        SEEN.store(TWO_DEVICES.current.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
    let _guard = start()?;
    kernel_registry::register::<MmKernel>("mm_kernel", DispatchKey::PrivateUse1, mm);
    // The factory allocates where it is asked to, whatever device is current.
    let (first, second) = (ones_on(0, &[2, 2])?, ones_on(1, &[2, 2])?);
    assert_eq!((first.device().index, second.device().index), (0, 1));

    let product = at::mm(&second, &second)?;
    assert_eq!((SEEN.load(Ordering::Relaxed), product.device().index), (1, 1));
    assert_eq!(TWO_DEVICES.current.load(Ordering::Relaxed), 0, "and restores what was current");
    // The boxed call goes the same way.
    let op = dispatch::Dispatcher::find_schema_or_err("aten::mm", "")?;
    SEEN.store(-1, Ordering::Relaxed);
    op.call_boxed(&mut smallvec::smallvec![second.clone().into(), second.clone().into()])?;
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);

    // A number of the host comes first: it is not what is made current.
    type SubKernel = fn(&TensorIterator, &Scalar) -> Result<()>;
    fn sub(_: &TensorIterator, _: &Scalar) -> Result<()> {
        SEEN.store(TWO_DEVICES.current.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
    kernel_registry::register::<SubKernel>("sub_kernel", DispatchKey::PrivateUse1, sub);
    SEEN.store(-1, Ordering::Relaxed);
    let number = ops::scalar_to_tensor(&Scalar::Float(1.0))?;
    at::sub_tensor(&number, &second, &Scalar::Int(1))?;
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);

    let error = at::mm(&first, &second).unwrap_err();
    assert!(
        error.message().starts_with("Expected all tensors to be on the same device, but got mat2 is on"),
        "{error}"
    );
    Ok(())
}

#[test]
fn copies_on_one_device_use_its_kernel() -> Result<()> {
    static COPIED: AtomicUsize = AtomicUsize::new(0);
    static CURRENT: AtomicI8 = AtomicI8::new(-1);
    fn copy(iter: &TensorIterator, non_blocking: bool) -> Result<()> {
        COPIED.fetch_add(1, Ordering::Relaxed);
        CURRENT.store(TWO_DEVICES.current.load(Ordering::Relaxed), Ordering::Relaxed);
        kernel_registry::find::<iter::CopyFn>("copy_kernel", DispatchKey::CPU)?(iter, non_blocking)
    }
    let _guard = start()?;
    let (first, second) = (ones_on(0, &[2, 2])?, ones_on(1, &[2])?);
    let half = |t: &Tensor| at::_to_copy(t, Some(ScalarType::Half), None, None, None, false, None);
    let no_kernel = half(&second).unwrap_err();
    assert_eq!(
        no_kernel.message(),
        "_copy_from(): no kernel copies from device privateuseone:1 to device cpu"
    );

    kernel_registry::register::<iter::CopyFn>("copy_kernel", DispatchKey::PrivateUse1, copy);
    let halves = half(&second)?;
    assert_eq!((halves.dtype(), halves.device()), (ScalarType::Half, second.device()));
    assert_eq!((COPIED.load(Ordering::Relaxed), CURRENT.load(Ordering::Relaxed)), (1, 1));
    let floats_again = at::_to_copy(&halves, Some(ScalarType::Float), None, None, None, false, None)?;
    assert_eq!(floats(&floats_again)?, [1.0; 2]);
    // Broadcast.
    let two = ones_on(0, &[1, 2])?;
    // SAFETY: the memory is the host's, and of this many floats.
    unsafe { two.data_ptr().cast::<f32>().write(2.0) };
    at::copy_(&first, &two, false)?;
    assert_eq!(floats(&first)?, [2.0, 1.0, 2.0, 1.0]);
    assert_eq!(COPIED.load(Ordering::Relaxed), 3);
    // Another device of the same type is another device.
    let between = at::copy_(&first, &second, false).unwrap_err();
    assert!(between.message().starts_with("_copy_from(): no kernel copies"), "{between}");
    Ok(())
}

/// Host memory that says to be page-locked while it is in use.
struct Pinned;

static PINNED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Allocator for Pinned {
    fn allocate(&self, nbytes: usize) -> Result<DataPtr> {
        let mut block = vec![0u64; nbytes.div_ceil(8).max(1)];
        let data: *mut u64 = block.as_mut_ptr();
        PINNED.lock().unwrap_or_else(PoisonError::into_inner).push(data as usize);
        Ok(DataPtr::from_owner(data.cast(), block, Device::CPU))
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    unsafe fn copy_data(&self, dest: *mut u8, src: *const u8, nbytes: usize) -> Result<()> {
        // SAFETY: the caller promises two valid, disjoint ranges, and the memory is the host's.
        unsafe { std::ptr::copy_nonoverlapping(src, dest, nbytes) };
        Ok(())
    }
}

struct Hooks;

impl c10::AcceleratorHooksInterface for Hooks {
    fn device_type(&self) -> DeviceType {
        DeviceType::PrivateUse1
    }
    fn is_built(&self) -> bool {
        true
    }
    fn is_available(&self) -> bool {
        true
    }
    fn init(&self) -> Result<()> {
        Ok(())
    }
    fn is_pinned_ptr(&self, data: *const u8) -> bool {
        PINNED.lock().unwrap_or_else(PoisonError::into_inner).contains(&(data as usize))
    }
    fn get_pinned_memory_allocator(&self) -> Result<&'static dyn Allocator> {
        Ok(&Pinned)
    }
}

#[test]
fn pinned_memory_is_the_accelerators() -> Result<()> {
    let _guard = start()?;
    let zeros = |device: Option<Device>| {
        at::zeros(&sym::sym_ints(&[3]), Some(ScalarType::Float), None, device, Some(true))
    };
    let error = zeros(None).unwrap_err();
    assert!(
        error.message().starts_with("Cannot access accelerator device when none is available"),
        "{error}"
    );
    assert!(zeros(Some(Device::META))?.is_meta(), "nothing to pin");

    c10::register_accelerator_hooks(&Hooks);
    let pinned = zeros(None)?;
    assert!(pinned.is_cpu() && c10::is_pinned_ptr(pinned.const_data_ptr()));
    assert_eq!(floats(&pinned)?, [0.0; 3]);
    let like = at::empty_like(&pinned, None, None, None, Some(true), None)?;
    assert!(c10::is_pinned_ptr(like.const_data_ptr()));
    let plain = at::empty_like(&pinned, None, None, None, None, None)?;
    assert!(!c10::is_pinned_ptr(plain.const_data_ptr()));
    let error = zeros(Some(Device::new(DeviceType::PrivateUse1, 0))).unwrap_err();
    assert!(error.message().starts_with("Only dense CPU tensors can be pinned"), "{error}");
    Ok(())
}
