//! What autograd knows of a tensor that is a differentiable view of another.
//!
//! # Note [View + in-place detection]
//!
//! All views of a base share its version counter. A view remembers the version at which its `grad_fn` was right
//! (`attr_version`). When the base or another view has been modified in place since, the view's history is out of
//! date and is made anew from the base on the next request: by `as_strided` for plain strided tensors, by replaying
//! the chain of view operators for everything else.

use std::sync::atomic::{AtomicU32, AtomicU8, Ordering};
use std::sync::Arc;

use c10::{Result, Tensor};

/// How a view came to be; decides whether it may be modified in place while gradients are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CreationMeta {
    /// An ordinary view.
    Default = 0,
    /// Made inside a custom Function.
    InCustomFunction = 1,
    /// One of several views made by one operator.
    MultiOutputNode = 2,
    /// Made in no_grad mode.
    NoGradMode = 3,
    /// Made in inference mode.
    InferenceMode = 4,
}

impl CreationMeta {
    fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::InCustomFunction,
            2 => Self::MultiOutputNode,
            3 => Self::NoGradMode,
            4 => Self::InferenceMode,
            _ => Self::Default,
        }
    }

    /// What a view of a view has: its own reason if it has one.
    pub(crate) fn propagate(prev: Self, new: Self) -> Self {
        if new == Self::Default {
            prev
        } else {
            new
        }
    }
}

type Replay = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

struct ViewStep {
    parent: Option<ViewFunc>,
    replay: Box<Replay>,
}

/// Makes a view of a base anew: a chain of view operators.
#[derive(Clone)]
pub struct ViewFunc(Arc<ViewStep>);

impl ViewFunc {
    /// One view operator with all its arguments but the base.
    pub fn new(replay: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ViewStep { parent: None, replay: Box::new(replay) }))
    }

    /// `self`, applied to what `parent` makes.
    pub fn after(self, parent: ViewFunc) -> Self {
        let own = self.clone();
        Self(Arc::new(ViewStep { parent: Some(parent), replay: Box::new(move |base| own.step(base)) }))
    }

    fn step(&self, base: &Tensor) -> Result<Tensor> {
        (self.0.replay)(base)
    }

    /// The view of `base`.
    pub fn apply(&self, base: &Tensor) -> Result<Tensor> {
        let mut chain = vec![self];
        while let Some(parent) = chain.last().and_then(|f| f.0.parent.as_ref()) {
            chain.push(parent);
        }
        chain.iter().rev().try_fold(base.clone(), |view, step| step.step(&view))
    }
}

impl Drop for ViewStep {
    fn drop(&mut self) {
        // A loop of views of views makes a long chain: unlink it without recursion.
        let mut next = self.parent.take();
        while let Some(ViewFunc(step)) = next {
            next = Arc::into_inner(step).and_then(|mut step| step.parent.take());
        }
    }
}

/// The view half of [`AutogradMeta`](crate::AutogradMeta).
pub struct DifferentiableViewMeta {
    base: Tensor,
    view_fn: Option<ViewFunc>,
    creation_meta: AtomicU8,
    attr_version: AtomicU32,
}

impl DifferentiableViewMeta {
    /// A view of `base` as it is at `version`.
    pub(crate) fn new(
        base: Tensor,
        view_fn: Option<ViewFunc>,
        creation_meta: CreationMeta,
        version: u32,
    ) -> Self {
        Self {
            base,
            view_fn,
            creation_meta: AtomicU8::new(creation_meta as u8),
            attr_version: AtomicU32::new(version),
        }
    }

    /// The tensor this is a view of; never a view itself.
    pub fn base(&self) -> &Tensor {
        &self.base
    }

    /// How to make the view anew, where `as_strided` can't.
    pub fn view_fn(&self) -> Option<&ViewFunc> {
        self.view_fn.as_ref()
    }

    /// How the view came to be.
    pub fn creation_meta(&self) -> CreationMeta {
        CreationMeta::from_u8(self.creation_meta.load(Ordering::Relaxed))
    }

    /// Changes how the view is said to have come to be.
    pub fn set_creation_meta(&self, meta: CreationMeta) {
        self.creation_meta.store(meta as u8, Ordering::Relaxed);
    }

    /// The version at which the view's `grad_fn` was right.
    pub(crate) fn attr_version(&self) -> u32 {
        self.attr_version.load(Ordering::Acquire)
    }

    pub(crate) fn set_attr_version(&self, version: u32) {
        self.attr_version.store(version, Ordering::Release);
    }
}
