//! `MemoryFormat`: the order of dimensions a strided tensor is stored in.

use std::fmt;

use crate::{Error, Result};

/// A wanted order of dimensions in memory, numbered as in PyTorch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(i8)]
pub enum MemoryFormat {
    /// Row-major.
    #[default]
    Contiguous = 0,
    /// Keep the input's format if it is dense, else row-major.
    Preserve = 1,
    /// NHWC storage of an NCHW tensor.
    ChannelsLast = 2,
    /// NDHWC storage of an NCDHW tensor.
    ChannelsLast3d = 3,
}

impl MemoryFormat {
    /// Every format, in numeric order.
    pub const ALL: [MemoryFormat; 4] = [
        MemoryFormat::Contiguous,
        MemoryFormat::Preserve,
        MemoryFormat::ChannelsLast,
        MemoryFormat::ChannelsLast3d,
    ];

    /// The core's name, as in error messages.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "Contiguous",
            MemoryFormat::Preserve => "Preserve",
            MemoryFormat::ChannelsLast => "ChannelsLast",
            MemoryFormat::ChannelsLast3d => "ChannelsLast3d",
        }
    }

    /// The name Python shows after the module (`channels_last`).
    pub const fn python_name(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }

    /// Looks a format up by its Python name.
    pub fn from_name(name: &str) -> Option<MemoryFormat> {
        MemoryFormat::ALL.into_iter().find(|m| m.python_name() == name)
    }

    /// The number of dimensions a tensor must have for this format, if it fixes one.
    pub const fn required_dim(self) -> Option<usize> {
        match self {
            MemoryFormat::ChannelsLast => Some(4),
            MemoryFormat::ChannelsLast3d => Some(5),
            MemoryFormat::Contiguous | MemoryFormat::Preserve => None,
        }
    }
}

impl fmt::Display for MemoryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<i8> for MemoryFormat {
    type Error = Error;

    fn try_from(value: i8) -> Result<MemoryFormat> {
        usize::try_from(value)
            .ok()
            .and_then(|i| MemoryFormat::ALL.get(i).copied())
            .ok_or_else(|| Error::value(format!("MemoryFormat: expected a number in 0..4, got {value}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for (i, format) in MemoryFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, i);
            assert_eq!(MemoryFormat::try_from(i as i8).ok(), Some(format));
            assert_eq!(MemoryFormat::from_name(format.python_name()), Some(format));
        }
        assert!(MemoryFormat::try_from(4).is_err());
    }
}
