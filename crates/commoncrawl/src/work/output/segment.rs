//! A file that documents are appended to until it is sealed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fetchwell_engine::seed::random_seed;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;

/// The suffix of a segment that is not sealed.
pub(super) const PART: &str = ".part";

/// The format of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFormat {
    /// One JSON object per line, compressed.
    JsonLines,
    Parquet,
}

/// A file of documents. It is locked while it is open, so an unlocked file that is not sealed belongs to a dead
/// process.
pub(super) struct Segment {
    /// The final name.
    pub(super) name: String,
    pub(super) format: SegmentFormat,
    file: Mutex<Option<Arc<File>>>,
}

impl Segment {
    /// A segment with a unique name, and no file yet.
    pub(super) fn new(format: SegmentFormat, began: Time) -> Segment {
        let began: String =
            rfc3339(began).chars().take(19).filter(char::is_ascii_alphanumeric).collect();
        let suffix = match format {
            SegmentFormat::JsonLines => "jsonl.zst",
            SegmentFormat::Parquet => "parquet",
        };
        let chance = random_seed();
        Segment::named(format!("documents-{began}-{chance:016x}.{suffix}"))
    }

    /// The segment with this name. Its format follows from the file extension.
    pub(super) fn named(name: String) -> Segment {
        let format = match name.ends_with(".parquet") {
            true => SegmentFormat::Parquet,
            false => SegmentFormat::JsonLines,
        };
        Segment { name, format, file: Mutex::default() }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.file.lock().is_some()
    }

    pub(super) fn part(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}{PART}", self.name))
    }

    /// The file, opened and locked. It is created if missing, and the folder is synced.
    pub(super) fn file(&self, folder: &Path) -> io::Result<Arc<File>> {
        let mut file = self.file.lock();
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let opened = open_part(&self.part(folder))?;
        opened.try_lock()?;
        sync_folder(folder)?;
        Ok(file.insert(Arc::new(opened)).clone())
    }

    /// Takes over the file of a dead process. Returns `false` if the process is alive.
    pub(super) fn take_over(&self, folder: &Path) -> io::Result<bool> {
        let opened = open_part(&self.part(folder))?;
        match opened.try_lock() {
            Ok(()) => {
                let mut file = self.file.lock();
                *file = Some(Arc::new(opened));
                Ok(true)
            }
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Writes at `offset`, truncates the file after that, and syncs it.
pub(super) fn append(file: &File, bytes: &[u8], offset: u64) -> io::Result<u64> {
    let end = offset + bytes.len() as u64;
    file.write_all_at(bytes, offset)?;
    file.set_len(end)?;
    file.sync_data()?;
    Ok(end)
}

/// Syncs the entries of a folder.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn open_part(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}
