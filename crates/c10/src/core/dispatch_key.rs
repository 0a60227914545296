//! The names of everything that may handle an operator call.
//!
//! A call is handled by the *highest* key present, so the order of [`DispatchKey`] is the semantics of the
//! system: what stands later runs earlier, sees the call before everything above it in the list, and usually
//! redispatches downwards. Read from the bottom: modes that intercept everything (PythonDispatcher, functorch's
//! front), then transforms (`vmap`), autocast (before autograd, so that casts are differentiated), tracing,
//! autograd, then ADInplaceOrView (views and versions, wanted below autograd even when grad mode is off),
//! then the lazy bits, functionalization and Python subclasses (which see what autograd already recorded), and at
//! the end the backends, which compute.
//!
//! There are three sorts of keys:
//!
//! * *functionality keys* `Undefined..=PythonDispatcher`: what a [`DispatchKeySet`](crate::DispatchKeySet) stores. Six of
//!   them ([`DispatchKey::is_per_backend_functionality`]) are shared by all backends and are, for a call,
//!   combined with the set's highest backend;
//! * *runtime keys per backend* such as `CPU`, `SparseCUDA`, `AutogradMeta`: such a combination, for which
//!   kernels are registered;
//! * *alias keys*, which name sets of runtime keys at registration and never occur in a set.
//!
//! The numbers are PyTorch's.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A backend: the low bits of a [`DispatchKeySet`](crate::DispatchKeySet), which say for whom a per-backend
/// functionality acts. When tensors of several backends meet, the later one wins (`Meta` over all).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // The names are PyTorch's names of devices.
pub enum BackendComponent {
    /// No backend.
    InvalidBit = 0,
    CPUBit = 1,
    CUDABit = 2,
    HIPBit = 3,
    XLABit = 4,
    MPSBit = 5,
    IPUBit = 6,
    XPUBit = 7,
    HPUBit = 8,
    VEBit = 9,
    LazyBit = 10,
    MTIABit = 11,
    MAIABit = 12,
    PrivateUse1Bit = 13,
    PrivateUse2Bit = 14,
    PrivateUse3Bit = 15,
    MetaBit = 16,
}

/// How many backends have bits of their own.
pub const NUM_BACKENDS: usize = 16;

/// How many functionality keys there are, `Undefined` included.
pub const NUM_FUNCTIONALITY_KEYS: usize = 47;

/// How many functionalities have one runtime key per backend.
pub const NUM_PER_BACKEND_FUNCTIONALITIES: usize = 6;

/// How many numbers a per-backend block spans: PyTorch counts a start marker in each.
const BLOCK: u16 = NUM_BACKENDS as u16 + 1;

/// The number before the first key of the first per-backend block.
const FIRST_BLOCK: u16 = NUM_FUNCTIONALITY_KEYS as u16 + 1;

const PER_BACKEND_FUNCTIONALITIES: [DispatchKey; NUM_PER_BACKEND_FUNCTIONALITIES] = [
    DispatchKey::Dense,
    DispatchKey::Quantized,
    DispatchKey::Sparse,
    DispatchKey::SparseCsr,
    DispatchKey::NestedTensor,
    DispatchKey::AutogradFunctionality,
];

const BACKENDS: [BackendComponent; NUM_BACKENDS] = {
    use BackendComponent::*;
    [
        CPUBit,
        CUDABit,
        HIPBit,
        XLABit,
        MPSBit,
        IPUBit,
        XPUBit,
        HPUBit,
        VEBit,
        LazyBit,
        MTIABit,
        MAIABit,
        PrivateUse1Bit,
        PrivateUse2Bit,
        PrivateUse3Bit,
        MetaBit,
    ]
};

