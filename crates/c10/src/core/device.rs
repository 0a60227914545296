//! `DeviceType` and `Device`: where a tensor's data lives.

use std::fmt;
use std::str::FromStr;

use parking_lot::RwLock;

use crate::{Error, Result};

/// Number of a device among those of its type; -1 means "the current one".
pub type DeviceIndex = i8;

/// The kind of a device, numbered as in PyTorch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(i8)]
#[allow(clippy::upper_case_acronyms)]
pub enum DeviceType {
    /// The host.
    CPU = 0,
    /// NVIDIA GPUs.
    CUDA = 1,
    /// Reserved for explicit oneDNN.
    MKLDNN = 2,
    /// OpenGL.
    OPENGL = 3,
    /// OpenCL.
    OPENCL = 4,
    /// IDEEP.
    IDEEP = 5,
    /// AMD GPUs.
    HIP = 6,
    /// FPGAs.
    FPGA = 7,
    /// ONNX Runtime's Maia.
    MAIA = 8,
    /// XLA devices.
    XLA = 9,
    /// Vulkan.
    Vulkan = 10,
    /// Metal.
    Metal = 11,
    /// Intel GPUs.
    XPU = 12,
    /// Apple GPUs.
    MPS = 13,
    /// Shapes without data.
    Meta = 14,
    /// Habana.
    HPU = 15,
    /// NEC SX-Aurora.
    VE = 16,
    /// Lazy tensors.
    Lazy = 17,
    /// Graphcore IPUs.
    IPU = 18,
    /// Meta's training and inference accelerators.
    MTIA = 19,
    /// An out-of-tree backend; its name can be changed once.
    PrivateUse1 = 20,
}

/// One more than the largest `DeviceType`: the size of per-device-type tables.
pub const NUM_DEVICE_TYPES: usize = 21;

/// The name given to `DeviceType::PrivateUse1`; leaked once, so that names are `&'static str`.
static PRIVATEUSE1_NAME: RwLock<Option<&'static str>> = RwLock::new(None);

/// The device types a string may start with, in the order error messages list them.
const PARSEABLE: [DeviceType; 20] = [
    DeviceType::CPU,
    DeviceType::CUDA,
    DeviceType::IPU,
    DeviceType::XPU,
    DeviceType::MKLDNN,
    DeviceType::OPENGL,
    DeviceType::OPENCL,
    DeviceType::IDEEP,
    DeviceType::HIP,
    DeviceType::VE,
    DeviceType::FPGA,
    DeviceType::MAIA,
    DeviceType::XLA,
    DeviceType::Lazy,
    DeviceType::Vulkan,
    DeviceType::MPS,
    DeviceType::Meta,
    DeviceType::HPU,
    DeviceType::MTIA,
    DeviceType::PrivateUse1,
];

impl DeviceType {
    /// Every device type, in numeric order.
    pub const ALL: [DeviceType; NUM_DEVICE_TYPES] = [
        DeviceType::CPU,
        DeviceType::CUDA,
        DeviceType::MKLDNN,
        DeviceType::OPENGL,
        DeviceType::OPENCL,
        DeviceType::IDEEP,
        DeviceType::HIP,
        DeviceType::FPGA,
        DeviceType::MAIA,
        DeviceType::XLA,
        DeviceType::Vulkan,
        DeviceType::Metal,
        DeviceType::XPU,
        DeviceType::MPS,
        DeviceType::Meta,
        DeviceType::HPU,
        DeviceType::VE,
        DeviceType::Lazy,
        DeviceType::IPU,
        DeviceType::MTIA,
        DeviceType::PrivateUse1,
    ];

