//! Writes the archive that `torch.save` writes: stored entries whose data starts at a multiple of 64 bytes.

use std::collections::HashSet;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use super::atomic_file::AtomicFile;
use super::format::*;
use crate::error::{error, Result, SerializeError};

/// Data of every record starts at a multiple of this, so that a mapped file can be used in place.
const ALIGNMENT: u64 = 64;
/// Records whose presence the reader of PyTorch relies on to compute offsets without reading headers.
const FORMAT_VERSION: &[u8] = b"1";
const STORAGE_ALIGNMENT: &[u8] = b"64";
/// The version of the container that the current format needs.
const VERSION: &[u8] = b"3\n";

/// Writes records one after the other to any [`Write`]; nothing is sought back to.
#[derive(Debug)]
pub struct ArchiveWriter<W: Write> {
    sink: W,
    position: u64,
    archive_name: String,
    entries: Vec<Written>,
    names: HashSet<String>,
}

#[derive(Debug)]
struct Written {
    name: String,
    flags: u16,
    crc32: u32,
    nbytes: u64,
    header_offset: u64,
}

/// The archive name that PyTorch derives from a path: the file name without its last extension.
pub fn archive_name_of(path: impl AsRef<Path>) -> String {
    match path.as_ref().file_stem().and_then(|s| s.to_str()) {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => "archive".to_owned(),
    }
}

