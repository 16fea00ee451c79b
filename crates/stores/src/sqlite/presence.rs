//! Shows that a process is alive: it holds a lock on a file of its own, which the operating system releases when it
//! ends.
//!
//! The lease alone would suffice, but after a crash the others would have to wait until it expires. A suspended process
//! keeps its lock, so the lease decides in that case.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fetchwell_sqlite::db::FILE_MODE;

/// The lock that an instance holds while its process is alive.
pub(super) struct Presence {
    _locked: File,
    path: PathBuf,
}

impl Presence {
    /// Announces an instance of the store at `store`.
    pub(super) fn announce(store: &Path, epoch: i64) -> io::Result<Presence> {
        let path = file_of(store, epoch);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Presence { _locked: file, path })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Without the file the instance counts as gone, which is correct.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Whether the process of an instance has ended.
pub(super) fn is_gone(store: &Path, epoch: i64) -> bool {
    match File::open(file_of(store, epoch)) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
    }
}

/// Deletes the lock file of an ended process.
pub(super) fn clear(store: &Path, epoch: i64) {
    drop(std::fs::remove_file(file_of(store, epoch)));
}

/// The file that an instance locks.
pub(super) fn file_of(store: &Path, epoch: i64) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!("-instance-{epoch}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_instance_is_gone_when_its_lock_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.db");
        assert!(is_gone(&store, 1));
        let presence = Presence::announce(&store, 1).unwrap();
        assert!(!is_gone(&store, 1));
        let mode = file_of(&store, 1).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(presence);
        assert!(is_gone(&store, 1));
    }
}
