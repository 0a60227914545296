//! The engine's threads: one per device with streams, and a pool for backward passes nested too deeply for one stack.

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use c10::{Device, DeviceType, Error, Result, Stream};
use parking_lot::{Condvar, Mutex, RwLock};

use super::engine::thread_main;
use super::graph_task::GraphTask;
use super::ready_queue::ReadyQueue;
use super::thread_state::{set_local_ready_queue, CPU_DEVICE, TOTAL_DEPTH, WORKER_DEVICE};

/// What all backward passes of the process share.
#[derive(Default)]
struct EngineState {
    /// Queues of device threads, by [`worker_device`].
    device_queues: RwLock<HashMap<i32, Arc<ReadyQueue>>>,
    pool: Mutex<Pool>,
    pool_has_work: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: usize,
    tasks: VecDeque<Weak<GraphTask>>,
}

static STATE: AtomicPtr<EngineState> = AtomicPtr::new(ptr::null_mut());

fn state() -> &'static EngineState {
    let mut state = STATE.load(Ordering::Acquire);
    if state.is_null() {
        let fresh = Box::into_raw(Box::<EngineState>::default());
        state = match STATE.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(first) => {
                // SAFETY: `fresh` lost the race and nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                first
            }
        };
    }
    // SAFETY: a published state is never freed.
    unsafe { &*state }
}

/// Starts afresh in a child process, which has none of the parent's threads. What they held is left alone: a lock
/// among it may never be released.
pub fn after_fork_in_child() {
    STATE.store(std::ptr::null_mut(), Ordering::Release);
}

/// The number of a device's thread.
pub(super) fn worker_device(device: Device) -> i32 {
    (device.type_ as i32) << 8 | i32::from(device.index.max(0))
}

fn device_of(worker: i32) -> Option<Device> {
    let type_ = DeviceType::try_from((worker >> 8) as i8).ok()?;
    Some(Device::new(type_, (worker & 0xff) as i8))
}

/// The queue of the thread that runs nodes of a stream; CPU nodes go to the calling thread's.
pub(super) fn ready_queue(cpu: &Arc<ReadyQueue>, stream: Option<Stream>) -> Result<Arc<ReadyQueue>> {
    match stream {
        None => Ok(cpu.clone()),
        Some(stream) if !super::is_multithreading_enabled() => {
            let _ = stream;
            Ok(cpu.clone())
        }
        Some(stream) => device_queue(worker_device(stream.device())),
    }
}

/// The queue of the thread with that number.
pub(super) fn ready_queue_of_worker(cpu: &Arc<ReadyQueue>, worker: i32) -> Result<Arc<ReadyQueue>> {
    if worker == CPU_DEVICE {
        return Ok(cpu.clone());
    }
    device_queue(worker)
}

fn device_queue(worker: i32) -> Result<Arc<ReadyQueue>> {
    let state = state();
    if let Some(queue) = state.device_queues.read().get(&worker) {
        return Ok(queue.clone());
    }
    let mut queues = state.device_queues.write();
    if let Some(queue) = queues.get(&worker) {
        return Ok(queue.clone());
    }
    let queue = Arc::<ReadyQueue>::default();
    let for_thread = queue.clone();
    spawn(format!("ptr_autograd_{worker}"), move || {
        if let Some(device) = device_of(worker) {
            if let Ok(guard) = c10::get_device_guard_impl(device.type_) {
                // A device that can't be made current fails the first node that uses it.
                let _ = guard.set_device(device);
            }
        }
        WORKER_DEVICE.set(worker);
        set_local_ready_queue(Some(for_thread.clone()));
        thread_main(None, &for_thread);
    })?;
    queues.insert(worker, queue.clone());
    Ok(queue)
}

fn spawn(name: String, main: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name).spawn(main).map(drop).map_err(|error| {
        Error::runtime(format!("backward(): cannot start a thread of the autograd engine: {error}"))
    })
}

/// Has another thread run a backward pass whose root is already queued; the caller waits for its completion.
pub(super) fn add_thread_pool_task(task: &Arc<GraphTask>) -> Result<()> {
    let state = state();
    let mut pool = state.pool.lock();
    if pool.idle <= pool.tasks.len() {
        spawn("ptr_autograd_pool".into(), move || reentrant_thread_main(state))?;
    }
    pool.tasks.push_back(Arc::downgrade(task));
    state.pool_has_work.notify_one();
    Ok(())
}

fn reentrant_thread_main(state: &'static EngineState) {
    loop {
        let task = {
            let mut pool = state.pool.lock();
            pool.idle += 1;
            let task = loop {
                match pool.tasks.pop_front() {
                    Some(task) => break task,
                    None => state.pool_has_work.wait(&mut pool),
                }
            };
            pool.idle -= 1;
            task
        };
        let Some(task) = task.upgrade() else { continue };
        // This thread stands in for the owner, which waits.
        let owner = task.owner.load(Ordering::Acquire);
        WORKER_DEVICE.set(owner);
        TOTAL_DEPTH.set(task.reentrant_depth);
        match ready_queue_of_worker(&task.cpu_ready_queue, owner) {
            Ok(queue) => {
                set_local_ready_queue(Some(queue.clone()));
                thread_main(Some(&task), &queue);
            }
            Err(error) => {
                task.set_error(error);
                task.mark_completed();
            }
        }
        set_local_ready_queue(None);
    }
}
