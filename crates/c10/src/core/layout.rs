//! `Layout`: how a tensor's elements are laid out in memory.

use std::fmt;

use crate::{Error, Result};

/// The memory layout of a tensor, numbered as in PyTorch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
#[repr(i8)]
pub enum Layout {
    /// Dense, described by sizes and strides.
    #[default]
    Strided = 0,
    /// Coordinate format (COO).
    Sparse = 1,
    /// Compressed sparse rows.
    SparseCsr = 2,
    /// Opaque oneDNN layout.
    Mkldnn = 3,
    /// Compressed sparse columns.
    SparseCsc = 4,
    /// Compressed sparse rows of dense blocks.
    SparseBsr = 5,
    /// Compressed sparse columns of dense blocks.
    SparseBsc = 6,
    /// Nested tensors whose ragged dimension is described by offsets.
    Jagged = 7,
}

impl Layout {
    /// Every layout, in numeric order.
    pub const ALL: [Layout; 8] = [
        Layout::Strided,
        Layout::Sparse,
        Layout::SparseCsr,
        Layout::Mkldnn,
        Layout::SparseCsc,
        Layout::SparseBsr,
        Layout::SparseBsc,
        Layout::Jagged,
    ];

    /// The core's name, as in error messages (`SparseCsr`).
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Strided => "Strided",
            Layout::Sparse => "Sparse",
            Layout::SparseCsr => "SparseCsr",
            Layout::Mkldnn => "Mkldnn",
            Layout::SparseCsc => "SparseCsc",
            Layout::SparseBsr => "SparseBsr",
            Layout::SparseBsc => "SparseBsc",
            Layout::Jagged => "Jagged",
        }
    }

    /// The name Python shows after the module (`sparse_csr`).
    pub const fn python_name(self) -> &'static str {
        match self {
            Layout::Strided => "strided",
            Layout::Sparse => "sparse_coo",
            Layout::SparseCsr => "sparse_csr",
            Layout::Mkldnn => "_mkldnn",
            Layout::SparseCsc => "sparse_csc",
            Layout::SparseBsr => "sparse_bsr",
            Layout::SparseBsc => "sparse_bsc",
            Layout::Jagged => "jagged",
        }
    }

    /// Looks a layout up by its Python name.
    pub fn from_name(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|l| l.python_name() == name)
    }

    /// True for the four layouts that compress one index.
    pub const fn is_sparse_compressed(self) -> bool {
        matches!(self, Layout::SparseCsr | Layout::SparseCsc | Layout::SparseBsr | Layout::SparseBsc)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<i8> for Layout {
    type Error = Error;

    fn try_from(value: i8) -> Result<Layout> {
        usize::try_from(value)
            .ok()
            .and_then(|i| Layout::ALL.get(i).copied())
            .ok_or_else(|| Error::value(format!("Layout: expected a number in 0..8, got {value}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for (i, layout) in Layout::ALL.into_iter().enumerate() {
            assert_eq!(layout as usize, i);
            assert_eq!(Layout::try_from(i as i8).ok(), Some(layout));
            assert_eq!(Layout::from_name(layout.python_name()), Some(layout));
        }
        assert!(Layout::try_from(8).is_err());
        assert!(Layout::try_from(-1).is_err());
        assert_eq!(Layout::from_name("Strided"), None);
    }
}
