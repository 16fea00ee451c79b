//! The progress of Common Crawl batchers and workers, for the dashboard.

use std::collections::BTreeMap;

/// Reads the progress that batchers and workers leave in files. The methods do blocking I/O.
pub trait CrawlProgress: Send + Sync {
    /// The progress of all batchers.
    fn batchers(&self) -> Vec<BatcherStanding>;

    /// The progress of the workers; `None` if none has written anything.
    fn folder(&self) -> Option<FolderStanding>;

    /// The folder that workers write to, as display text.
    fn output(&self) -> String;
}

/// The progress of a batcher.
pub struct BatcherStanding {
    /// The name of its checkpoint file.
    pub name: String,
    /// The share of `cluster.idx` that is done, from 0 to 1; `None` if that file is not next to the checkpoint.
    pub share: Option<f64>,
    /// Whether it has published every batch.
    pub is_finished: bool,
    /// Published batches.
    pub batches: u64,
    /// Pages in them.
    pub pages: u64,
    /// Index lines read.
    pub lines: u64,
    /// The size of these lines in bytes.
    pub bytes: u64,
    /// Blocks of the index that could not be read.
    pub unread_blocks: u64,
    /// The number of skipped items, by error.
    pub errors: BTreeMap<String, u64>,
}

/// The progress of the workers that write to a folder.
#[derive(Default)]
pub struct FolderStanding {
    /// Documents written.
    pub documents: u64,
    /// The size of these documents in bytes.
    pub bytes: u64,
    /// Files that are complete.
    pub sealed_segments: u64,
    /// Files that are being written.
    pub open_segments: u64,
    /// The size of the file that lists unreadable pages.
    pub errors_bytes: u64,
}
