//! The checkpoint of a batcher: a small file, replaced atomically after the progress that it describes.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fetchwell_engine::ports::version::refuse_newer_store;
use fetchwell_policy::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::counts::Counts;
use crate::error::CommonCrawlError;

/// The number of unreadable blocks that are listed; all are counted.
const MOST_UNREAD_NAMED: usize = 10_000;

/// The version of the file; files without one have version 0. Raise it with a change that earlier programs would
/// misread.
const VERSION: i64 = 0;

/// The fields that every version has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AnyVersion {
    version: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    #[serde(default)]
    pub version: i64,
    /// Which pages are selected and how they are batched. Another selection would produce other batches.
    pub selection: Json,
    /// Where to continue.
    pub position: Position,
    /// Pages before that window that fill no batch, as JSON. The next batch begins with them.
    #[serde(default)]
    pub pending: Vec<String>,
    /// Confirmed batches.
    pub batches: u64,
    /// Pages in them.
    pub pages: u64,
    pub counts: Counts,
    pub unread_blocks: u64,
    /// Those blocks, as lines of `cluster.idx`, so that they can be read again as a `cluster.idx` of their own.
    pub unread: Vec<Unread>,
    /// The last batch, if `--limit` cut it. It is not part of the position: with another limit it is published in full.
    pub cut: Option<Cut>,
    /// Whether the end of `cluster.idx` was reached.
    pub is_finished: bool,
}

/// Marks a selection whose batches are filled across index blocks. In earlier versions a batch ended with its block;
/// those versions refuse a checkpoint with this mark as another selection.
pub const ACROSS_BLOCKS: &str = "across-blocks";

/// A position between two batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The offset of its window in `cluster.idx`.
    pub index_offset: u64,
    /// Confirmed batches of the window.
    pub batches: usize,
    /// Identifies those batches, to check whether the window starts with them when it is made again.
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    pub line: String,
    pub reason: String,
}

/// A batch that was cut by a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub limit: u64,
    pub pages: u64,
}

impl Position {
    /// The start of a window.
    pub(super) fn at(index_offset: u64) -> Position {
        Position { index_offset, ..Position::default() }
    }

    /// The position after one more batch of the window.
    pub(super) fn behind(&self, id: &str) -> Position {
        let digest = sha256_hex(format!("{}{id}", self.digest).as_bytes());
        Position { index_offset: self.index_offset, batches: self.batches + 1, digest }
    }
}

impl Checkpoint {
    pub(super) fn note_unread(&mut self, line: &str, reason: &str) {
        self.unread_blocks += 1;
        if self.unread.len() < MOST_UNREAD_NAMED {
            self.unread.push(Unread { line: line.to_owned(), reason: reason.to_owned() });
        }
    }

    /// All published pages, including those of a cut batch.
    pub fn pages_published(&self) -> u64 {
        self.pages + self.cut.map_or(0, |cut| cut.pages)
    }

    /// Whether its batches are filled across index blocks.
    pub fn is_across_blocks(&self) -> bool {
        self.selection.get(ACROSS_BLOCKS) == Some(&Json::Bool(true))
    }

    /// The keys in which this selection differs from another.
    pub fn differences(&self, selection: &Json) -> Vec<String> {
        let (Some(here), Some(there)) = (self.selection.as_object(), selection.as_object()) else {
            return vec!["everything".to_owned()];
        };
        let mut names: Vec<&String> = here.keys().chain(there.keys()).collect();
        names.sort();
        names.dedup();
        let differs = |name: &&&String| here.get(name.as_str()) != there.get(name.as_str());
        names.iter().filter(differs).map(|name| (*name).clone()).collect()
    }
}

/// The file, locked by one batcher.
pub struct CheckpointFile {
    path: PathBuf,
    _lock: File,
}

impl CheckpointFile {
    /// Opens and locks the file, and reads its content if it exists.
    pub fn open(path: &Path) -> Result<(CheckpointFile, Option<Checkpoint>), CommonCrawlError> {
        let path = path.to_owned();
        let unwritable =
            |source| CommonCrawlError::CheckpointUnwritable { path: path.clone(), source };
        let lock = File::create(beside(&path, "lock")).map_err(unwritable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => CommonCrawlError::CheckpointInUse(path.clone()),
            TryLockError::Error(source) => unwritable(source),
        })?;
        let kept = match std::fs::read(&path) {
            Ok(bytes) => Some(read(&bytes, &path)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(CommonCrawlError::CheckpointUnreadable { path, source }),
        };
        Ok((CheckpointFile { path, _lock: lock }, kept))
    }