const PER_BACKEND_KEYS: [[DispatchKey; NUM_BACKENDS]; NUM_PER_BACKEND_FUNCTIONALITIES] = {
    use DispatchKey::*;
    [
        [
            CPU,
            CUDA,
            HIP,
            XLA,
            MPS,
            IPU,
            XPU,
            HPU,
            VE,
            Lazy,
            MTIA,
            MAIA,
            PrivateUse1,
            PrivateUse2,
            PrivateUse3,
            Meta,
        ],
        [
            QuantizedCPU,
            QuantizedCUDA,
            QuantizedHIP,
            QuantizedXLA,
            QuantizedMPS,
            QuantizedIPU,
            QuantizedXPU,
            QuantizedHPU,
            QuantizedVE,
            QuantizedLazy,
            QuantizedMTIA,
            QuantizedMAIA,
            QuantizedPrivateUse1,
            QuantizedPrivateUse2,
            QuantizedPrivateUse3,
            QuantizedMeta,
        ],
        [
            SparseCPU,
            SparseCUDA,
            SparseHIP,
            SparseXLA,
            SparseMPS,
            SparseIPU,
            SparseXPU,
            SparseHPU,
            SparseVE,
            SparseLazy,
            SparseMTIA,
            SparseMAIA,
            SparsePrivateUse1,
            SparsePrivateUse2,
            SparsePrivateUse3,
            SparseMeta,
        ],
        [
            SparseCsrCPU,
            SparseCsrCUDA,
            SparseCsrHIP,
            SparseCsrXLA,
            SparseCsrMPS,
            SparseCsrIPU,
            SparseCsrXPU,
            SparseCsrHPU,
            SparseCsrVE,
            SparseCsrLazy,
            SparseCsrMTIA,
            SparseCsrMAIA,
            SparseCsrPrivateUse1,
            SparseCsrPrivateUse2,
            SparseCsrPrivateUse3,
            SparseCsrMeta,
        ],
        [
            NestedTensorCPU,
            NestedTensorCUDA,
            NestedTensorHIP,
            NestedTensorXLA,
            NestedTensorMPS,
            NestedTensorIPU,
            NestedTensorXPU,
            NestedTensorHPU,
            NestedTensorVE,
            NestedTensorLazy,
            NestedTensorMTIA,
            NestedTensorMAIA,
            NestedTensorPrivateUse1,
            NestedTensorPrivateUse2,
            NestedTensorPrivateUse3,
            NestedTensorMeta,
        ],
        [
            AutogradCPU,
            AutogradCUDA,
            AutogradHIP,
            AutogradXLA,
            AutogradMPS,
            AutogradIPU,
            AutogradXPU,
            AutogradHPU,
            AutogradVE,
            AutogradLazy,
            AutogradMTIA,
            AutogradMAIA,
            AutogradPrivateUse1,
            AutogradPrivateUse2,
            AutogradPrivateUse3,
            AutogradMeta,
        ],
    ]
};

