//! Registration of autograd's kernels.

use std::sync::OnceLock;

use c10::{get_runtime_dispatch_key_set, DispatchKey, Error, Result};
use dispatch::{list_operators, KernelFunction, Library, LibraryKind, OperatorHandle};

use crate::ad_inplace_or_view::{ad_inplace_or_view_kernel, ViewTracking};
use crate::autograd_meta::AutogradMeta;
use crate::fallback::autograd_fallback;
use crate::gen;
use crate::kernel::autograd_kernel;
use crate::saved_tensor_hooks;

/// Registers all kernels, once. Call it when the operators are defined.
pub fn init() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| register_all().map_err(|error| error.to_string())).clone().map_err(Error::runtime)
}

fn register_all() -> Result<()> {
    c10::set_autograd_meta_factory(|| Box::<AutogradMeta>::default());
    saved_tensor_hooks::register_tls_extension();
    iter::parallel::fork::at_fork_child(crate::engine::after_fork_in_child)?;

    for entry in gen::all().iter().copied().flatten() {
        let namespace = entry.op.split_once("::").map_or("aten", |(namespace, _)| namespace);
        let mut library = Library::new(LibraryKind::Impl, namespace);
        library.impl_(entry.op, DispatchKey::Autograd, autograd_kernel(entry))?;
        library.leak();
    }
    for op in list_operators() {
        // Those of others are for who defines them to register: see `register_ad_inplace_or_view`.
        // Those that write on the side alone are not tracked: see Note [Written on the side].
        let info = op.info()?;
        if ops::is_built_in(op) && (info.is_view || info.writes_results()) {
            let mut library = Library::new(LibraryKind::Impl, op.name().namespace().unwrap_or("aten"));
            let name = op.name().to_string();
            let tracking = gen::VIEW_TRACKING.iter().find(|(view, _)| *view == name);
            add_ad_inplace_or_view(&mut library, op, tracking.map_or(ViewTracking::Strided, |(_, t)| *t))?;
            library.leak();
        }
    }
    register_fallbacks()
}

/// Tracks views and in-place modifications of an operator whose schema says it makes them.
fn add_ad_inplace_or_view(library: &mut Library, op: OperatorHandle, tracking: ViewTracking) -> Result<()> {
    if op.has_kernel_for_dispatch_key(DispatchKey::CompositeImplicitAutograd) {
        // The operators it is made of are tracked.
        return Ok(());
    }
    let info = op.info()?;
    if info.is_mutable() || info.is_view {
        library.impl_(
            &op.name().to_string(),
            DispatchKey::ADInplaceOrView,
            ad_inplace_or_view_kernel(tracking),
        )?;
    }
    Ok(())
}

/// As [`init`] does for the system's own operators, for one that a third party has defined. The registration ends with
/// `library`.
pub fn register_ad_inplace_or_view(library: &mut Library, op: OperatorHandle) -> Result<()> {
    add_ad_inplace_or_view(library, op, ViewTracking::Replayed)
}

fn register_fallbacks() -> Result<()> {
    let mut fallbacks = Library::new(LibraryKind::Impl, "_");
    for key in get_runtime_dispatch_key_set(DispatchKey::Autograd).iter() {
        fallbacks.fallback(key, KernelFunction::from_boxed(autograd_fallback))?;
    }
    fallbacks.fallback(DispatchKey::ADInplaceOrView, KernelFunction::fallthrough())?;
    fallbacks.leak();
    Ok(())
}