    /// The name device strings use (`cuda`); for `PrivateUse1` the name it was given.
    pub fn lower_case_name(self) -> &'static str {
        match self {
            DeviceType::CPU => "cpu",
            DeviceType::CUDA => "cuda",
            DeviceType::MKLDNN => "mkldnn",
            DeviceType::OPENGL => "opengl",
            DeviceType::OPENCL => "opencl",
            DeviceType::IDEEP => "ideep",
            DeviceType::HIP => "hip",
            DeviceType::FPGA => "fpga",
            DeviceType::MAIA => "maia",
            DeviceType::XLA => "xla",
            DeviceType::Vulkan => "vulkan",
            DeviceType::Metal => "metal",
            DeviceType::XPU => "xpu",
            DeviceType::MPS => "mps",
            DeviceType::Meta => "meta",
            DeviceType::HPU => "hpu",
            DeviceType::VE => "ve",
            DeviceType::Lazy => "lazy",
            DeviceType::IPU => "ipu",
            DeviceType::MTIA => "mtia",
            DeviceType::PrivateUse1 => get_privateuse1_backend(),
        }
    }

    /// The name messages use (`CUDA`).
    pub fn name(self) -> String {
        self.lower_case_name().to_ascii_uppercase()
    }

    /// Index into a table with `NUM_DEVICE_TYPES` rows.
    pub const fn as_index(self) -> usize {
        self as i8 as usize
    }

    fn from_lower_case_name(name: &str) -> Option<DeviceType> {
        // A renamed PrivateUse1 still answers to its original name.
        if name == "privateuseone" {
            return Some(DeviceType::PrivateUse1);
        }
        PARSEABLE.into_iter().find(|t| t.lower_case_name() == name)
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.lower_case_name())
    }
}

impl TryFrom<i8> for DeviceType {
    type Error = Error;

    fn try_from(value: i8) -> Result<DeviceType> {
        usize::try_from(value).ok().and_then(|i| DeviceType::ALL.get(i).copied()).ok_or_else(|| {
            Error::value(format!("DeviceType: expected a number in 0..{NUM_DEVICE_TYPES}, got {value}"))
        })
    }
}

/// The name of the `PrivateUse1` backend: "privateuseone" unless renamed.
pub fn get_privateuse1_backend() -> &'static str {
    PRIVATEUSE1_NAME.read().unwrap_or("privateuseone")
}

/// Gives the `PrivateUse1` backend its name. It can be set once (again only to the same value).
pub fn register_privateuse1_backend(name: &str) -> Result<()> {
    let mut current = PRIVATEUSE1_NAME.write();
    if let Some(existing) = *current {
        if existing != name {
            return Err(Error::runtime(format!(
                "torch.register_privateuse1_backend() has already been set! Current backend: {existing}"
            )));
        }
        return Ok(());
    }
    let taken =
        DeviceType::ALL.into_iter().any(|t| t != DeviceType::PrivateUse1 && t.lower_case_name() == name);
    if taken || name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Error::runtime(format!(
            "rename_privateuse1_backend(): cannot use name '{name}'; it must be an identifier that is not a device type yet"
        )));
    }
    *current = Some(Box::leak(name.to_owned().into_boxed_str()));
    Ok(())
}

/// True if `PrivateUse1` has been given a name.
pub fn is_privateuse1_backend_registered() -> bool {
    PRIVATEUSE1_NAME.read().is_some()
}

/// A device: a type and, unless it means the current one, an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Device {
    /// The kind of device.
    pub type_: DeviceType,
    /// Which one; -1 for the current one.
    pub index: DeviceIndex,
}

impl Device {
    /// The host.
    pub const CPU: Device = Device { type_: DeviceType::CPU, index: -1 };
    /// Shapes without data.
    pub const META: Device = Device { type_: DeviceType::Meta, index: -1 };

    /// The device `index` of a type, without checking the index.
    pub const fn new(type_: DeviceType, index: DeviceIndex) -> Device {
        Device { type_, index }
    }

    /// The current device of a type.
    pub const fn current(type_: DeviceType) -> Device {
        Device { type_, index: -1 }
    }

    /// As `new`, with PyTorch's checks: the index is at least -1, and -1 or 0 on the host.
    pub fn checked(type_: DeviceType, index: i64) -> Result<Device> {
        if index < -1 {
            return Err(Error::runtime(format!("Device index must be -1 or non-negative, got {index}")));
        }
        let index = DeviceIndex::try_from(index)
            .map_err(|_| Error::runtime(format!("Device index must be at most {}, got {index}", i8::MAX)))?;
        Ok(Device { type_, index })
    }

    /// The kind of device.
    pub const fn device_type(self) -> DeviceType {
        self.type_
    }

    /// True if an index is given.
    pub const fn has_index(self) -> bool {
        self.index != -1
    }

    /// True for the host.
    pub const fn is_cpu(self) -> bool {
        matches!(self.type_, DeviceType::CPU)
    }

    /// True for NVIDIA GPUs.
    pub const fn is_cuda(self) -> bool {
        matches!(self.type_, DeviceType::CUDA)
    }

    /// True for the meta device.
    pub const fn is_meta(self) -> bool {
        matches!(self.type_, DeviceType::Meta)
    }