macro_rules! dispatch_keys {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Who may handle an operator call, in ascending priority: see the module's documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[allow(non_camel_case_types)] // The two TESTING_ONLY names are PyTorch's.
        pub enum DispatchKey {
            $($(#[$doc])* $name = $number,)*
        }

        /// Every key with its name, in order.
        const KEYS: &[(DispatchKey, &str)] = &[$((DispatchKey::$name, stringify!($name)),)*];
    };
}

dispatch_keys! {
    /// No key: the highest key of an empty set, and the slot for calls without tensors.
    Undefined = 0,
    /// Strided tensors computed by a backend (one key per backend: `CPU`, `CUDA`, ...).
    Dense = 1,
    /// Out-of-tree FPGA backends.
    FPGA = 2,
    /// Vulkan textures.
    Vulkan = 3,
    /// Metal textures.
    Metal = 4,
    /// Tensors of quantized dtype (one key per backend).
    Quantized = 5,
    /// Tests of user-written generators.
    CustomRNGKeyId = 6,
    /// Tensors in an opaque blocked layout.
    MkldnnCPU = 7,
    /// COO tensors (one key per backend).
    Sparse = 8,
    /// CSR, CSC, BSR and BSC tensors (one key per backend).
    SparseCsr = 9,
    /// Strided nested tensors (one key per backend).
    NestedTensor = 10,
    /// Factories: no tensor argument says which backend, so a kernel here reads the options and redispatches.
    BackendSelect = 11,
    /// Fake tensors whose metadata lives in the core.
    Fake = 12,
    /// `__torch_dispatch__` of subclasses and modes: below autograd, above backends.
    Python = 13,
    /// Leaves the innermost functorch level and continues on the one below.
    FuncTorchDynamicLayerBackMode = 14,
    /// Turns mutation and views into pure operators.
    Functionalize = 15,
    /// Lazy conjugation: resolves the bit for kernels that do not understand it.
    Conjugate = 16,
    /// Lazy negation, likewise.
    Negative = 17,
    /// Tensors known to be zero that have no memory.
    ZeroTensor = 18,
    /// Bumps versions and records view relations, also when autograd is off.
    ADInplaceOrView = 19,
    /// Autograd of backends without a key of their own.
    AutogradOther = 20,
    /// Autograd (one key per backend: `AutogradCPU`, ...).
    AutogradFunctionality = 21,
    /// Autograd of nested tensors.
    AutogradNestedTensor = 22,
    /// Records a trace of the calls.
    Tracer = 23,
    /// Mixed precision on the CPU.
    AutocastCPU = 24,
    /// Mixed precision on MTIA.
    AutocastMTIA = 25,
    /// Mixed precision on MAIA.
    AutocastMAIA = 26,
    /// Mixed precision on XPU.
    AutocastXPU = 27,
    /// Mixed precision on IPU.
    AutocastIPU = 28,
    /// Mixed precision on HPU.
    AutocastHPU = 29,
    /// Mixed precision on XLA.
    AutocastXLA = 30,
    /// Mixed precision on MPS.
    AutocastMPS = 31,
    /// Mixed precision on CUDA.
    AutocastCUDA = 32,
    /// Mixed precision on PrivateUse1.
    AutocastPrivateUse1 = 33,
    /// `vmap`: batching rules.
    FuncTorchBatched = 34,
    /// `vmap` over the components of a nested tensor.
    BatchedNestedTensor = 35,
    /// Inside `vmap`: random operators are intercepted even without batched arguments.
    FuncTorchVmapMode = 36,
    /// The legacy `vmap`.
    Batched = 37,
    /// Inside the legacy `vmap`.
    VmapMode = 38,
    /// Tensors wrapped by a `grad` or `jvp` level.
    FuncTorchGradWrapper = 39,
    /// Records factory calls to run them later.
    DeferredInit = 40,
    /// Saves the caller's thread-local state so that the Python key can restore it.
    PythonTLSSnapshot = 41,
    /// Enters the innermost functorch level.
    FuncTorchDynamicLayerFrontMode = 42,
    /// Tests: wrappers above everything else.
    TESTING_ONLY_GenericWrapper = 43,
    /// Tests: modes above everything else.
    TESTING_ONLY_GenericMode = 44,
    /// Tracing before any other functionality, for export.
    PreDispatch = 45,
    /// Hands the whole dispatch decision to Python.
    PythonDispatcher = 46,
    /// Dense on CPU.
    CPU = 49,
    /// Dense on CUDA.
    CUDA = 50,
    /// Dense on HIP.
    HIP = 51,
    /// Dense on XLA.
    XLA = 52,
    /// Dense on MPS.
    MPS = 53,
    /// Dense on IPU.
    IPU = 54,
    /// Dense on XPU.
    XPU = 55,
    /// Dense on HPU.
    HPU = 56,
    /// Dense on VE.
    VE = 57,
    /// Dense on Lazy.
    Lazy = 58,
    /// Dense on MTIA.
    MTIA = 59,
    /// Dense on MAIA.
    MAIA = 60,
    /// Dense on PrivateUse1.
    PrivateUse1 = 61,
    /// Dense on PrivateUse2.
    PrivateUse2 = 62,
    /// Dense on PrivateUse3.
    PrivateUse3 = 63,
    /// Dense on Meta.
    Meta = 64,
    /// Quantized on CPU.
    QuantizedCPU = 66,
    /// Quantized on CUDA.
    QuantizedCUDA = 67,
    /// Quantized on HIP.
    QuantizedHIP = 68,
    /// Quantized on XLA.
    QuantizedXLA = 69,
    /// Quantized on MPS.
    QuantizedMPS = 70,
    /// Quantized on IPU.
    QuantizedIPU = 71,
    /// Quantized on XPU.
    QuantizedXPU = 72,
    /// Quantized on HPU.
    QuantizedHPU = 73,
    /// Quantized on VE.
    QuantizedVE = 74,
    /// Quantized on Lazy.
    QuantizedLazy = 75,
    /// Quantized on MTIA.
    QuantizedMTIA = 76,
    /// Quantized on MAIA.
    QuantizedMAIA = 77,
    /// Quantized on PrivateUse1.
    QuantizedPrivateUse1 = 78,
    /// Quantized on PrivateUse2.
    QuantizedPrivateUse2 = 79,
    /// Quantized on PrivateUse3.
    QuantizedPrivateUse3 = 80,
    /// Quantized on Meta.
    QuantizedMeta = 81,
    /// Sparse on CPU.
    SparseCPU = 83,
    /// Sparse on CUDA.
    SparseCUDA = 84,
    /// Sparse on HIP.
    SparseHIP = 85,
    /// Sparse on XLA.
    SparseXLA = 86,
    /// Sparse on MPS.
    SparseMPS = 87,
    /// Sparse on IPU.
    SparseIPU = 88,
    /// Sparse on XPU.
    SparseXPU = 89,
    /// Sparse on HPU.
    SparseHPU = 90,
    /// Sparse on VE.
    SparseVE = 91,
    /// Sparse on Lazy.
    SparseLazy = 92,
    /// Sparse on MTIA.
    SparseMTIA = 93,
    /// Sparse on MAIA.
    SparseMAIA = 94,
    /// Sparse on PrivateUse1.
    SparsePrivateUse1 = 95,
    /// Sparse on PrivateUse2.
    SparsePrivateUse2 = 96,
    /// Sparse on PrivateUse3.
    SparsePrivateUse3 = 97,
    /// Sparse on Meta.
    SparseMeta = 98,
    /// SparseCsr on CPU.
    SparseCsrCPU = 100,
    /// SparseCsr on CUDA.
    SparseCsrCUDA = 101,
    /// SparseCsr on HIP.
    SparseCsrHIP = 102,
    /// SparseCsr on XLA.
    SparseCsrXLA = 103,
    /// SparseCsr on MPS.
    SparseCsrMPS = 104,
    /// SparseCsr on IPU.
    SparseCsrIPU = 105,
    /// SparseCsr on XPU.
    SparseCsrXPU = 106,
    /// SparseCsr on HPU.
    SparseCsrHPU = 107,
    /// SparseCsr on VE.
    SparseCsrVE = 108,
    /// SparseCsr on Lazy.
    SparseCsrLazy = 109,
    /// SparseCsr on MTIA.
    SparseCsrMTIA = 110,
    /// SparseCsr on MAIA.
    SparseCsrMAIA = 111,
    /// SparseCsr on PrivateUse1.
    SparseCsrPrivateUse1 = 112,
    /// SparseCsr on PrivateUse2.
    SparseCsrPrivateUse2 = 113,
    /// SparseCsr on PrivateUse3.
    SparseCsrPrivateUse3 = 114,
    /// SparseCsr on Meta.
    SparseCsrMeta = 115,
    /// NestedTensor on CPU.
    NestedTensorCPU = 117,
    /// NestedTensor on CUDA.
    NestedTensorCUDA = 118,
    /// NestedTensor on HIP.
    NestedTensorHIP = 119,
    /// NestedTensor on XLA.
    NestedTensorXLA = 120,
    /// NestedTensor on MPS.
    NestedTensorMPS = 121,
    /// NestedTensor on IPU.
    NestedTensorIPU = 122,
    /// NestedTensor on XPU.
    NestedTensorXPU = 123,
    /// NestedTensor on HPU.
    NestedTensorHPU = 124,
    /// NestedTensor on VE.
    NestedTensorVE = 125,
    /// NestedTensor on Lazy.
    NestedTensorLazy = 126,
    /// NestedTensor on MTIA.
    NestedTensorMTIA = 127,
    /// NestedTensor on MAIA.
    NestedTensorMAIA = 128,
    /// NestedTensor on PrivateUse1.
    NestedTensorPrivateUse1 = 129,
    /// NestedTensor on PrivateUse2.
    NestedTensorPrivateUse2 = 130,
    /// NestedTensor on PrivateUse3.
    NestedTensorPrivateUse3 = 131,
    /// NestedTensor on Meta.
    NestedTensorMeta = 132,
    /// AutogradFunctionality on CPU.
    AutogradCPU = 134,
    /// AutogradFunctionality on CUDA.
    AutogradCUDA = 135,
    /// AutogradFunctionality on HIP.
    AutogradHIP = 136,
    /// AutogradFunctionality on XLA.
    AutogradXLA = 137,
    /// AutogradFunctionality on MPS.
    AutogradMPS = 138,
    /// AutogradFunctionality on IPU.
    AutogradIPU = 139,
    /// AutogradFunctionality on XPU.
    AutogradXPU = 140,
    /// AutogradFunctionality on HPU.
    AutogradHPU = 141,
    /// AutogradFunctionality on VE.
    AutogradVE = 142,
    /// AutogradFunctionality on Lazy.
    AutogradLazy = 143,
    /// AutogradFunctionality on MTIA.
    AutogradMTIA = 144,
    /// AutogradFunctionality on MAIA.
    AutogradMAIA = 145,
    /// AutogradFunctionality on PrivateUse1.
    AutogradPrivateUse1 = 146,
    /// AutogradFunctionality on PrivateUse2.
    AutogradPrivateUse2 = 147,
    /// AutogradFunctionality on PrivateUse3.
    AutogradPrivateUse3 = 148,
    /// AutogradFunctionality on Meta.
    AutogradMeta = 149,
    /// Alias. All autograd keys.
    Autograd = 150,
    /// Alias. A kernel made of differentiable operators: serves backends and autograd alike.
    CompositeImplicitAutograd = 151,
    /// Alias. A decomposition to be used by `vmap`.
    FuncTorchBatchedDecomposition = 152,
    /// Alias. Like CompositeImplicitAutograd, for nested tensors.
    CompositeImplicitAutogradNestedTensor = 153,
    /// Alias. A kernel made of operators that serves every backend; autograd has its own formula.
    CompositeExplicitAutograd = 154,
    /// Alias. Like CompositeExplicitAutograd, for functional operators decomposed into in-place ones: left out by backends that functionalize.
    CompositeExplicitAutogradNonFunctional = 155,
}

impl BackendComponent {
    /// The `index`-th backend, counted from CPU = 0.
    pub(crate) const fn from_index(index: usize) -> Self {
        BACKENDS[index]
    }

    /// All backends, in order.
    pub const fn all() -> &'static [Self] {
        &BACKENDS
    }
}

