//! Finds the parts of a stream file: magic number, protocol, system description, the value, the storage keys, and for
//! each key an element count and the data.

use std::collections::HashMap;
use std::ops::Range;

use crate::bytes::Bytes;
use crate::dtype::element_size;
use crate::error::{error, Result};
use crate::limits::Limits;
use crate::pickle::allow_list::GlobalPolicy;
use crate::pickle::unpickler::Unpickler;
use crate::pickle::value::{Pickle, Value};

/// `0x1950a86a20f9469cfc6c`, little-endian.
const MAGIC_NUMBER: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL_VERSION: i64 = 1001;
/// The magic number's pickle is shorter than this in every protocol.
const MAGIC_PICKLE: usize = 64;

/// A stream file whose parts have been located and checked against its length.
#[derive(Debug)]
pub(crate) struct StreamFile {
    bytes: Bytes,
    pickle: Range<usize>,
    keys: Vec<String>,
    storages: HashMap<String, Range<usize>>,
    end: usize,
}

/// Whether `bytes` start with the magic number of the stream format.
pub(crate) fn is_stream(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(MAGIC_PICKLE)];
    Unpickler::new().load(head).is_ok_and(|pickle| is_magic(&pickle))
}

fn is_magic(pickle: &Pickle) -> bool {
    matches!(pickle.get(pickle.root()), Value::BigInt(bytes) if *bytes == MAGIC_NUMBER)
}

impl StreamFile {
    /// Locates the parts of `bytes`. The value is read once here to learn the sizes of the storages; which globals it
    /// may name is decided when it is [loaded](Self::pickle).
    pub(crate) fn new(bytes: Bytes, limits: &Limits) -> Result<Self> {
        let unpickler = Unpickler::new().policy(GlobalPolicy::any()).limits(limits.clone());
        let mut position = 0;
        let mut next = |what: &str| -> Result<(Pickle, Range<usize>)> {
            let (pickle, nbytes) =
                unpickler.load_prefix(&bytes[position..]).map_err(|e| e.in_record(what))?;
            let start = position;
            position += nbytes;
            Ok((pickle, start..position))
        };
        let (magic, _) = next("magic number")?;
        if !is_magic(&magic) {
            return Err(error!(Corrupt, "the magic number is wrong").in_record("magic number"));
        }
        let (protocol, _) = next("protocol version")?;
        if protocol.as_int(protocol.root()) != Some(PROTOCOL_VERSION) {
            return Err(error!(
                Unsupported,
                "expected the stream protocol {PROTOCOL_VERSION}, got {:?}",
                protocol.get(protocol.root())
            )
            .in_record("protocol version"));
        }
        // The description of the machine that wrote the file: data is little-endian whatever it says.
        next("system description")?;
        let (value, pickle) = next("value")?;
        let element_sizes = element_sizes(&value).map_err(|e| e.in_record("value"))?;
        let (key_list, _) = next("storage keys")?;
        let key_ids = key_list.as_sequence(key_list.root()).ok_or_else(|| {
            error!(Corrupt, "expected a list of keys, got {}", key_list.get(key_list.root()).type_name())
                .in_record("storage keys")
        })?;

        let mut keys = Vec::new();
        let mut storages = HashMap::new();
        for &id in key_ids {
            let key = key_list.as_str(id).ok_or_else(|| {
                error!(Corrupt, "a key must be a str, got {}", key_list.get(id).type_name())
                    .in_record("storage keys")
            })?;
            let &(element_size, numel) = element_sizes
                .get(key)
                .ok_or_else(|| error!(Corrupt, "the value does not refer to this storage").in_record(key))?;
            let data = storage_range(&bytes, position, element_size, numel).map_err(|e| e.in_record(key))?;
            position = data.end;
            if storages.insert(key.to_owned(), data).is_some() {
                return Err(error!(Corrupt, "the file has this storage twice").in_record(key));
            }
            keys.push(key.to_owned());
        }
        Ok(StreamFile { bytes, pickle, keys, storages, end: position })
    }

    /// Where the last part ends: another stream may follow.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The pickle of the value.
    pub(crate) fn pickle(&self) -> Result<Bytes> {
        self.bytes.slice(self.pickle.clone())
    }

    /// The keys, in file order.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The data of a storage.
    pub(crate) fn storage(&self, key: &str) -> Result<Bytes> {
        match self.storages.get(key) {
            Some(range) => self.bytes.slice(range.clone()),
            None => Err(error!(Missing, "the file has no storage of this key").in_record(key)),
        }
    }
}

