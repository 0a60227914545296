//! PyTorch's file formats: the zip archive that `torch.save` writes, the stream format that came before it, and
//! the pickles inside both.
//!
//! Nothing in a file is ever executed. A pickle becomes an arena of plain values ([`Pickle`]); turning the globals
//! and calls it records into objects is the business of the caller, who gets them only after the
//! [`GlobalPolicy`] has let them through.
//!
//! ```
//! use serialize::{Archive, ArchiveWriter, Pickler, PickleBuilder, TensorRecord};
//!
//! let mut b = PickleBuilder::new();
//! let weight = b.tensor(&TensorRecord::contiguous("float32", "0", "cpu", &[2]));
//! let key = b.str("weight");
//! let root = b.dict(vec![(key, weight)]);
//! let pickle = b.finish(root)?;
//!
//! let mut writer = ArchiveWriter::new(Vec::new(), "archive")?;
//! let data = [0u8; 8];
//! writer.write_checkpoint(&Pickler::new().dump(&pickle)?, [("0", &data[..])])?;
//! let file = writer.finish()?;
//!
//! let archive = Archive::from_vec(file)?;
//! let pickle = archive.load()?;
//! let weight = pickle.dict_get(pickle.root(), "weight").unwrap();
//! let tensor = pickle.tensor_record(weight)?.unwrap();
//! assert_eq!(archive.storage_for(&tensor.storage)?.len(), 8);
//! # Ok::<(), serialize::SerializeError>(())
//! ```

mod archive;
mod bytes;
mod dtype;
mod error;
mod legacy;
mod limits;
mod memory;
mod pickle;
mod zip;

pub use archive::{Archive, ByteOrder, FileKind, OpenOptions};
pub use bytes::Bytes;
pub use dtype::{dtype_of_storage_type, element_size, storage_type_of_dtype, swap_bytes, swap_size};
pub use error::{ErrorKind, Result, SerializeError};
pub use limits::Limits;
pub use pickle::allow_list::{is_allowed, GlobalPolicy};
pub use pickle::builder::PickleBuilder;
pub use pickle::opcode::Opcode;
pub use pickle::order::Step;
pub use pickle::pickler::Pickler;
pub use pickle::records::{StorageRecord, StorageView, TensorRecord};
pub use pickle::unpickler::Unpickler;
pub use pickle::value::{Construct, NodeId, Object, Pickle, Value};
pub use zip::atomic_file::AtomicFile;
pub use zip::reader::{Entry, ZipReader};
pub use zip::writer::{archive_name_of, ArchiveWriter};