impl DispatchKey {
    /// The functionality keys in order; position = number.
    pub(crate) const fn from_functionality_index(index: usize) -> Self {
        KEYS[index].0
    }

    /// All keys, in order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        KEYS.iter().map(|&(key, _)| key)
    }

    /// Whether the key names a set of runtime keys and is used at registration only.
    pub const fn is_alias_key(self) -> bool {
        self as u16 >= Self::Autograd as u16
    }

    /// Whether the key is a functionality that has one runtime key per backend.
    pub const fn is_per_backend_functionality(self) -> bool {
        matches!(
            self,
            Self::Dense
                | Self::Quantized
                | Self::Sparse
                | Self::SparseCsr
                | Self::NestedTensor
                | Self::AutogradFunctionality
        )
    }

    /// Whether the key combines a functionality with a backend (`CPU`, `AutogradMeta`, ...).
    pub const fn is_per_backend_runtime_key(self) -> bool {
        self as u16 >= FIRST_BLOCK && !self.is_alias_key()
    }

    /// The functionality part: `AutogradCPU` gives `AutogradFunctionality`, aliases give `Undefined`.
    pub const fn to_functionality_key(self) -> Self {
        if self.is_alias_key() {
            Self::Undefined
        } else if self.is_per_backend_runtime_key() {
            PER_BACKEND_FUNCTIONALITIES[((self as u16 - FIRST_BLOCK) / BLOCK) as usize]
        } else {
            self
        }
    }

    /// The backend part: `AutogradCPU` gives `CPUBit`, keys without a backend give `InvalidBit`.
    pub const fn to_backend_component(self) -> BackendComponent {
        if self.is_per_backend_runtime_key() {
            BACKENDS[((self as u16 - FIRST_BLOCK) % BLOCK - 1) as usize]
        } else {
            BackendComponent::InvalidBit
        }
    }

    /// The runtime key of a per-backend functionality for a backend. Other functionalities, and
    /// `InvalidBit`, give `Undefined`.
    pub const fn to_runtime_per_backend_functionality_key(self, backend: BackendComponent) -> Self {
        let row = match self {
            Self::Dense => 0,
            Self::Quantized => 1,
            Self::Sparse => 2,
            Self::SparseCsr => 3,
            Self::NestedTensor => 4,
            Self::AutogradFunctionality => 5,
            _ => return Self::Undefined,
        };
        match backend {
            BackendComponent::InvalidBit => Self::Undefined,
            backend => PER_BACKEND_KEYS[row][backend as usize - 1],
        }
    }

    /// The autograd key that belongs to a backend.
    pub const fn autograd_key_of(backend: BackendComponent) -> Self {
        match backend {
            BackendComponent::InvalidBit => Self::AutogradOther,
            backend => Self::AutogradFunctionality.to_runtime_per_backend_functionality_key(backend),
        }
    }

    /// The name, `AutogradCPU`.
    pub fn name(self) -> &'static str {
        // `KEYS` is sorted by number; the search is for messages and registration, not for calls.
        match KEYS.binary_search_by_key(&(self as u16), |&(key, _)| key as u16) {
            Ok(position) => KEYS[position].1,
            Err(_) => "UnknownKey",
        }
    }
}