    /// Replaces the file atomically: after a crash, either the old or the new content is there.
    pub(super) fn write(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        let new = beside(&self.path, "new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(checkpoint)?)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn read(bytes: &[u8], path: &Path) -> Result<Checkpoint, CommonCrawlError> {
    let is_none = |source| CommonCrawlError::NotACheckpoint { path: path.to_owned(), source };
    let AnyVersion { version } = serde_json::from_slice(bytes).map_err(is_none)?;
    refuse_newer_store(&format!("the checkpoint {}", path.display()), version, VERSION)?;
    serde_json::from_slice(bytes).map_err(is_none)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_nobody_else_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.checkpoint");
        let (file, kept) = CheckpointFile::open(&path).ok().unwrap();
        assert_eq!(kept, None);
        let mut checkpoint =
            Checkpoint { selection: json!({"lang": "eng"}), ..Checkpoint::default() };
        checkpoint.note_unread("a line", "a reason");
        checkpoint.position = Position::at(7).behind("x").behind("y");
        checkpoint.pending = vec!["{\"surt_url\":\"com,example)/ü\"}".to_owned()];
        file.write(&checkpoint).unwrap();
        let error = CheckpointFile::open(&path).err().unwrap().to_string();
        assert!(error.contains("another batcher"), "{error}");
        drop(file);
        let (_file, kept) = CheckpointFile::open(&path).ok().unwrap();
        assert_eq!(kept, Some(checkpoint));
    }

    #[test]
    fn a_file_that_says_something_else_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.json");
        std::fs::write(&path, "{\"mine\": 1}").unwrap();
        let error = CheckpointFile::open(&path).err().unwrap().to_string();
        assert!(error.contains("not a checkpoint"), "{error}");
    }

    /// As version 35692d3 wrote it.
    #[test]
    fn a_checkpoint_of_an_earlier_version_is_read_and_keeps_its_batching() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.checkpoint");
        let earlier = json!({
            "selection": {"crawl": "CC-MAIN-2024-30", "lang": "eng", "batch-size": 50, "by-file": null},
            "position": {"index_offset": 120, "batches": 1, "digest": "00ff"},
            "batches": 4, "pages": 160,
            "counts": {
                "blocks": 3, "bytes": 9, "lines": 200, "wanted": 110, "filtered": {}, "errors": {},
            },
            "unread_blocks": 0, "unread": [], "cut": null, "is_finished": false,
        });
        std::fs::write(&path, serde_json::to_vec(&earlier).unwrap()).unwrap();
        let (_file, kept) = CheckpointFile::open(&path).ok().unwrap();
        let kept = kept.unwrap();
        assert!(!kept.is_across_blocks() && kept.pending.is_empty());
        assert_eq!((kept.position.index_offset, kept.position.batches, kept.pages), (120, 1, 160));
        let mut newer = kept.selection.clone();
        newer[ACROSS_BLOCKS] = true.into();
        let across = Checkpoint { selection: newer, ..kept.clone() };
        assert!(across.is_across_blocks());
        assert_eq!(across.differences(&kept.selection), [ACROSS_BLOCKS], "it refuses ours");
    }

    #[test]
    fn a_checkpoint_of_a_newer_program_is_refused_with_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.checkpoint");
        std::fs::write(&path, "{\"version\": 7, \"position\": \"elsewhere\"}").unwrap();
        let error = CheckpointFile::open(&path).err().unwrap().to_string();
        assert!(error.contains("version 7") && error.contains("up to 0"), "{error}");
    }

    #[test]
    fn another_selection_is_named() {
        let selection = json!({"lang": "eng", "status": 200, "mime": null});
        let checkpoint = Checkpoint { selection, ..Checkpoint::default() };
        let other = json!({"lang": "deu", "status": 200, "mime": null});
        assert_eq!(checkpoint.differences(&other), ["lang"]);
        assert_eq!(checkpoint.differences(&checkpoint.selection), [""; 0]);
    }

    #[test]
    fn batches_in_another_order_are_another_place() {
        let begin = Position::at(0);
        assert_eq!(begin.behind("a").behind("b"), begin.behind("a").behind("b"));
        assert_ne!(begin.behind("a").behind("b"), begin.behind("b").behind("a"));
    }
}