/// Per key, bytes per element and the count of elements that the value expects.
fn element_sizes(value: &Pickle) -> Result<HashMap<String, (u64, u64)>> {
    let mut sizes = HashMap::new();
    for record in value.storage_records() {
        let record = record?;
        let size = element_size(&record.dtype).unwrap_or(1) as u64;
        // The first mention decides, as the element size is that of the storage that was written first.
        sizes.entry(record.key).or_insert((size, record.numel));
    }
    Ok(sizes)
}

fn storage_range(
    bytes: &[u8],
    position: usize,
    element_size: u64,
    expected_numel: u64,
) -> Result<Range<usize>> {
    let rest = &bytes[position.min(bytes.len())..];
    let Some((count, data)) = rest.split_first_chunk::<8>() else {
        return Err(error!(
            Corrupt,
            "expected an element count of 8 bytes, got {} before the end of the file",
            rest.len()
        )
        .at(position as u64));
    };
    let numel = u64::from_le_bytes(*count);
    if numel != expected_numel {
        return Err(error!(Size, "the value expects {expected_numel} elements, the file has {numel}")
            .at(position as u64));
    }
    let nbytes = numel.checked_mul(element_size).filter(|&nbytes| nbytes <= data.len() as u64);
    match nbytes {
        Some(nbytes) => Ok(position + 8..position + 8 + nbytes as usize),
        None => Err(error!(
            Corrupt,
            "expected {numel} elements of {element_size} bytes, got {} bytes before the end of the file",
            data.len()
        )
        .at(position as u64 + 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// `torch.save({'a': torch.tensor([1., 2.])}, f, _use_new_zipfile_serialization=False)`, with a shorter key.
    fn file() -> Vec<u8> {
        let mut out = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.".to_vec();
        out.extend_from_slice(
            b"\x80\x02}q\x00(X\x10\x00\x00\x00protocol_versionq\x01M\xe9\x03X\r\x00\x00\x00little_endianq\x02\x88u.",
        );
        out.extend_from_slice(
            b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03\
              ctorch\nFloatStorage\nq\x04X\x02\x00\x00\x0042q\x05X\x03\x00\x00\x00cpuq\x06K\x02Ntq\x07QK\x00K\x02\x85q\x08\
              K\x01\x85q\t\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rs.",
        );
        out.extend_from_slice(b"\x80\x02]q\x00X\x02\x00\x00\x0042q\x01a.");
        out.extend_from_slice(&2u64.to_le_bytes());
        out.extend_from_slice(&1f32.to_le_bytes());
        out.extend_from_slice(&2f32.to_le_bytes());
        out
    }

    fn open(bytes: Vec<u8>) -> Result<StreamFile> {
        StreamFile::new(Bytes::from_vec(bytes), &Limits::default())
    }

    #[test]
    fn finds_pickle_and_storages() {
        assert!(is_stream(&file()));
        let stream = open(file()).unwrap();
        assert_eq!(stream.keys(), ["42"]);
        assert_eq!(&stream.storage("42").unwrap()[..], [0, 0, 128, 63, 0, 0, 0, 64]);
        assert_eq!(stream.storage("0").unwrap_err().kind(), ErrorKind::Missing);
        let value = Unpickler::new().load(&stream.pickle().unwrap()).unwrap();
        let tensor = value.dict_get(value.root(), "a").unwrap();
        assert_eq!(value.tensor_record(tensor).unwrap().unwrap().size, [2]);
    }

    #[test]
    fn what_follows_is_left_alone() {
        let nbytes = file().len();
        let stream = open([file(), file()].concat()).unwrap();
        assert_eq!((stream.end(), stream.keys().len()), (nbytes, 1));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = file();
        for n in 0..bytes.len() {
            assert!(open(bytes[..n].to_vec()).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn an_element_count_that_does_not_fit_is_an_error() {
        let mut bytes = file();
        let at = bytes.len() - 16;
        bytes[at + 7] = 0x7f;
        assert_eq!(open(bytes).unwrap_err().kind(), ErrorKind::Size);
    }

    #[test]
    fn other_pickles_are_no_stream() {
        assert!(!is_stream(b""));
        assert!(!is_stream(b"\x80\x02K\x01."));
    }
}
