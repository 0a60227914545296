//! `ptr.layout` and `ptr.memory_format` and their objects (`ptr.strided`, `ptr.channels_last`, …).

use c10::{Layout, MemoryFormat};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::singleton::{Singletons, SIZE};
use crate::raw::{Res, TypeBuilder};

static LAYOUTS: Singletons<8> = Singletons::new();
static MEMORY_FORMATS: Singletons<4> = Singletons::new();

const ALL_LAYOUTS: [Layout; 8] = [
    Layout::Strided,
    Layout::Sparse,
    Layout::SparseCsr,
    Layout::Mkldnn,
    Layout::SparseCsc,
    Layout::SparseBsr,
    Layout::SparseBsc,
    Layout::Jagged,
];
const ALL_MEMORY_FORMATS: [MemoryFormat; 4] = [
    MemoryFormat::Contiguous,
    MemoryFormat::Preserve,
    MemoryFormat::ChannelsLast,
    MemoryFormat::ChannelsLast3d,
];

/// The layout object, as a new reference.
pub(crate) fn layout_new_ref(layout: Layout) -> *mut ffi::PyObject {
    LAYOUTS.new_ref(layout as u8)
}

/// The layout that an object is.
#[inline]
pub(crate) fn extract_layout(object: &Bound<'_, PyAny>) -> Option<Layout> {
    LAYOUTS.value(object).and_then(|v| Layout::try_from(v as i8).ok())
}

/// The memory format object, as a new reference.
pub(crate) fn memory_format_new_ref(format: MemoryFormat) -> *mut ffi::PyObject {
    MEMORY_FORMATS.new_ref(format as u8)
}

/// The memory format that an object is.
#[inline]
pub(crate) fn extract_memory_format(object: &Bound<'_, PyAny>) -> Option<MemoryFormat> {
    MEMORY_FORMATS.value(object).and_then(|v| MemoryFormat::try_from(v as i8).ok())
}

/// Makes the types and their objects.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let builder = |name| TypeBuilder::with_size(name, SIZE).flags(ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION);
    LAYOUTS.make_type(py, builder, c"ptr.layout")?;
    module.add("layout", LAYOUTS.type_.bound(py))?;
    for layout in ALL_LAYOUTS {
        let name = short(layout.python_name());
        LAYOUTS.make(py, layout as u8, name)?;
        module.add(name, LAYOUTS.bound(py, layout as u8))?;
    }
    MEMORY_FORMATS.make_type(py, builder, c"ptr.memory_format")?;
    module.add("memory_format", MEMORY_FORMATS.type_.bound(py))?;
    for format in ALL_MEMORY_FORMATS {
        let name = short(format.python_name());
        MEMORY_FORMATS.make(py, format as u8, name)?;
        module.add(name, MEMORY_FORMATS.bound(py, format as u8))?;
    }
    Ok(())
}

/// The name without its module.
fn short(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}
