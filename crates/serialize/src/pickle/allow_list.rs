//! Which globals a pickle may name: the ones that PyTorch's weights-only unpickler accepts.

use std::collections::HashSet;

use crate::dtype::{dtype_of_storage_type, is_dtype};
use crate::error::{error, Result};

/// Modules that no list can make acceptable.
const BLOCKED_MODULES: &[&str] = &["sys", "os", "posix", "nt"];

const TENSOR_CLASSES: &[&str] = &[
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
];

const QSCHEMES: &[&str] = &[
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
];

const REBUILD_FUNCTIONS: &[&str] = &[
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_qtensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_sparse_tensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor",
    "_rebuild_wrapper_subclass",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor",
];

/// Whether `module.name` is on the list, in PyTorch's spelling.
pub fn is_allowed(module: &str, name: &str) -> bool {
    match module {
        "collections" => matches!(name, "OrderedDict" | "Counter"),
        "_codecs" => name == "encode",
        "builtins" => matches!(name, "bytearray" | "set" | "complex"),
        "torch" => {
            matches!(name, "Size" | "Tensor" | "device" | "BoolTensor")
                || is_dtype(name)
                || is_storage_class(name)
                || TENSOR_CLASSES.contains(&name)
                || QSCHEMES.contains(&name)
        }
        // The quantized classes exist for the CPU only.
        "torch.cuda" => {
            (is_storage_class(name) && !name.starts_with('Q'))
                || TENSOR_CLASSES.contains(&name)
                || name == "BoolTensor"
        }
        "torch.sparse" | "torch.cuda.sparse" => TENSOR_CLASSES.contains(&name),
        "torch.storage" => matches!(name, "TypedStorage" | "UntypedStorage"),
        "torch.nn.parameter" => name == "Parameter",
        "torch.serialization" => name == "_get_layout",
        "torch._utils" => REBUILD_FUNCTIONS.contains(&name),
        "torch._tensor" => name == "_rebuild_from_type_v2",
        _ => false,
    }
}

fn is_storage_class(name: &str) -> bool {
    name != "UntypedStorage" && dtype_of_storage_type(name).is_some()
}

/// What a pickle may name.
#[derive(Clone, Debug, Default)]
pub struct GlobalPolicy {
    any: bool,
    extra: HashSet<String>,
}

impl GlobalPolicy {
    /// Only the globals of [`is_allowed`], as with `torch.load(weights_only=True)`.
    pub fn weights_only() -> Self {
        GlobalPolicy::default()
    }

    /// Every global, as with `weights_only=False`. Reading is as safe as before; what the caller then does with the
    /// names is what needs trust.
    pub fn any() -> Self {
        GlobalPolicy { any: true, extra: HashSet::new() }
    }

    /// Also accepts `full_name` (`"module.name"`), as `torch.serialization.add_safe_globals` does.
    #[must_use]
    pub fn allow(mut self, full_name: impl Into<String>) -> Self {
        self.extra.insert(full_name.into());
        self
    }

    /// Whether every global is accepted.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// The global to record for `module.name` of a file, or why it is refused. Our own package name stands for
    /// `torch`: what both have has the same name in both.
    pub(crate) fn resolve<'a>(
        &self,
        module: &'a str,
        name: &'a str,
    ) -> Result<(std::borrow::Cow<'a, str>, &'a str)> {
        use std::borrow::Cow;

        if let Some(rest) = module.strip_prefix("ptr") {
            if rest.is_empty() || rest.starts_with('.') {
                let spelled = format!("torch{rest}");
                if self.any || is_allowed(&spelled, name) || self.extra.contains(&format!("{spelled}.{name}"))
                {
                    return Ok((Cow::Owned(spelled), name));
                }
            }
        }
        if self.any || is_allowed(module, name) {
            return Ok((Cow::Borrowed(module), name));
        }
        if BLOCKED_MODULES.contains(&module) {
            return Err(error!(
                Global,
                "Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."
            ));
        }
        if self.extra.contains(&format!("{module}.{name}")) {
            return Ok((Cow::Borrowed(module), name));
        }
        let full_name = match module {
            "builtins" => name.to_owned(),
            _ => format!("{module}.{name}"),
        };
        Err(error!(
            Global,
            "Unsupported global: GLOBAL {full_name} was not an allowed global by default. If the file comes from a \
             source you trust, allow it with `serialization.add_safe_globals([{full_name}])` or inside \
             `serialization.safe_globals([{full_name}])`, or load with `weights_only=False`."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_list() {
        for (module, name) in [
            ("torch", "FloatStorage"),
            ("torch", "QUInt4x2Storage"),
            ("torch", "float8_e4m3fn"),
            ("torch", "uint7"),
            ("torch.cuda", "BoolStorage"),
            ("torch.cuda.sparse", "HalfTensor"),
            ("torch.storage", "UntypedStorage"),
            ("torch._utils", "_rebuild_tensor_v3"),
            ("collections", "OrderedDict"),
        ] {
            assert!(is_allowed(module, name), "{module}.{name}");
        }
        for (module, name) in [
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("torch", "load"),
            ("torch", "UntypedStorage"),
            ("torch.cuda", "QInt8Storage"),
            ("torch.sparse", "BoolTensor"),
            ("collections", "defaultdict"),
            ("torch.nn.modules.linear", "Linear"),
            ("os", "system"),
        ] {
            assert!(!is_allowed(module, name), "{module}.{name}");
        }
    }

    #[test]
    fn our_name_is_read_as_pytorchs() {
        let policy = GlobalPolicy::weights_only();
        let (module, name) = policy.resolve("ptr._utils", "_rebuild_tensor_v2").unwrap();
        assert_eq!((&*module, name), ("torch._utils", "_rebuild_tensor_v2"));
        assert!(policy.resolve("ptrx", "Size").is_err());
        assert!(policy.resolve("ptr.nn.modules.linear", "Linear").is_err());
        let allowed = policy.allow("torch.nn.modules.linear.Linear");
        for policy in [allowed, GlobalPolicy::any()] {
            let (module, name) = policy.resolve("ptr.nn.modules.linear", "Linear").unwrap();
            assert_eq!((&*module, name), ("torch.nn.modules.linear", "Linear"));
        }
    }

    #[test]
    fn extra_names_and_blocked_modules() {
        let policy = GlobalPolicy::weights_only().allow("my.Class").allow("os.system");
        assert!(policy.resolve("my", "Class").is_ok());
        let error = policy.resolve("os", "system").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Global);
        let error = policy.resolve("builtins", "eval").unwrap_err();
        assert!(error.message().contains("GLOBAL eval "), "{error}");
        assert!(GlobalPolicy::any().resolve("os", "system").is_ok());
    }
}