    /// True for the renameable out-of-tree backend.
    pub const fn is_privateuseone(self) -> bool {
        matches!(self.type_, DeviceType::PrivateUse1)
    }

    /// True for MPS.
    pub const fn is_mps(self) -> bool {
        matches!(self.type_, DeviceType::MPS)
    }

    /// True for Intel GPUs.
    pub const fn is_xpu(self) -> bool {
        matches!(self.type_, DeviceType::XPU)
    }

    /// True if tensors here keep ordinary sizes and strides.
    pub const fn supports_as_strided(self) -> bool {
        !matches!(self.type_, DeviceType::IPU | DeviceType::XLA | DeviceType::Lazy | DeviceType::MTIA)
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::CPU
    }
}

impl From<DeviceType> for Device {
    fn from(type_: DeviceType) -> Device {
        Device::current(type_)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_.lower_case_name())?;
        if self.has_index() {
            write!(f, ":{}", self.index)?;
        }
        Ok(())
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Reads `type` or `type:index`; the index is decimal without leading zeros.
    fn from_str(s: &str) -> Result<Device> {
        if s.is_empty() {
            return Err(Error::runtime("Device string must not be empty"));
        }
        let invalid = || Error::runtime(format!("Invalid device string: '{s}'"));
        let (name, index) = match s.split_once(':') {
            Some((name, index)) => (name, Some(index)),
            None => (s, None),
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(invalid());
        }
        let index = match index {
            None => -1,
            Some(digits) => {
                let plain = !digits.is_empty()
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && (digits.len() == 1 || !digits.starts_with('0'));
                if !plain {
                    return Err(invalid());
                }
                // PyTorch wraps an index above 127 to a negative one; an error is what the user needs.
                digits.parse::<i8>().map_err(|_| {
                    Error::runtime(format!(
                        "Invalid device string: '{s}': device index must be at most {}",
                        i8::MAX
                    ))
                })?
            }
        };
        match DeviceType::from_lower_case_name(name) {
            Some(type_) => Ok(Device { type_, index }),
            None => {
                let known: Vec<&str> = PARSEABLE.into_iter().map(|t| t.lower_case_name()).collect();
                Err(Error::runtime(format!(
                    "Expected one of {} device type at start of device string: {name}",
                    known.join(", ")
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints() {
        for s in ["cpu", "cuda", "cuda:0", "cuda:127", "meta", "cpu:1", "meta:0", "xpu:3"] {
            let device: Device = s.parse().unwrap();
            assert_eq!(device.to_string(), s);
        }
        assert_eq!("cuda:12".parse::<Device>().unwrap(), Device::new(DeviceType::CUDA, 12));
        assert!(!"cuda".parse::<Device>().unwrap().has_index());
    }

    #[test]
    fn rejects_malformed_strings_with_pytorchs_texts() {
        for s in ["cuda:", "cuda:-1", "cuda:01", "cuda:1x", ":1", "cu da", "cuda:1:2"] {
            let message = s.parse::<Device>().unwrap_err().to_string();
            assert!(message.contains(&format!("Invalid device string: '{s}'")), "{message}");
        }
        let message = "".parse::<Device>().unwrap_err().to_string();
        assert!(message.contains("Device string must not be empty"));
        let message = "foo".parse::<Device>().unwrap_err().to_string();
        assert!(message.contains(
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
        ));
        assert!(message.contains("device type at start of device string: foo"));
        assert!("cuda:128".parse::<Device>().is_err());
    }

    #[test]
    fn device_types_are_numbered_as_in_pytorch() {
        for (i, type_) in DeviceType::ALL.into_iter().enumerate() {
            assert_eq!(type_.as_index(), i);
            assert_eq!(DeviceType::try_from(i as i8).ok(), Some(type_));
        }
        assert_eq!(DeviceType::Meta as i8, 14);
        assert!(DeviceType::try_from(21).is_err());
    }

    #[test]
    fn privateuse1_is_renamed_once() {
        assert!(register_privateuse1_backend("cuda").is_err());
        register_privateuse1_backend("npu_test").unwrap();
        register_privateuse1_backend("npu_test").unwrap();
        assert!(register_privateuse1_backend("other").is_err());
        assert!(is_privateuse1_backend_registered());
        let expected = Device::new(DeviceType::PrivateUse1, 1);
        assert_eq!("npu_test:1".parse::<Device>().unwrap(), expected);
        assert_eq!("privateuseone:1".parse::<Device>().unwrap(), expected);
        assert_eq!(expected.to_string(), "npu_test:1");
    }
}
