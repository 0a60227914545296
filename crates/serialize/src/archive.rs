//! A checkpoint file of either format.

use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::Path;

use crate::bytes::Bytes;
use crate::dtype::{swap_bytes, swap_size};
use crate::error::{error, ErrorKind, Result, SerializeError};
use crate::legacy::{is_stream, StreamFile};
use crate::limits::Limits;
use crate::pickle::allow_list::GlobalPolicy;
use crate::pickle::records::StorageRecord;
use crate::pickle::unpickler::Unpickler;
use crate::pickle::value::Pickle;
use crate::zip::reader::ZipReader;

/// What a file is, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A zip archive, the format of `torch.save`.
    Zip,
    /// The stream format of `torch.save(_use_new_zipfile_serialization=False)` and of versions before 1.6.
    Legacy,
    /// A zip archive of `torch.jit.save`, which holds programs.
    TorchScript,
    /// The tar files of the first versions.
    Tar,
    /// None of these.
    Unknown,
}

impl FileKind {
    /// Looks at `bytes`, the whole file.
    pub fn of(bytes: &Bytes) -> Self {
        if bytes.starts_with(b"PK\x03\x04") {
            return match ZipReader::new(bytes.clone(), &Limits::default()) {
                Ok(zip) if is_torchscript(&zip) => FileKind::TorchScript,
                // Also for a damaged one: opening it says what is wrong.
                _ => FileKind::Zip,
            };
        }
        if bytes.get(257..262) == Some(b"ustar") {
            return FileKind::Tar;
        }
        if is_stream(bytes) {
            return FileKind::Legacy;
        }
        FileKind::Unknown
    }
}

/// Programs keep their constants in a record of their own, which checkpoints do not have.
fn is_torchscript(zip: &ZipReader) -> bool {
    let name = zip.entries().first().and_then(|e| e.name.split_once('/'));
    name.is_some_and(|(name, _)| zip.entry(&format!("{name}/constants.pkl")).is_some())
}

/// The order of the bytes in the storages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// That of this machine.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };
}

/// How to open a file.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Map the file instead of reading it into memory; see [`Bytes::map`].
    pub mmap: bool,
    /// Bounds to keep.
    pub limits: Limits,
    /// Compare the data of a storage with its checksum when it is asked for. The pickle is always compared.
    pub verify_storages: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { mmap: true, limits: Limits::default(), verify_storages: true }
    }
}

/// The versions of archives that PyTorch reads.
const READ_VERSIONS: RangeInclusive<u64> = 1..=10;

/// The opcode that tells the protocol of a pickle.
const PROTO: u8 = 0x80;

/// What is wrong with a file that is neither an archive nor a stream: another pickle, a part of one, or something else.
fn not_a_checkpoint(bytes: &[u8], limits: &Limits) -> SerializeError {
    let unpickler = Unpickler::new().policy(GlobalPolicy::any()).limits(limits.clone());
    match unpickler.load_prefix(bytes) {
        Ok(_) => error!(Corrupt, "Invalid magic number; corrupt file? It begins with another pickle"),
        // Any text may begin as a pickle would; one of our day begins with its protocol.
        Err(error) if error.kind() == ErrorKind::Truncated && bytes.first() == Some(&PROTO) => error,
        Err(_) => error!(
            UnknownFormat,
            "the file is not a checkpoint: expected a zip archive or a stream that begins with PyTorch's magic \
             number, got the bytes {:02x?}",
            &bytes[..bytes.len().min(8)]
        ),
    }
}

#[derive(Debug)]
enum Content {
    Zip { zip: ZipReader, name: String },
    Legacy(StreamFile),
}

/// An opened checkpoint: its pickle and its storages.
#[derive(Debug)]
pub struct Archive {
    content: Content,
    byte_order: ByteOrder,
    options: OpenOptions,
}

