//! Why work on an archive cannot be done.

use std::io;
use std::path::PathBuf;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::url::UrlFault;
use thiserror::Error;

/// Why work on an archive cannot be done.
#[derive(Debug, Error)]
pub enum CommonCrawlError {
    /// What is looked for is not a URL.
    #[error(
        "cannot search for {pattern:?}: {source}; use a URL, example.com/docs/* for everything \
         below it, or *.example.com for a domain"
    )]
    Pattern { pattern: String, source: UrlFault },
    /// The name of the crawl does not make a URL.
    #[error(transparent)]
    Crawl(UrlFault),
    /// The checkpoint cannot be written there.
    #[error(
        "cannot write the checkpoint {}: {source}; use another file with --checkpoint",
        .path.display()
    )]
    CheckpointUnwritable { path: PathBuf, source: io::Error },
    #[error("another batcher is using {}; use another file with --checkpoint", .0.display())]
    CheckpointInUse(PathBuf),
    /// The checkpoint is there, and cannot be read.
    #[error("cannot read the checkpoint {}: {source}", .path.display())]
    CheckpointUnreadable { path: PathBuf, source: io::Error },
    /// The file is something else.
    #[error("{} is not a checkpoint: {source}; move it away to start over", .path.display())]
    NotACheckpoint { path: PathBuf, source: serde_json::Error },
    /// The folder of documents has no manifest.
    #[error(
        "{}: no worker has written there ({source}); use another folder with --output",
        .folder.display()
    )]
    NoWorker { folder: PathBuf, source: rusqlite::Error },
    /// The folder of documents has a manifest that cannot be read.
    #[error(
        "{}: cannot read manifest.db: {source}; use another folder with --output",
        .folder.display()
    )]
    Manifest { folder: PathBuf, source: rusqlite::Error },
    /// The folder of documents has a file of errors that cannot be opened.
    #[error(
        "{}: cannot read errors.jsonl: {source}; use another folder with --output",
        .folder.display()
    )]
    ErrorFile { folder: PathBuf, source: io::Error },
    /// `cluster.idx` or `errors.jsonl` cannot be read any further.
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}
