//! The stream format that `torch.save` wrote before the zip archive: pickles one after the other, then the raw storages.

mod stream;

pub(crate) use stream::{is_stream, StreamFile};
