//! A save that fails leaves the previous file as it was and nothing else behind.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serialize::{Archive, ArchiveWriter, ErrorKind};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("serialize-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn names(&self) -> Vec<String> {
        fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A source of data that breaks after some bytes.
struct Breaking(usize);

impl Read for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("the device went away"));
        }
        let n = buffer.len().min(self.0);
        buffer[..n].fill(7);
        self.0 -= n;
        Ok(n)
    }
}

#[test]
fn the_old_file_stays_when_data_breaks_off() {
    let scratch = Scratch::new("interrupted");
    let path = scratch.0.join("model.pt");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.write_checkpoint(b"\x80\x02K\x01.", [("0", &b"old"[..])]).unwrap();
    writer.commit().unwrap();
    let old = fs::read(&path).unwrap();
    assert_eq!(scratch.names(), ["model.pt"]);

    for broken_after in [0, 1, 100_000, 400_000] {
        let mut writer = ArchiveWriter::create(&path).unwrap();
        writer.write_preamble(b"\x80\x02K\x02.").unwrap();
        let error = writer.write_record_from("data/0", 1_000_000, Breaking(broken_after)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.record(), Some("model/data/0"));
        assert_eq!(scratch.names().len(), 2);
        drop(writer);
        assert_eq!(scratch.names(), ["model.pt"]);
        assert_eq!(fs::read(&path).unwrap(), old);
    }
    // Never committed.
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.write_preamble(b"\x80\x02K\x02.").unwrap();
    drop(writer.finish().unwrap());
    assert_eq!(scratch.names(), ["model.pt"]);

    let archive = Archive::open(&path).unwrap();
    assert_eq!(&archive.storage("0").unwrap()[..], b"old");
}

/// A sink that takes so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = data.len().min(self.0);
        self.0 -= n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_wherever_it_happens() {
    let write = |room: usize| {
        let mut writer = ArchiveWriter::new(Full(room), "a")?;
        writer.write_checkpoint(b"\x80\x02K\x01.", [("0", &[1u8; 100][..])])?;
        writer.finish().map(drop)
    };
    let whole = {
        let mut writer = ArchiveWriter::new(Vec::new(), "a").unwrap();
        writer.write_checkpoint(b"\x80\x02K\x01.", [("0", &[1u8; 100][..])]).unwrap();
        writer.finish().unwrap().len()
    };
    for room in 0..whole {
        assert_eq!(write(room).unwrap_err().kind(), ErrorKind::Io, "{room} bytes");
    }
    assert!(write(whole).is_ok());
}

#[test]
fn a_map_of_the_old_file_survives_a_new_save() {
    let scratch = Scratch::new("mapped");
    let path = scratch.0.join("model.pt");
    let save = |data: &[u8]| {
        let mut writer = ArchiveWriter::create(&path).unwrap();
        writer.write_checkpoint(b"\x80\x02K\x01.", [("0", data)]).unwrap();
        writer.commit().unwrap();
    };
    save(b"old");
    let archive = Archive::open(&path).unwrap();
    save(b"new");
    assert_eq!(&archive.storage("0").unwrap()[..], b"old");
    let archive = Archive::open(&path).unwrap();
    assert_eq!(&archive.storage("0").unwrap()[..], b"new");
}