impl ArchiveWriter<BufWriter<AtomicFile>> {
    /// Starts an archive that will replace `path` when [`commit`](Self::commit) succeeds.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = AtomicFile::create(path)?;
        ArchiveWriter::new(BufWriter::new(file), &archive_name_of(path))
    }

    /// Finishes the archive, forces it to the disk and gives it its name.
    pub fn commit(self) -> Result<()> {
        let file = self
            .finish()?
            .into_inner()
            .map_err(|e| SerializeError::io("write the archive", e.into_error()))?;
        file.commit()
    }
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive whose records are named `<archive_name>/<record>`. PyTorch uses `archive` for a file object.
    pub fn new(sink: W, archive_name: &str) -> Result<Self> {
        if archive_name.is_empty() || archive_name.contains('/') {
            return Err(error!(
                Pickling,
                "an archive name must be non-empty and without `/`, got `{archive_name}`"
            ));
        }
        Ok(ArchiveWriter {
            sink,
            position: 0,
            archive_name: archive_name.to_owned(),
            entries: Vec::new(),
            names: HashSet::new(),
        })
    }

    /// Writes the records of one checkpoint in PyTorch's order: the pickle, the format records, the storages.
    pub fn write_checkpoint<'a, K: AsRef<str>>(
        &mut self,
        data_pkl: &[u8],
        storages: impl IntoIterator<Item = (K, &'a [u8])>,
    ) -> Result<()> {
        self.write_preamble(data_pkl)?;
        for (key, data) in storages {
            self.write_storage(key.as_ref(), data)?;
        }
        Ok(())
    }

    /// The records before the storages: `data.pkl`, `.format_version`, `.storage_alignment`, `byteorder`.
    pub fn write_preamble(&mut self, data_pkl: &[u8]) -> Result<()> {
        self.write_record("data.pkl", data_pkl)?;
        self.write_record(".format_version", FORMAT_VERSION)?;
        self.write_record(".storage_alignment", STORAGE_ALIGNMENT)?;
        // Data is written as it lies in memory.
        let order = if cfg!(target_endian = "little") { "little" } else { "big" };
        self.write_record("byteorder", order.as_bytes())
    }

    /// The record `data/<key>`.
    pub fn write_storage(&mut self, key: &str, data: &[u8]) -> Result<()> {
        self.write_record(&format!("data/{key}"), data)
    }

    /// One record.
    pub fn write_record(&mut self, name: &str, data: &[u8]) -> Result<()> {
        self.write_entry(name, data.len() as u64, |writer| {
            writer.put(data)?;
            Ok(crc32fast::hash(data))
        })
    }

    /// One record of `nbytes` bytes that come from `data`, for content that is produced piece by piece.
    pub fn write_record_from(&mut self, name: &str, nbytes: u64, mut data: impl Read) -> Result<()> {
        self.write_entry(name, nbytes, |writer| writer.copy(nbytes, &mut data))
    }

    /// Header, data and descriptor; `content` writes the data and returns its CRC-32.
    fn write_entry(
        &mut self,
        name: &str,
        nbytes: u64,
        content: impl FnOnce(&mut Self) -> Result<u32>,
    ) -> Result<()> {
        let full_name = format!("{}/{name}", self.archive_name);
        self.write_header(&full_name, nbytes)
            .and_then(|mut entry| {
                entry.crc32 = content(self)?;
                self.write_descriptor(&entry)?;
                self.entries.push(entry);
                Ok(())
            })
            .map_err(|e| e.in_record(full_name))
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Writes `version`, `.data/serialization_id` and the directory, and gives the sink back, flushed.
    pub fn finish(mut self) -> Result<W> {
        self.write_record("version", VERSION)?;
        let id = self.serialization_id();
        self.write_record(".data/serialization_id", id.as_bytes())?;
        self.write_directory()?;
        self.sink.flush().map_err(|e| SerializeError::io("write the archive", e))?;
        Ok(self.sink)
    }

    fn write_header(&mut self, name: &str, nbytes: u64) -> Result<Written> {
        if name.len() as u64 >= MAX16 {
            return Err(error!(
                Pickling,
                "a record name must be shorter than 65535 bytes, got {}",
                name.len()
            ));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(error!(Pickling, "a record of this name was already written"));
        }
        let entry = Written {
            name: name.to_owned(),
            // An empty record has nothing to describe afterwards.
            flags: if nbytes > 0 { FLAG_UTF8 | FLAG_DESCRIPTOR } else { FLAG_UTF8 },
            crc32: 0,
            nbytes,
            header_offset: self.position,
        };
        let mut extra = entry.zip64_extra();
        let data_start = self.position + (LOCAL_HEADER_SIZE + name.len() + extra.len() + 4) as u64;
        let padding = (ALIGNMENT - data_start % ALIGNMENT) % ALIGNMENT;
        extra.extend_from_slice(b"FB");
        extra.extend_from_slice(&(padding as u16).to_le_bytes());
        extra.resize(extra.len() + padding as usize, b'Z');

        let mut header = Vec::with_capacity(LOCAL_HEADER_SIZE + name.len() + extra.len());
        put32(&mut header, LOCAL_HEADER);
        put16(&mut header, 0);
        put16(&mut header, entry.flags);
        // Method, time, date, CRC-32 and sizes: stored, no time, and the rest follows the data.
        header.resize(header.len() + 18, 0);
        put16(&mut header, name.len() as u16);
        put16(&mut header, extra.len() as u16);
        header.extend_from_slice(name.as_bytes());
        header.extend_from_slice(&extra);
        self.put(&header)?;
        Ok(entry)
    }

    /// Copies exactly `nbytes` and returns their CRC-32.
    fn copy(&mut self, nbytes: u64, data: &mut impl Read) -> Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; nbytes.min(1 << 18) as usize];
        let mut done = 0;
        while done < nbytes {
            let wanted = (nbytes - done).min(buffer.len() as u64) as usize;
            let got = match data.read(&mut buffer[..wanted]) {
                Ok(0) => {
                    return Err(error!(Size, "expected {nbytes} bytes of data, got {done}"));
                }
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(SerializeError::io("read the data of the record", e)),
            };
            hasher.update(&buffer[..got]);
            self.put(&buffer[..got])?;
            done += got as u64;
        }
        Ok(hasher.finalize())
    }

    fn write_descriptor(&mut self, entry: &Written) -> Result<()> {
        if entry.nbytes == 0 {
            return Ok(());
        }
        let mut out = Vec::with_capacity(24);
        put32(&mut out, DATA_DESCRIPTOR);
        put32(&mut out, entry.crc32);
        for _ in 0..2 {
            if entry.is_zip64() {
                put64(&mut out, entry.nbytes);
            } else {
                put32(&mut out, entry.nbytes as u32);
            }
        }
        self.put(&out)
    }

    fn write_directory(&mut self) -> Result<()> {
        let start = self.position;
        let mut out = Vec::new();
        for entry in &self.entries {
            let extra = entry.zip64_extra();
            put32(&mut out, CENTRAL_HEADER);
            put32(&mut out, 0);
            put16(&mut out, entry.flags);
            out.resize(out.len() + 6, 0);
            put32(&mut out, entry.crc32);
            put32(&mut out, entry.nbytes.min(MAX32) as u32);
            put32(&mut out, entry.nbytes.min(MAX32) as u32);
            put16(&mut out, entry.name.len() as u16);
            put16(&mut out, extra.len() as u16);
            out.resize(out.len() + 10, 0);
            put32(&mut out, entry.header_offset.min(MAX32) as u32);
            out.extend_from_slice(entry.name.as_bytes());
            out.extend_from_slice(&extra);
        }
        let nbytes = out.len() as u64;
        let count = self.entries.len() as u64;

        let zip64_end = start + nbytes;
        put32(&mut out, ZIP64_END);
        put64(&mut out, (ZIP64_END_SIZE - 12) as u64);
        put16(&mut out, 0x031e); // made by: Unix, 3.0
        put16(&mut out, 45); // needs: zip64
        put64(&mut out, 0);
        put64(&mut out, count);
        put64(&mut out, count);
        put64(&mut out, nbytes);
        put64(&mut out, start);

        put32(&mut out, ZIP64_LOCATOR);
        put32(&mut out, 0);
        put64(&mut out, zip64_end);
        put32(&mut out, 1);

        put32(&mut out, END);
        put32(&mut out, 0);
        put16(&mut out, count.min(MAX16) as u16);
        put16(&mut out, count.min(MAX16) as u16);
        put32(&mut out, nbytes.min(MAX32) as u32);
        put32(&mut out, start.min(MAX32) as u32);
        put16(&mut out, 0);
        self.put(&out)
    }

    /// Forty digits that depend on the names and on the content of the records, so that equal files are equal and
    /// different ones almost surely not: twenty from each, as PyTorch has them (its hash function differs).
    fn serialization_id(&self) -> String {
        let mut names = FNV_OFFSET;
        let mut contents = FNV_OFFSET;
        for entry in &self.entries {
            let record = &entry.name[self.archive_name.len() + 1..];
            names = fnv1a(names, record.as_bytes());
            contents = fnv1a(contents, &entry.crc32.to_le_bytes());
        }
        format!("{names:020}{contents:020}")
    }

    fn put(&mut self, data: &[u8]) -> Result<()> {
        self.sink.write_all(data).map_err(|e| SerializeError::io("write the archive", e))?;
        self.position += data.len() as u64;
        Ok(())
    }
}

