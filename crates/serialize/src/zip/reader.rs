//! Reads the directory of a zip archive and hands out its stored entries as ranges of the file.

use std::collections::HashMap;
use std::ops::Range;

use super::format::*;
use crate::bytes::Bytes;
use crate::error::{error, Result};
use crate::limits::{self, Limits};

/// One entry of the central directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name, with the archive name in front.
    pub name: String,
    /// CRC-32 of the content; 0 where the writer did not compute one.
    pub crc32: u32,
    method: u16,
    flags: u16,
    compressed_nbytes: u64,
    nbytes: u64,
    header_offset: u64,
}

impl Entry {
    /// Bytes of the content.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Where the local header of the entry starts in the file.
    pub fn header_offset(&self) -> u64 {
        self.header_offset
    }
}

/// A zip archive whose directory has been read and checked.
#[derive(Debug)]
pub struct ZipReader {
    bytes: Bytes,
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

impl ZipReader {
    /// Reads the central directory of `bytes`.
    pub fn new(bytes: Bytes, limits: &Limits) -> Result<Self> {
        let directory = Directory::locate(&bytes)?;
        // Every entry takes at least its fixed header, so the count is bounded by the file before anything is held.
        let room = (directory.range.end - directory.range.start) / CENTRAL_HEADER_SIZE;
        if directory.entries > room as u64 {
            return Err(error!(
                Corrupt,
                "the zip directory says {} entries and has room for {room}", directory.entries
            )
            .at(directory.range.start as u64));
        }
        let count = directory.entries as usize;
        limits::check("entries in the zip directory", count, limits.max_records)?;

        let mut entries = Vec::with_capacity(count);
        let mut by_name = HashMap::with_capacity(count);
        // Records that share bytes would let a small file stand for a large amount of data.
        let mut stored = 0u64;
        let mut cursor = Cursor::new(&bytes, directory.range.clone());
        for index in 0..count {
            let entry = read_central_header(&mut cursor)?;
            if by_name.insert(entry.name.clone(), index).is_some() {
                // Two readers could pick different ones, so neither is trustworthy.
                return Err(error!(Corrupt, "the zip directory lists a name twice").in_record(entry.name));
            }
            stored = stored.saturating_add(entry.compressed_nbytes);
            entries.push(entry);
        }
        if stored > bytes.len() as u64 {
            return Err(error!(
                Corrupt,
                "the records have {stored} bytes together and the file has {}; it is truncated, or records overlap",
                bytes.len()
            ));
        }
        Ok(ZipReader { bytes, entries, by_name })
    }

    /// All entries, in directory order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        Some(&self.entries[*self.by_name.get(name)?])
    }

    /// The content of `entry`, without comparing its CRC-32 (which touches every page).
    pub fn read_unverified(&self, entry: &Entry) -> Result<Bytes> {
        let range = self.data_range(entry).map_err(|e| e.in_record(entry.name.clone()))?;
        self.bytes.slice(range)
    }

    /// The content of `entry`, compared with its CRC-32. A recorded CRC of zero means that the writer computed none
    /// (`torch.serialization.set_crc32_options(False)`) and is not compared.
    pub fn read(&self, entry: &Entry) -> Result<Bytes> {
        let data = self.read_unverified(entry)?;
        if entry.crc32 != 0 {
            let got = crc32fast::hash(&data);
            if got != entry.crc32 {
                return Err(error!(
                    Corrupt,
                    "the data does not match its checksum: expected CRC-32 {:08x}, got {got:08x}",
                    entry.crc32
                )
                .in_record(entry.name.clone())
                .at(data.offset() as u64));
            }
        }
        Ok(data)
    }

    fn data_range(&self, entry: &Entry) -> Result<Range<usize>> {
        if entry.flags & FLAG_ENCRYPTED != 0 {
            return Err(error!(Unsupported, "encrypted zip entries are not read"));
        }
        if entry.method != 0 {
            return Err(error!(
                Unsupported,
                "zip entries must be stored uncompressed (method 0), got method {}; unpack the archive and pack it \
                 again without compression",
                entry.method
            ));
        }
        if entry.compressed_nbytes != entry.nbytes {
            return Err(error!(
                Corrupt,
                "a stored entry has the sizes {} and {}, which must be equal",
                entry.compressed_nbytes,
                entry.nbytes
            ));
        }
        let start = to_index(entry.header_offset)?;
        let mut header = Cursor::new(&self.bytes, start..self.bytes.len());
        header.signature(LOCAL_HEADER, "local header")?;
        header.skip(22)?;
        let name_nbytes = header.u16()? as usize;
        let extra_nbytes = header.u16()? as usize;
        if header.take(name_nbytes)? != entry.name.as_bytes() {
            return Err(error!(Corrupt, "the local header carries another name than the zip directory")
                .at(entry.header_offset));
        }
        header.skip(extra_nbytes)?;
        let nbytes = to_index(entry.nbytes)?;
        let end = header.position.checked_add(nbytes).filter(|&end| end <= self.bytes.len());
        match end {
            Some(end) => Ok(header.position..end),
            None => Err(error!(
                Corrupt,
                "expected {nbytes} bytes of data, got {} before the end of the file",
                self.bytes.len() - header.position
            )
            .at(header.position as u64)),
        }
    }
}

