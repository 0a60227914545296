//! Sets of dispatch keys, in one word.
//!
//! # Representation
//!
//! Every tensor has a set, thread-local state adds and removes keys, and a call goes to the highest key that remains. The
//! set must therefore fold and scan in a few instructions. 47 functionalities × 16 backends do not fit 64 bits, so
//! a set stores the two separately:
//!
//! ```text
//! bit 63                                      16 15            0
//!     | functionality keys 1..=46, one bit each | backends 1..=16 |
//! ```
//!
//! and means the cross product for the six functionalities that have one runtime key per backend:
//! `{Dense, AutogradFunctionality, CPUBit}` is `{CPU, AutogradCPU}`.
//!
//! # What follows from it
//!
//! * [`DispatchKeySet::has`] of a per-backend runtime key needs both of its bits.
//! * Backend bits stay when functionalities are taken away (`-`): a set without `AutogradFunctionality` is still a CPU set.
//! * The union of a CPU and a CUDA tensor's sets has both backends; the higher one is called.
//! * `{Dense}` without a backend bit is no runtime key; it takes the table slot of the first backend.
//!
//! # Who is where
//!
//! | keys | put into a set by | taken out by |
//! |---|---|---|
//! | `Dense`, `Sparse`, `SparseCsr`, `Quantized`, `NestedTensor` + backend | the tensor's constructor, from its layout, dtype and device | nobody |
//! | `Autograd*`, `ADInplaceOrView` | the constructor, unless inference mode is on | their kernels, by a guard, before they redispatch |
//! | `Autocast*` | the constructor | excluded by default; an autocast region includes them |
//! | `BackendSelect` | included by default in thread-local state | its kernel, by masking |
//! | `Conjugate`, `Negative`, `ZeroTensor` | operators that set the bit | the fallback that resolves it |
//! | `Python`, `PythonTLSSnapshot` | a subclass with `__torch_dispatch__`, or a mode | the interpreter while it runs user code |
//! | `Functionalize`, `FuncTorch*` | wrapper tensors and their levels | the transform's interpreter |

#![allow(non_upper_case_globals)] // The constants carry PyTorch's names.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, Sub};

use crate::core::dispatch_key::{
    BackendComponent, DispatchKey, NUM_BACKENDS, NUM_FUNCTIONALITY_KEYS, NUM_PER_BACKEND_FUNCTIONALITIES,
};

/// The bits that hold backends.
const FULL_BACKEND_MASK: u64 = (1 << NUM_BACKENDS) - 1;

/// How many slots an operator's dispatch table has.
pub const NUM_RUNTIME_ENTRIES: usize =
    NUM_FUNCTIONALITY_KEYS + NUM_PER_BACKEND_FUNCTIONALITIES * (NUM_BACKENDS - 1);

/// A set of dispatch keys: see the module's documentation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct DispatchKeySet(u64);

/// Where a functionality's slots start, and which backend bits choose among them.
#[derive(Clone, Copy)]
struct TableOffset {
    offset: u16,
    backend_mask: u16,
}

/// Indexed by functionality; padded to 64 so that a masked index needs no bounds check.
const TABLE_OFFSETS: [TableOffset; 64] = {
    let mut table = [TableOffset { offset: 0, backend_mask: 0 }; 64];
    let mut next = 0;
    let mut index = 0;
    while index < NUM_FUNCTIONALITY_KEYS {
        let per_backend = DispatchKey::from_functionality_index(index).is_per_backend_functionality();
        let backend_mask = if per_backend { u16::MAX } else { 0 };
        table[index] = TableOffset { offset: next, backend_mask };
        next += if per_backend { NUM_BACKENDS as u16 } else { 1 };
        index += 1;
    }
    assert!(next as usize == NUM_RUNTIME_ENTRIES);
    table
};

