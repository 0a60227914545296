//! A file that appears under its name only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, SerializeError};

/// Writes to a temporary file next to the target and renames it on [`commit`](Self::commit); dropped before that, it
/// removes the temporary and leaves the target as it was.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// The temporary and the target; `None` when the target is no regular file and is written in place.
    pending: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Starts writing what will become `path`. A symbolic link is followed, so that it stays a link; a device or pipe
    /// cannot be replaced and is written to directly.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|m| !m.is_file() && !m.is_dir()) {
            let file = File::options()
                .write(true)
                .open(&target)
                .map_err(|e| SerializeError::io(format_args!("open `{}`", path.display()), e))?;
            return Ok(AtomicFile { file, pending: None });
        }
        let (temporary, file) = create_temporary(&target)
            .map_err(|e| SerializeError::io(format_args!("create `{}`", path.display()), e))?;
        if let Some(metadata) = existing {
            // Best effort: a file system without permissions is no reason to fail a save.
            let _ = file.set_permissions(metadata.permissions());
        }
        Ok(AtomicFile { file, pending: Some((temporary, target)) })
    }

    /// Forces the data to the disk and gives it its name.
    pub fn commit(mut self) -> Result<()> {
        let Some((temporary, target)) = self.pending.clone() else {
            return Ok(());
        };
        self.file
            .sync_all()
            .map_err(|e| SerializeError::io(format_args!("sync `{}`", target.display()), e))?;
        fs::rename(&temporary, &target).map_err(|e| {
            SerializeError::io(format_args!("rename the new file to `{}`", target.display()), e)
        })?;
        // Only now: after a failure above, dropping removes the temporary.
        self.pending = None;
        if let Some(directory) = target.parent() {
            // Makes the rename itself durable; not every file system lets a directory be synced.
            let _ = File::open(directory).and_then(|d| d.sync_all());
        }
        Ok(())
    }
}

/// A new file in the directory of `target`, which is on the same file system and so can be renamed.
fn create_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file"))?;
    if target.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    loop {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
        let temporary = target.with_file_name(temporary);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Left by a process of the same id that was killed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.pending {
            // Nothing can be done about a failure here, and the target is untouched either way.
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("serialize-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn commit_replaces_and_drop_does_not() {
        let dir = scratch("atomic");
        let path = dir.join("a.pt");
        fs::write(&path, "old").unwrap();

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(names(&dir).len(), 2);
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(&dir), ["a.pt"]);

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(&dir), ["a.pt"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_failing_rename_leaves_nothing_behind() {
        let dir = scratch("rename");
        let path = dir.join("a.pt");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        // The target turns into a directory meanwhile.
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        assert!(file.commit().is_err());
        assert_eq!(names(&dir), ["a.pt"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_missing_directory_or_a_directory_as_target_is_an_error() {
        let dir = scratch("missing");
        assert!(AtomicFile::create(dir.join("no/such/a.pt")).is_err());
        assert!(AtomicFile::create(&dir).is_err());
        assert!(names(&dir).is_empty());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let dir = scratch("link");
        fs::write(dir.join("real.pt"), "old").unwrap();
        std::os::unix::fs::symlink("real.pt", dir.join("link.pt")).unwrap();
        let mut file = AtomicFile::create(dir.join("link.pt")).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(dir.join("link.pt")).unwrap().is_symlink());
        assert_eq!(fs::read(dir.join("real.pt")).unwrap(), b"new");
        fs::remove_dir_all(&dir).unwrap();
    }
}