fn read_central_header(cursor: &mut Cursor<'_>) -> Result<Entry> {
    let start = cursor.position as u64;
    cursor.signature(CENTRAL_HEADER, "central directory header")?;
    cursor.skip(4)?;
    let flags = cursor.u16()?;
    let method = cursor.u16()?;
    cursor.skip(4)?;
    let crc32 = cursor.u32()?;
    let mut compressed_nbytes = u64::from(cursor.u32()?);
    let mut nbytes = u64::from(cursor.u32()?);
    let name_nbytes = cursor.u16()? as usize;
    let extra_nbytes = cursor.u16()? as usize;
    let comment_nbytes = cursor.u16()? as usize;
    cursor.skip(8)?;
    let mut header_offset = u64::from(cursor.u32()?);
    let name = std::str::from_utf8(cursor.take(name_nbytes)?)
        .map_err(|_| error!(Corrupt, "the name of a zip entry is not UTF-8").at(start))?
        .to_owned();
    let extra_start = cursor.position;
    cursor.skip(extra_nbytes)?;
    let mut extra = Cursor::new(cursor.bytes, extra_start..cursor.position);
    // Fields come in this order and only where the 32-bit field says so.
    if [nbytes, compressed_nbytes, header_offset].contains(&MAX32) {
        if let Some(mut zip64) = find_extra(&mut extra, ZIP64_EXTRA)? {
            for field in [&mut nbytes, &mut compressed_nbytes, &mut header_offset] {
                if *field == MAX32 {
                    *field = zip64.u64()?;
                }
            }
        }
    }
    cursor.skip(comment_nbytes)?;
    Ok(Entry { name, crc32, method, flags, compressed_nbytes, nbytes, header_offset })
}

fn find_extra<'a>(extra: &mut Cursor<'a>, tag: u16) -> Result<Option<Cursor<'a>>> {
    while extra.remaining() >= 4 {
        let got = extra.u16()?;
        let nbytes = extra.u16()? as usize;
        let start = extra.position;
        extra.skip(nbytes)?;
        if got == tag {
            return Ok(Some(Cursor::new(extra.bytes, start..extra.position)));
        }
    }
    Ok(None)
}

/// Where the central directory is and how many entries it says it has.
struct Directory {
    range: Range<usize>,
    entries: u64,
}

impl Directory {
    fn locate(bytes: &[u8]) -> Result<Self> {
        let end = find_end(bytes)?;
        let mut record = Cursor::new(bytes, end..bytes.len());
        record.skip(4)?;
        let disk = record.u16()?;
        let directory_disk = record.u16()?;
        record.skip(2)?;
        let mut entries = u64::from(record.u16()?);
        let mut nbytes = u64::from(record.u32()?);
        let mut start = u64::from(record.u32()?);
        if (disk, directory_disk) != (0, 0) && (disk, directory_disk) != (0xffff, 0xffff) {
            return Err(error!(Unsupported, "zip archives in several parts are not read"));
        }
        if entries == MAX16 || nbytes == MAX32 || start == MAX32 {
            if let Some(zip64) = locate_zip64(bytes, end)? {
                (entries, nbytes, start) = zip64;
            }
        }
        let range = to_index(start)?
            .checked_add(to_index(nbytes)?)
            .filter(|&stop| stop <= end)
            .map(|stop| start as usize..stop);
        match range {
            Some(range) => Ok(Directory { range, entries }),
            None => Err(error!(
                Corrupt,
                "the zip directory ({nbytes} bytes at {start}) reaches past its end record; the file is truncated \
                 or damaged"
            )
            .at(end as u64)),
        }
    }
}

/// The end record is the last thing in the file but for a comment of at most 64 KiB.
fn find_end(bytes: &[u8]) -> Result<usize> {
    let signature = END.to_le_bytes();
    let lowest = bytes.len().saturating_sub(END_SIZE + MAX16 as usize);
    let highest = bytes.len().checked_sub(END_SIZE);
    highest
        .and_then(|highest| {
            (lowest..=highest).rev().find(|&at| {
                bytes[at..at + 4] == signature
                    && at + END_SIZE + u16_at(bytes, at + 20) as usize <= bytes.len()
            })
        })
        .ok_or_else(|| {
            error!(Corrupt, "no zip directory found at the end of the file; the file is truncated or damaged")
                .at(bytes.len() as u64)
        })
}