impl DispatchKeySet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Every functionality and every backend.
    pub const FULL: Self = Self((1 << (NUM_BACKENDS + NUM_FUNCTIONALITY_KEYS - 1)) - 1);

    /// The empty set.
    pub const fn new() -> Self {
        Self(0)
    }

    /// The set with these bits.
    pub const fn from_raw_repr(repr: u64) -> Self {
        Self(repr)
    }

    /// The bits.
    pub const fn raw_repr(self) -> u64 {
        self.0
    }

    /// The set of one key: a functionality alone, or a per-backend runtime key's functionality and backend. Aliases
    /// and `Undefined` give the empty set.
    pub const fn from_key(key: DispatchKey) -> Self {
        let functionality = key.to_functionality_key() as u64;
        if functionality == 0 {
            return Self(0);
        }
        Self(
            1 << (NUM_BACKENDS as u64 + functionality - 1) | Self::from_backend(key.to_backend_component()).0,
        )
    }

    /// The set of several keys.
    pub const fn from_keys(keys: &[DispatchKey]) -> Self {
        let mut repr = 0;
        let mut i = 0;
        while i < keys.len() {
            repr |= Self::from_key(keys[i]).0;
            i += 1;
        }
        Self(repr)
    }

    /// The set of one backend, without functionalities.
    pub const fn from_backend(backend: BackendComponent) -> Self {
        match backend {
            BackendComponent::InvalidBit => Self(0),
            backend => Self(1 << (backend as u64 - 1)),
        }
    }

    /// Every key of lower priority than `key`, and every backend.
    pub const fn full_after(key: DispatchKey) -> Self {
        Self((1 << (NUM_BACKENDS as u64 + key.to_functionality_key() as u64 - 1)) - 1)
    }

    /// Whether all bits of `key` are in the set.
    #[inline]
    pub const fn has(self, key: DispatchKey) -> bool {
        self.has_all(Self::from_key(key))
    }

    /// Whether the backend is in the set.
    #[inline]
    pub const fn has_backend(self, backend: BackendComponent) -> bool {
        self.has_all(Self::from_backend(backend))
    }

    /// Whether `other` is a subset.
    #[inline]
    pub const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit is shared. Asked with functionalities only: a per-backend runtime key would also match
    /// sets that merely share its backend.
    #[inline]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The union, in constant expressions.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection, in constant expressions.
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set without `other`'s functionalities; backends stay.
    #[inline]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & (FULL_BACKEND_MASK | !other.0))
    }

    /// The set with a key added.
    #[inline]
    pub const fn add(self, key: DispatchKey) -> Self {
        self.union(Self::from_key(key))
    }

    /// The set without the key's functionality; the backend stays.
    #[inline]
    pub const fn remove(self, key: DispatchKey) -> Self {
        self.difference(Self::from_key(key))
    }

    /// The set without the backend.
    #[inline]
    pub const fn remove_backend(self, backend: BackendComponent) -> Self {
        Self(self.0 & !Self::from_backend(backend).0)
    }

    /// The number of the highest functionality, 0 for none.
    #[inline]
    const fn highest_functionality_index(self) -> usize {
        (64 - (self.0 >> NUM_BACKENDS).leading_zeros()) as usize
    }

    /// The highest functionality key, `Undefined` for none.
    #[inline]
    pub const fn highest_functionality_key(self) -> DispatchKey {
        DispatchKey::from_functionality_index(self.highest_functionality_index())
    }

    /// The highest backend, `InvalidBit` for none.
    #[inline]
    pub const fn highest_backend_key(self) -> BackendComponent {
        match self.0 & FULL_BACKEND_MASK {
            0 => BackendComponent::InvalidBit,
            bits => BackendComponent::from_index(63 - bits.leading_zeros() as usize),
        }
    }

    /// The runtime key a call with this set goes to.
    #[inline]
    pub const fn highest_priority_type_id(self) -> DispatchKey {
        let functionality = self.highest_functionality_key();
        if functionality.is_per_backend_functionality() {
            functionality.to_runtime_per_backend_functionality_key(self.highest_backend_key())
        } else {
            functionality
        }
    }

    /// The slot of an operator's dispatch table for a call with this set, below [`NUM_RUNTIME_ENTRIES`].
    #[inline]
    pub const fn runtime_index(self) -> usize {
        let TableOffset { offset, backend_mask } = TABLE_OFFSETS[self.highest_functionality_index() & 63];
        // The position of the highest backend, counted from 0; 0 also when the functionality has no backends.
        let backend = 64 - ((self.0 & backend_mask as u64) >> 1).leading_zeros();
        offset as usize + backend as usize
    }

    /// The runtime keys in the set, in ascending priority.
    pub fn iter(self) -> impl Iterator<Item = DispatchKey> {
        let functionalities = (1..NUM_FUNCTIONALITY_KEYS)
            .map(DispatchKey::from_functionality_index)
            .filter(move |&key| self.has(key));
        functionalities.flat_map(move |key| {
            let per_backend = key.is_per_backend_functionality();
            let backends = BackendComponent::all()
                .iter()
                .filter(move |&&backend| per_backend && self.has_backend(backend));
            let runtime = backends.map(move |&backend| key.to_runtime_per_backend_functionality_key(backend));
            runtime.chain((!per_backend).then_some(key))
        })
    }
}

