//! Texts and sequences that Python passes: as large as somebody chose.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::Res;

/// Fails if a sequence of this many values cannot be handled. It is copied several times, its values take up to 32 bytes,
/// vectors grow to twice what they hold, and where it lies inside others (`Arc<[Tensor]>`) or beside them (the edges of a
/// graph) it is not allocated fallibly.
#[inline]
pub(crate) fn check_memory_for(values: usize) -> c10::Result<()> {
    /// Below, c10's Note [Memory reserve] sees to it.
    const SHORT: usize = 1 << 15;
    if values > SHORT {
        c10::try_with_capacity::<[u8; 128]>(values)?;
    }
    Ok(())
}

/// [`check_memory_for`] what is in a tuple or list.
pub(crate) fn check_memory_for_items(sequence: &Bound<'_, PyAny>) -> c10::Result<()> {
    if let Ok(tuple) = sequence.cast::<PyTuple>() {
        return check_memory_for(tuple.len());
    }
    sequence.cast::<PyList>().map_or(Ok(()), |list| check_memory_for(list.len()))
}

/// Fails if there is no memory to handle a text of this length. It is copied and quoted in errors on the way, where it is
/// not allocated fallibly; or it is parsed into something that is larger.
fn check_memory_for_text(len: usize) -> c10::Result<()> {
    /// Below, c10's Note [Memory reserve] sees to it.
    const SHORT: usize = 1 << 16;
    if len > SHORT {
        c10::try_with_capacity::<[u8; 32]>(len)?;
    }
    Ok(())
}

/// The text of a string argument. Lone surrogates, which no text has, are an error of PyTorch's class.
pub(crate) fn text_of<'a>(text: &'a Bound<'_, PyString>) -> Res<&'a str> {
    let shown = text.to_str().map_err(|error| {
        c10::Error::runtime(format!("error unpacking string as utf-8: {}", error.value(text.py())))
    })?;
    check_memory_for_text(shown.len())?;
    Ok(shown)
}

/// A string argument of a function made by PyO3.
#[derive(Clone, Copy)]
pub(crate) struct TextArgument<'a>(&'a str);

impl std::ops::Deref for TextArgument<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl std::fmt::Display for TextArgument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for TextArgument<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.extract::<&str>()?;
        check_memory_for_text(text.len()).map_err(crate::convert::errors::to_python)?;
        Ok(TextArgument(text))
    }
}