impl fmt::Display for DispatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DispatchKey {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        KEYS.iter()
            .find(|(_, known)| *known == name)
            .map(|&(key, _)| key)
            .ok_or_else(|| Error::runtime(format!("could not parse dispatch key: {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functionality_keys_stand_at_their_numbers() {
        for (index, &(key, _)) in KEYS.iter().enumerate().take(NUM_FUNCTIONALITY_KEYS) {
            assert_eq!(key as usize, index);
        }
        assert!(KEYS.is_sorted_by_key(|&(key, _)| key as u16));
    }

    #[test]
    fn runtime_keys_split_and_join() {
        for functionality in PER_BACKEND_FUNCTIONALITIES {
            assert!(functionality.is_per_backend_functionality());
            for &backend in BackendComponent::all() {
                let key = functionality.to_runtime_per_backend_functionality_key(backend);
                assert_eq!(key.to_functionality_key(), functionality);
                assert_eq!(key.to_backend_component(), backend);
            }
        }
        assert_eq!(DispatchKey::AutogradCPU.to_functionality_key(), DispatchKey::AutogradFunctionality);
        assert_eq!(DispatchKey::SparseMeta.to_backend_component(), BackendComponent::MetaBit);
    }

    #[test]
    fn names_round_trip() -> Result<()> {
        for key in DispatchKey::all() {
            assert_eq!(key.name().parse::<DispatchKey>()?, key);
        }
        assert_eq!("AutogradCUDA".parse::<DispatchKey>()?, DispatchKey::AutogradCUDA);
        assert!("NoSuchKey".parse::<DispatchKey>().is_err());
        Ok(())
    }
}