/// The table slot of one runtime key, see [`DispatchKeySet::runtime_index`].
pub const fn dispatch_table_index_for_key(key: DispatchKey) -> usize {
    DispatchKeySet::from_key(key).runtime_index()
}

impl From<DispatchKey> for DispatchKeySet {
    fn from(key: DispatchKey) -> Self {
        Self::from_key(key)
    }
}

impl From<BackendComponent> for DispatchKeySet {
    fn from(backend: BackendComponent) -> Self {
        Self::from_backend(backend)
    }
}

impl FromIterator<DispatchKey> for DispatchKeySet {
    fn from_iter<I: IntoIterator<Item = DispatchKey>>(keys: I) -> Self {
        keys.into_iter().fold(Self::EMPTY, Self::add)
    }
}

impl BitOr for DispatchKeySet {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for DispatchKeySet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for DispatchKeySet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        self.intersection(other)
    }
}

impl BitXor for DispatchKeySet {
    type Output = Self;

    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

/// Takes functionalities away; backends stay.
impl Sub for DispatchKeySet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.difference(other)
    }
}

impl fmt::Display for DispatchKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DispatchKeySet(")?;
        for (i, key) in self.iter().enumerate() {
            write!(f, "{}{key}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for DispatchKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// All autograd functionalities, without backend bits.
pub const autograd_dispatch_keyset: DispatchKeySet = DispatchKeySet::from_keys(&[
    DispatchKey::AutogradFunctionality,
    DispatchKey::AutogradOther,
    DispatchKey::AutogradNestedTensor,
]);

/// All autocast keys.
pub const autocast_dispatch_keyset: DispatchKeySet = DispatchKeySet::from_keys(&[
    DispatchKey::AutocastCPU,
    DispatchKey::AutocastMPS,
    DispatchKey::AutocastCUDA,
    DispatchKey::AutocastXPU,
    DispatchKey::AutocastIPU,
    DispatchKey::AutocastHPU,
    DispatchKey::AutocastXLA,
    DispatchKey::AutocastPrivateUse1,
    DispatchKey::AutocastMTIA,
    DispatchKey::AutocastMAIA,
]);

/// The keys that thread-local state includes by default.
pub const default_included_set: DispatchKeySet =
    DispatchKeySet::from_keys(&[DispatchKey::BackendSelect, DispatchKey::ADInplaceOrView]);

/// The keys that thread-local state excludes by default: autocast is off.
pub const default_excluded_set: DispatchKeySet = autocast_dispatch_keyset;

/// Autograd and what runs directly below it: what inference mode removes.
pub const autograd_dispatch_keyset_with_ADInplaceOrView: DispatchKeySet =
    autograd_dispatch_keyset.add(DispatchKey::ADInplaceOrView);

/// The keys of tensor subclasses with `__torch_dispatch__`.
pub const python_ks: DispatchKeySet =
    DispatchKeySet::from_keys(&[DispatchKey::Python, DispatchKey::PythonTLSSnapshot]);

/// Everything below autograd.
pub const after_autograd_keyset: DispatchKeySet = DispatchKeySet::full_after(DispatchKey::AutogradOther);

/// Everything below ADInplaceOrView.
pub const after_ADInplaceOrView_keyset: DispatchKeySet =
    DispatchKeySet::full_after(DispatchKey::ADInplaceOrView);

/// Everything below Functionalize.
pub const after_func_keyset: DispatchKeySet =
    DispatchKeySet::full_after(DispatchKey::Functionalize).remove(DispatchKey::ADInplaceOrView);

/// Every backend bit, no functionality.
pub const backend_bitset_mask: DispatchKeySet = DispatchKeySet::from_raw_repr(FULL_BACKEND_MASK);

/// Functionalities whose backends may use AutogradOther.
pub const autogradother_backends: DispatchKeySet = DispatchKeySet::from_keys(&[
    DispatchKey::FPGA,
    DispatchKey::Vulkan,
    DispatchKey::Metal,
    DispatchKey::CustomRNGKeyId,
    DispatchKey::MkldnnCPU,
    DispatchKey::Sparse,
    DispatchKey::SparseCsr,
    DispatchKey::Quantized,
])
.union(backend_bitset_mask);

/// The runtime backends that CompositeExplicitAutograd serves. NestedTensor is left out on purpose: kernels written for
/// dense metadata would misread it.
pub const backend_dispatch_keyset: DispatchKeySet = autogradother_backends.add(DispatchKey::Dense);

/// The functionalities in which a backend computes.
pub const backend_functionality_keys: DispatchKeySet = DispatchKeySet::from_keys(&[
    DispatchKey::Dense,
    DispatchKey::Quantized,
    DispatchKey::Sparse,
    DispatchKey::SparseCsr,
])
.union(backend_bitset_mask);

/// The keys of functorch's transforms.
pub const functorch_transforms_ks: DispatchKeySet = DispatchKeySet::from_keys(&[
    DispatchKey::FuncTorchBatched,
    DispatchKey::FuncTorchVmapMode,
    DispatchKey::Batched,
    DispatchKey::VmapMode,
    DispatchKey::FuncTorchGradWrapper,
]);

/// What CompositeExplicitAutogradNonFunctional serves: backends that functionalize in eager mode decompose otherwise.
const non_functional_backend_dispatch_keyset: DispatchKeySet = backend_dispatch_keyset
    .remove(DispatchKey::Sparse)
    .remove_backend(BackendComponent::XLABit)
    .remove_backend(BackendComponent::LazyBit);

/// What CompositeImplicitAutograd serves.
const math_dispatch_keyset: DispatchKeySet = backend_dispatch_keyset
    .union(autograd_dispatch_keyset)
    .add(DispatchKey::NestedTensor)
    .add(DispatchKey::Functionalize);

/// What CompositeImplicitAutogradNestedTensor serves.
const nested_dispatch_keyset: DispatchKeySet =
    DispatchKeySet::from_keys(&[DispatchKey::AutogradNestedTensor, DispatchKey::NestedTensor])
        .union(backend_bitset_mask);

/// The runtime keys for which a registration under `key` counts: an alias's set, or the key itself.
pub const fn get_runtime_dispatch_key_set(key: DispatchKey) -> DispatchKeySet {
    match key {
        DispatchKey::Autograd => autograd_dispatch_keyset.union(backend_bitset_mask),
        DispatchKey::CompositeImplicitAutograd => math_dispatch_keyset,
        DispatchKey::CompositeImplicitAutogradNestedTensor => nested_dispatch_keyset,
        DispatchKey::CompositeExplicitAutograd => backend_dispatch_keyset,
        DispatchKey::CompositeExplicitAutogradNonFunctional => non_functional_backend_dispatch_keyset,
        DispatchKey::FuncTorchBatchedDecomposition => DispatchKeySet::from_key(DispatchKey::FuncTorchBatched),
        key => DispatchKeySet::from_key(key),
    }
}

/// Whether a runtime key belongs to an alias.
pub const fn is_included_in_alias(key: DispatchKey, alias: DispatchKey) -> bool {
    !matches!(key, DispatchKey::Undefined) && get_runtime_dispatch_key_set(alias).has(key)
}

/// Whether a key is a runtime key of a backend that CompositeExplicitAutograd or nested kernels may serve.
pub const fn is_backend_dispatch_key(key: DispatchKey) -> bool {
    !matches!(key, DispatchKey::Undefined)
        && !key.is_alias_key()
        // AutogradNestedTensor's own backend lives here too.
        && (matches!(key.to_functionality_key(), DispatchKey::NestedTensor) || backend_dispatch_keyset.has(key))
}

/// The backends that an autograd key stands above: `AutogradCPU` gives `{CPU}`.
pub const fn get_backend_key_set_from_autograd(key: DispatchKey) -> DispatchKeySet {
    match key {
        DispatchKey::AutogradOther => autogradother_backends,
        DispatchKey::AutogradNestedTensor => {
            DispatchKeySet::from_key(DispatchKey::NestedTensor).union(backend_bitset_mask)
        }
        key => match key.to_functionality_key() {
            DispatchKey::AutogradFunctionality => DispatchKeySet::from_key(
                DispatchKey::Dense.to_runtime_per_backend_functionality_key(key.to_backend_component()),
            ),
            _ => DispatchKeySet::EMPTY,
        },
    }
}

/// The autograd keys of a tensor with this backend: `{ADInplaceOrView, AutogradCPU}`.
pub const fn get_autograd_related_key_set_from_backend(backend: BackendComponent) -> DispatchKeySet {
    DispatchKeySet::from_keys(&[DispatchKey::ADInplaceOrView, DispatchKey::autograd_key_of(backend)])
}

/// The autocast keys of a tensor with this backend; backends without autocast have none.
pub const fn get_autocast_related_key_set_from_backend(backend: BackendComponent) -> DispatchKeySet {
    DispatchKeySet::from_key(match backend {
        BackendComponent::CPUBit => DispatchKey::AutocastCPU,
        BackendComponent::CUDABit => DispatchKey::AutocastCUDA,
        BackendComponent::MTIABit => DispatchKey::AutocastMTIA,
        BackendComponent::MAIABit => DispatchKey::AutocastMAIA,
        BackendComponent::XPUBit => DispatchKey::AutocastXPU,
        BackendComponent::IPUBit => DispatchKey::AutocastIPU,
        BackendComponent::HPUBit => DispatchKey::AutocastHPU,
        BackendComponent::XLABit => DispatchKey::AutocastXLA,
        BackendComponent::MPSBit => DispatchKey::AutocastMPS,
        BackendComponent::PrivateUse1Bit => DispatchKey::AutocastPrivateUse1,
        _ => DispatchKey::Undefined,
    })
}

/// The key of the backend that computes for a tensor with this set.
pub const fn highest_priority_backend_type_id(keys: DispatchKeySet) -> DispatchKey {
    keys.intersection(backend_functionality_keys).highest_priority_type_id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use DispatchKey::*;

    #[test]
    fn a_set_is_a_cross_product() {
        let keys = DispatchKeySet::from_keys(&[CPU, AutogradCPU]);
        assert!(
            keys.has(CPU)
                && keys.has(AutogradCPU)
                && keys.has(Dense)
                && !keys.has(CUDA)
                && !keys.has(SparseCPU)
        );
        assert_eq!(keys.iter().collect::<Vec<_>>(), [CPU, AutogradCPU]);
        assert_eq!(keys.to_string(), "DispatchKeySet(CPU, AutogradCPU)");
        let both = keys | CUDA.into();
        assert_eq!(both.iter().collect::<Vec<_>>(), [CPU, CUDA, AutogradCPU, AutogradCUDA]);
        assert_eq!(both.highest_priority_type_id(), AutogradCUDA);
    }

    #[test]
    fn difference_keeps_backends() {
        let keys = DispatchKeySet::from_keys(&[CPU, AutogradCPU]) - DispatchKeySet::from_key(AutogradCPU);
        assert_eq!(keys, CPU.into());
        assert_eq!(keys.highest_priority_type_id(), CPU);
    }

    #[test]
    fn table_slots_are_distinct_and_dense() {
        let mut slots = vec![0; NUM_RUNTIME_ENTRIES];
        for key in DispatchKey::all() {
            if !key.is_alias_key() && !key.is_per_backend_functionality() {
                slots[dispatch_table_index_for_key(key)] += 1;
            }
        }
        assert!(slots.iter().all(|&n| n == 1), "{slots:?}");
    }

    #[test]
    fn the_index_is_that_of_the_highest_key() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..10_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let keys =
                DispatchKeySet::from_raw_repr(state) & DispatchKeySet::FULL | BackendComponent::CPUBit.into();
            let key = keys.highest_priority_type_id();
            assert_eq!(keys.runtime_index(), dispatch_table_index_for_key(key), "{keys}");
            assert_eq!(keys.iter().last().unwrap_or(Undefined), key);
        }
        assert_eq!(DispatchKeySet::EMPTY.runtime_index(), 0);
    }

    #[test]
    fn aliases() {
        assert!(is_included_in_alias(AutogradCPU, Autograd) && !is_included_in_alias(CPU, Autograd));
        for key in [CPU, AutogradCPU, SparseCUDA, AutogradOther, NestedTensorCPU, Functionalize] {
            assert!(is_included_in_alias(key, CompositeImplicitAutograd), "{key}");
        }
        assert!(!is_included_in_alias(AutogradCPU, CompositeExplicitAutograd));
        assert!(!is_included_in_alias(NestedTensorCPU, CompositeExplicitAutograd));
        assert!(!is_included_in_alias(SparseCPU, CompositeExplicitAutogradNonFunctional));
        assert!(!is_included_in_alias(Python, CompositeImplicitAutograd));
        assert_eq!(get_backend_key_set_from_autograd(AutogradMeta), Meta.into());
    }

    #[test]
    fn what_autograd_leaves() {
        assert!(after_autograd_keyset.has(ADInplaceOrView) && !after_autograd_keyset.has(AutogradCPU));
        assert!(!after_ADInplaceOrView_keyset.has(ADInplaceOrView) && after_ADInplaceOrView_keyset.has(CPU));
        assert!(!after_autograd_keyset.has(AutocastCPU));
    }
}