fn locate_zip64(bytes: &[u8], end: usize) -> Result<Option<(u64, u64, u64)>> {
    let Some(locator) = end.checked_sub(ZIP64_LOCATOR_SIZE) else {
        return Ok(None);
    };
    let mut cursor = Cursor::new(bytes, locator..end);
    if cursor.u32()? != ZIP64_LOCATOR {
        return Ok(None);
    }
    cursor.skip(4)?;
    let record = to_index(cursor.u64()?)?;
    if record > locator || locator - record < ZIP64_END_SIZE {
        return Err(error!(Corrupt, "the zip64 end record at {record} does not fit before its locator")
            .at(locator as u64));
    }
    let mut cursor = Cursor::new(bytes, record..locator);
    cursor.signature(ZIP64_END, "zip64 end record")?;
    cursor.skip(28)?;
    let entries = cursor.u64()?;
    let nbytes = cursor.u64()?;
    let start = cursor.u64()?;
    Ok(Some((entries, nbytes, start)))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn to_index(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| error!(Corrupt, "{value} is more than this machine can address"))
}

/// Little-endian fields of a part of the file, with every read checked.
struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// `range.end` is clamped to the file; a start past it reads nothing.
    fn new(bytes: &'a [u8], range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        Cursor { bytes, position: range.start.min(end), end }
    }

    fn remaining(&self) -> usize {
        self.end - self.position
    }

    fn take(&mut self, nbytes: usize) -> Result<&'a [u8]> {
        if nbytes > self.remaining() {
            return Err(error!(
                Corrupt,
                "zip structure ends early: expected {nbytes} bytes, got {}",
                self.remaining()
            )
            .at(self.position as u64));
        }
        let start = self.position;
        self.position += nbytes;
        Ok(&self.bytes[start..self.position])
    }

    fn skip(&mut self, nbytes: usize) -> Result<()> {
        self.take(nbytes).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn signature(&mut self, expected: u32, what: &str) -> Result<()> {
        let at = self.position as u64;
        let got = self.u32()?;
        if got != expected {
            return Err(error!(
                Corrupt,
                "no {what} here: expected the signature {expected:08x}, got {got:08x}"
            )
            .at(at));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::zip::writer::ArchiveWriter;

    fn archive() -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new(), "a").unwrap();
        writer.write_record("x", b"hello").unwrap();
        writer.write_record("empty", b"").unwrap();
        writer.finish().unwrap()
    }

    fn open(bytes: Vec<u8>) -> Result<ZipReader> {
        ZipReader::new(Bytes::from_vec(bytes), &Limits::default())
    }

    #[test]
    fn reads_what_the_writer_wrote() {
        let zip = open(archive()).unwrap();
        let names: Vec<_> = zip.entries().iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a/x", "a/empty", "a/version", "a/.data/serialization_id"]);
        assert_eq!(&zip.read(zip.entry("a/x").unwrap()).unwrap()[..], b"hello");
        assert!(zip.read(zip.entry("a/empty").unwrap()).unwrap().is_empty());
        assert!(zip.entry("x").is_none());
    }

    #[test]
    fn reads_a_comment_after_the_end_record() {
        let mut bytes = archive();
        let n = bytes.len();
        bytes[n - 2] = 3;
        bytes.extend_from_slice(b"abc");
        assert_eq!(open(bytes).unwrap().entries().len(), 4);
    }

    #[test]
    fn changed_data_fails_its_checksum() {
        let mut bytes = archive();
        let at = bytes.windows(5).position(|w| w == b"hello").unwrap();
        bytes[at] ^= 1;
        let zip = open(bytes).unwrap();
        let error = zip.read(zip.entry("a/x").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(error.record(), Some("a/x"));
        assert_eq!(error.offset(), Some(at as u64));
        assert!(zip.read_unverified(zip.entry("a/x").unwrap()).is_ok());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = archive();
        for n in 0..bytes.len() {
            assert!(open(bytes[..n].to_vec()).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn a_size_past_the_end_is_an_error() {
        let with_size = |nbytes: u32| {
            let mut bytes = archive();
            // The sizes in the first central header.
            let at = bytes.windows(4).position(|w| w == CENTRAL_HEADER.to_le_bytes()).unwrap();
            bytes[at + 20..at + 24].copy_from_slice(&nbytes.to_le_bytes());
            bytes[at + 24..at + 28].copy_from_slice(&nbytes.to_le_bytes());
            bytes
        };
        let error = open(with_size(0x7fff_ffff)).unwrap_err();
        assert!(error.message().contains("together"), "{error}");
        // Less than the file, and still past its end from where the record is.
        let nbytes = archive().len() as u32 - 50;
        let zip = open(with_size(nbytes)).unwrap();
        let error = zip.read(zip.entry("a/x").unwrap()).unwrap_err();
        assert!(error.message().contains(&format!("expected {nbytes} bytes")), "{error}");
    }

    #[test]
    fn a_compressed_entry_says_what_to_do() {
        let mut bytes = archive();
        let at = bytes.windows(4).position(|w| w == CENTRAL_HEADER.to_le_bytes()).unwrap();
        bytes[at + 10] = 8;
        let zip = open(bytes).unwrap();
        let error = zip.read(zip.entry("a/x").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn an_entry_count_beyond_the_directory_is_an_error() {
        let mut bytes = archive();
        let n = bytes.len();
        bytes[n - END_SIZE + 10..n - END_SIZE + 12].copy_from_slice(&60000u16.to_le_bytes());
        assert_eq!(open(bytes).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