impl Archive {
    /// Maps and opens `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Archive::open_with(path, OpenOptions::default())
    }

    /// Opens `path` as `options` say.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let bytes = if options.mmap {
            let file = File::open(path)
                .map_err(|e| SerializeError::io(format_args!("open `{}`", path.display()), e))?;
            Bytes::map(&file)?
        } else {
            let data = fs::read(path)
                .map_err(|e| SerializeError::io(format_args!("read `{}`", path.display()), e))?;
            Bytes::from_vec(data)
        };
        Archive::from_bytes(bytes, options)
    }

    /// Opens a file that is in memory.
    pub fn from_vec(data: Vec<u8>) -> Result<Self> {
        Archive::from_bytes(Bytes::from_vec(data), OpenOptions::default())
    }

    /// Opens a file that is in memory or mapped.
    pub fn from_bytes(bytes: Bytes, options: OpenOptions) -> Result<Self> {
        match FileKind::of(&bytes) {
            FileKind::Zip => {}
            FileKind::Legacy => {
                return Ok(Archive {
                    content: Content::Legacy(StreamFile::new(bytes, &options.limits)?),
                    byte_order: ByteOrder::Little,
                    options,
                })
            }
            FileKind::TorchScript => {
                return Err(error!(
                    Unsupported,
                    "the file is a TorchScript archive (written by `torch.jit.save`), which holds a program and is not \
                     read; save the `state_dict()` of the module instead"
                ))
            }
            FileKind::Tar => {
                return Err(error!(
                    Unsupported,
                    "the file is in the tar format of PyTorch before 0.2, which is not read; load and save it again \
                     with a newer PyTorch"
                ))
            }
            FileKind::Unknown if bytes.is_empty() => {
                return Err(error!(UnknownFormat, "the file is empty"))
            }
            FileKind::Unknown => return Err(not_a_checkpoint(&bytes, &options.limits)),
        }
        let zip = ZipReader::new(bytes, &options.limits)?;
        let name = zip
            .entries()
            .first()
            .and_then(|entry| entry.name.split_once('/'))
            .map(|(name, _)| name.to_owned())
            .ok_or_else(|| {
                error!(
                    Corrupt,
                    "the zip archive is not a checkpoint: its records must be inside one directory"
                )
            })?;
        let mut archive =
            Archive { content: Content::Zip { zip, name }, byte_order: ByteOrder::Little, options };
        archive.check_version()?;
        if archive.has_record("byteorder") {
            archive.byte_order = match &archive.record("byteorder")?[..] {
                b"little" => ByteOrder::Little,
                b"big" => ByteOrder::Big,
                other => {
                    return Err(error!(
                        ByteOrder,
                        "expected `little` or `big`, got `{}`",
                        String::from_utf8_lossy(&other[..other.len().min(20)])
                    )
                    .in_record("byteorder"))
                }
            };
        }
        Ok(archive)
    }

    /// Refuses archives whose version is not one of those that are read.
    fn check_version(&self) -> Result<()> {
        let name = if self.has_record(".data/version") { ".data/version" } else { "version" };
        let record = self.record(name)?;
        let text = String::from_utf8_lossy(&record[..record.len().min(20)]).trim().to_owned();
        match text.parse::<u64>() {
            Ok(version) if READ_VERSIONS.contains(&version) => Ok(()),
            Ok(version) => Err(error!(
                Unsupported,
                "the file has version {version}, and versions {} to {} are read",
                READ_VERSIONS.start(),
                READ_VERSIONS.end()
            )
            .in_record(name)),
            Err(_) => Err(error!(Corrupt, "expected the number of a version, got `{text}`").in_record(name)),
        }
    }

    /// [`FileKind::Zip`] or [`FileKind::Legacy`].
    pub fn kind(&self) -> FileKind {
        match self.content {
            Content::Zip { .. } => FileKind::Zip,
            Content::Legacy(_) => FileKind::Legacy,
        }
    }

    /// How many bytes of the file the value and its storages take: a stream may be followed by others, an archive is the whole
    /// file (`None`).
    pub fn stream_len(&self) -> Option<usize> {
        match &self.content {
            Content::Zip { .. } => None,
            Content::Legacy(stream) => Some(stream.end()),
        }
    }

    /// The order in which the storages are written. Files without a mark are little-endian.
    pub fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// Reads the pickle, letting only weights-only globals through.
    pub fn load(&self) -> Result<Pickle> {
        self.load_with(&GlobalPolicy::weights_only())
    }

    /// Reads the pickle under `policy`.
    pub fn load_with(&self, policy: &GlobalPolicy) -> Result<Pickle> {
        Unpickler::new()
            .policy(policy.clone())
            .limits(self.options.limits.clone())
            .load(&self.pickle_bytes()?)
            .map_err(|e| e.in_record("data.pkl"))
    }

    /// The pickle as it is in the file.
    pub fn pickle_bytes(&self) -> Result<Bytes> {
        match &self.content {
            Content::Zip { .. } => self.record("data.pkl"),
            Content::Legacy(stream) => stream.pickle(),
        }
    }

    /// Keys of the storages, in file order.
    pub fn storage_keys(&self) -> Vec<&str> {
        match &self.content {
            Content::Zip { .. } => {
                self.record_names().filter_map(|name| name.strip_prefix("data/")).collect()
            }
            Content::Legacy(stream) => stream.keys().iter().map(String::as_str).collect(),
        }
    }

    /// The data of storage `key`, as it is in the file.
    pub fn storage(&self, key: &str) -> Result<Bytes> {
        match &self.content {
            Content::Zip { .. } => self.read(&format!("data/{key}"), self.options.verify_storages),
            Content::Legacy(stream) => stream.storage(key),
        }
    }

    /// The data that `record` describes, in the order of the file; an error when the file has less, or another amount
    /// in a record of its own.
    pub fn storage_for(&self, record: &StorageRecord) -> Result<Bytes> {
        let expected = record.nbytes()?;
        let data = self.storage(&record.key)?;
        let own_record = matches!(self.content, Content::Zip { .. });
        if expected > data.len() as u64 || (own_record && expected != data.len() as u64) {
            return Err(error!(
                Size,
                "expected {expected} bytes ({} elements of {}), got {}",
                record.numel,
                record.dtype,
                data.len()
            )
            .in_record(format!("data/{}", record.key))
            .at(data.offset() as u64));
        }
        data.slice(0..expected as usize)
    }

    /// The data that `record` describes, in the order of this machine, with elements of `dtype` (which for an untyped
    /// storage only the tensor knows). Copies only when the order of the file is the other one.
    pub fn native_storage_for(&self, record: &StorageRecord, dtype: &str) -> Result<Bytes> {
        let data = self.storage_for(record)?;
        if self.byte_order == ByteOrder::NATIVE {
            return Ok(data);
        }
        let unit =
            swap_size(dtype).ok_or_else(|| error!(Unsupported, "`{dtype}` is no dtype this crate knows"))?;
        let mut swapped = data.to_vec();
        swap_bytes(&mut swapped, unit);
        Ok(Bytes::from_vec(swapped))
    }

    /// Names of all records, without the archive name. A stream file has none.
    pub fn record_names(&self) -> impl Iterator<Item = &str> {
        let zip = match &self.content {
            Content::Zip { zip, name } => Some((zip, name)),
            Content::Legacy(_) => None,
        };
        zip.into_iter().flat_map(|(zip, name)| {
            zip.entries().iter().filter_map(move |entry| {
                entry.name.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('/'))
            })
        })
    }

    /// Whether there is a record of this name.
    pub fn has_record(&self, record: &str) -> bool {
        match &self.content {
            Content::Zip { zip, name } => zip.entry(&format!("{name}/{record}")).is_some(),
            Content::Legacy(_) => false,
        }
    }

    /// The content of a record, compared with its checksum.
    pub fn record(&self, record: &str) -> Result<Bytes> {
        self.read(record, true)
    }

    fn read(&self, record: &str, verify: bool) -> Result<Bytes> {
        let Content::Zip { zip, name } = &self.content else {
            return Err(error!(Missing, "a stream file has no records").in_record(record));
        };
        let entry = zip
            .entry(&format!("{name}/{record}"))
            .ok_or_else(|| error!(Missing, "the archive has no such record").in_record(record))?;
        if verify {
            zip.read(entry)
        } else {
            zip.read_unverified(entry)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::pickle::builder::PickleBuilder;
    use crate::pickle::pickler::Pickler;
    use crate::pickle::records::TensorRecord;
    use crate::zip::writer::ArchiveWriter;

    fn checkpoint(order: &[u8], data: &[u8]) -> Vec<u8> {
        let mut b = PickleBuilder::new();
        let tensor = b.tensor(&TensorRecord::contiguous("float32", "0", "cpu", &[2]));
        let pickle = b.finish(tensor).unwrap();
        let mut writer = ArchiveWriter::new(Vec::new(), "m").unwrap();
        let pickle = Pickler::new().dump(&pickle).unwrap();
        writer.write_record("data.pkl", &pickle).unwrap();
        writer.write_record("byteorder", order).unwrap();
        writer.write_storage("0", data).unwrap();
        writer.finish().unwrap()
    }

    fn record(archive: &Archive) -> StorageRecord {
        let pickle = archive.load().unwrap();
        pickle.tensor_record(pickle.root()).unwrap().unwrap().storage
    }

    #[test]
    fn byte_order_is_honoured() {
        let archive = Archive::from_vec(checkpoint(b"big", &[1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
        assert_eq!(archive.byte_order(), ByteOrder::Big);
        let data = archive.native_storage_for(&record(&archive), "float32").unwrap();
        if ByteOrder::NATIVE == ByteOrder::Little {
            assert_eq!(&data[..], &[4, 3, 2, 1, 8, 7, 6, 5]);
        }
        let error = Archive::from_vec(checkpoint(b"middle", &[0; 8])).unwrap_err();
        assert_eq!(error.record(), Some("byteorder"));
    }

    #[test]
    fn a_storage_of_another_size_is_an_error() {
        let archive = Archive::from_vec(checkpoint(b"little", &[0; 7])).unwrap();
        let error = archive.storage_for(&record(&archive)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Size);
        assert!(error.to_string().contains("expected 8 bytes (2 elements of float32), got 7"));
        let archive = Archive::from_vec(checkpoint(b"little", &[0; 9])).unwrap();
        let error = archive.storage_for(&record(&archive)).unwrap_err();
        assert!(error.to_string().contains("expected 8 bytes (2 elements of float32), got 9"));
    }

    #[test]
    fn kinds_are_told_by_content() {
        let kind = |data: Vec<u8>| FileKind::of(&Bytes::from_vec(data));
        assert_eq!(kind(checkpoint(b"little", &[])), FileKind::Zip);
        assert_eq!(kind(b"hello".to_vec()), FileKind::Unknown);
        assert_eq!(kind(Vec::new()), FileKind::Unknown);
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(kind(tar.clone()), FileKind::Tar);
        let mut writer = ArchiveWriter::new(Vec::new(), "m").unwrap();
        writer.write_record("data.pkl", b"N.").unwrap();
        writer.write_record("constants.pkl", b").").unwrap();
        let script = writer.finish().unwrap();
        assert_eq!(kind(script.clone()), FileKind::TorchScript);
        assert_eq!(Archive::from_vec(script).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Archive::from_vec(tar).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Archive::from_vec(vec![]).unwrap_err().kind(), ErrorKind::UnknownFormat);
    }

    #[test]
    fn a_missing_record_is_named() {
        let archive = Archive::from_vec(checkpoint(b"little", &[0; 8])).unwrap();
        let error = archive.storage("17").unwrap_err();
        assert_eq!((error.kind(), error.record()), (ErrorKind::Missing, Some("data/17")));
        assert_eq!(archive.storage_keys(), ["0"]);
    }
}