impl Written {
    fn is_zip64(&self) -> bool {
        self.nbytes >= MAX32 || self.header_offset >= MAX32
    }

    /// The 64-bit fields that do not fit, in the order of the format.
    fn zip64_extra(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_zip64() {
            let mut fields = Vec::new();
            if self.nbytes >= MAX32 {
                put64(&mut fields, self.nbytes);
                put64(&mut fields, self.nbytes);
            }
            if self.header_offset >= MAX32 {
                put64(&mut fields, self.header_offset);
            }
            put16(&mut out, ZIP64_EXTRA);
            put16(&mut out, fields.len() as u16);
            out.extend_from_slice(&fields);
        }
        out
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(seed: u64, data: &[u8]) -> u64 {
    data.iter().fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;
    use crate::limits::Limits;
    use crate::zip::reader::ZipReader;

    #[test]
    fn archive_names_follow_the_path() {
        assert_eq!(archive_name_of("d/model.pt"), "model");
        assert_eq!(archive_name_of("weird.name.tar"), "weird.name");
        assert_eq!(archive_name_of("/"), "archive");
    }

    #[test]
    fn data_is_aligned() {
        let mut writer = ArchiveWriter::new(Vec::new(), "archive").unwrap();
        for n in 0..130 {
            writer.write_record(&format!("data/{n}"), &vec![7; n]).unwrap();
        }
        let file = Bytes::from_vec(writer.finish().unwrap());
        let zip = ZipReader::new(file, &Limits::default()).unwrap();
        for entry in zip.entries() {
            assert_eq!(zip.read(entry).unwrap().offset() % 64, 0, "{}", entry.name);
        }
    }

    /// The first record of `torch.save({'a': 1}, buffer)`, up to and with its data descriptor.
    #[test]
    fn first_record_equals_pytorchs() {
        let pickle = b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.";
        let mut writer = ArchiveWriter::new(Vec::new(), "archive").unwrap();
        writer.write_record("data.pkl", pickle).unwrap();
        let mut expected = Vec::new();
        expected.extend_from_slice(b"PK\x03\x04\x00\x00\x08\x08\x00\x00");
        expected.extend_from_slice(&[0; 16]);
        expected.extend_from_slice(b"\x10\x00\x12\x00archive/data.pklFB\x0e\x00ZZZZZZZZZZZZZZ");
        expected.extend_from_slice(pickle);
        expected.extend_from_slice(b"PK\x07\x08\xe34\xc4\xc7\x11\x00\x00\x00\x11\x00\x00\x00");
        assert_eq!(writer.sink, expected);
    }

    #[test]
    fn a_name_twice_is_an_error() {
        let mut writer = ArchiveWriter::new(Vec::new(), "a").unwrap();
        writer.write_record("x", b"").unwrap();
        assert!(writer.write_record("x", b"").is_err());
    }

    #[test]
    fn data_that_ends_early_is_an_error() {
        let mut writer = ArchiveWriter::new(Vec::new(), "a").unwrap();
        let error = writer.write_record_from("x", 10, &b"short"[..]).unwrap_err();
        assert_eq!(error.record(), Some("a/x"));
    }

    /// Counts instead of storing, so that offsets beyond 4 GiB cost no memory.
    struct Tail {
        skip: u64,
        data: Vec<u8>,
    }

    impl Write for Tail {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            if self.skip > 0 {
                let n = self.skip.min(data.len() as u64);
                self.skip -= n;
                return Ok(n as usize);
            }
            self.data.extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn offsets_beyond_four_gib_go_to_the_zip64_field() {
        let mut writer = ArchiveWriter::new(Tail { skip: 0, data: Vec::new() }, "a").unwrap();
        writer.position = MAX32 + 1;
        writer.write_record("x", b"hello").unwrap();
        let out = &writer.sink.data;
        let extra = &out[LOCAL_HEADER_SIZE + 3..];
        assert_eq!(&extra[..4], &[1, 0, 8, 0]);
        assert_eq!(&extra[4..12], &(MAX32 + 1).to_le_bytes());
        assert_eq!(&extra[12..14], b"FB");
        // The descriptor has 64-bit sizes.
        assert_eq!(&out[out.len() - 16..], &[5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        writer.sink.skip = 0;
        let start = writer.position;
        let sink = writer.finish().unwrap();
        let end = &sink.data[sink.data.len() - END_SIZE..];
        assert_eq!(&end[16..20], &[0xff; 4]);
        assert!(start > MAX32);
    }
}
