//! The progress of Common Crawl batchers and workers, for the dashboard.

use std::collections::BTreeMap;

/// Reads the progress that batchers and workers leave in files. The methods do blocking I/O.
pub trait CrawlProgress: Send + Sync {
    /// The batchers.
    fn batchers(&self) -> Vec<BatcherStanding>;

    /// The workers; `None`: none has written anything.
    fn folder(&self) -> Option<FolderStanding>;

    /// The folder that workers write to, for people.
    fn output(&self) -> String;
}

/// A batcher.
pub struct BatcherStanding {
    /// Its checkpoint's file.
    pub name: String,
    /// What part of `cluster.idx` is done, from 0 to 1; `None`: its file is not beside the checkpoint.
    pub share: Option<f64>,
    /// Whether it has published every batch.
    pub is_finished: bool,
    /// Batches that were published.
    pub batches: u64,
    /// Pages in them.
    pub pages: u64,
    /// Lines of the index that were read.
    pub lines: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Blocks of the index that could not be read.
    pub unread_blocks: u64,
    /// What was passed over, by what is wrong with it.
    pub errors: BTreeMap<String, u64>,
}

/// The workers of a folder.
#[derive(Default)]
pub struct FolderStanding {
    /// Documents that were written.
    pub documents: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files that are complete.
    pub sealed_segments: u64,
    /// Files that are being written.
    pub open_segments: u64,
    /// The length of the file that lists pages which can't be read.
    pub errors_bytes: u64,
}
