//! The error type of this crate.

use std::io;
use std::path::PathBuf;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::url::UrlFault;
use thiserror::Error;

/// Why a command on an archive failed.
#[derive(Debug, Error)]
pub enum CommonCrawlError {
    /// The search pattern is not a URL.
    #[error(
        "cannot search for {pattern:?}: {source}; use a URL, example.com/docs/* for everything \
         below it, or *.example.com for a domain"
    )]
    Pattern { pattern: String, source: UrlFault },
    /// The crawl's name cannot be part of a URL.
    #[error(transparent)]
    Crawl(UrlFault),
    #[error(
        "cannot write the checkpoint {}: {source}; use another file with --checkpoint",
        .path.display()
    )]
    CheckpointUnwritable { path: PathBuf, source: io::Error },
    #[error("another batcher is using {}; use another file with --checkpoint", .0.display())]
    CheckpointInUse(PathBuf),
    #[error("cannot read the checkpoint {}: {source}", .path.display())]
    CheckpointUnreadable { path: PathBuf, source: io::Error },
    /// The file is not a checkpoint.
    #[error("{} is not a checkpoint: {source}; move it away to start over", .path.display())]
    NotACheckpoint { path: PathBuf, source: serde_json::Error },
    /// The output folder has no manifest.
    #[error(
        "{}: no worker has written there ({source}); use another folder with --output",
        .folder.display()
    )]
    NoWorker { folder: PathBuf, source: rusqlite::Error },
    /// The manifest of the output folder cannot be read.
    #[error(
        "{}: cannot read manifest.db: {source}; use another folder with --output",
        .folder.display()
    )]
    Manifest { folder: PathBuf, source: rusqlite::Error },
    /// The `errors.jsonl` of the output folder cannot be opened.
    #[error(
        "{}: cannot read errors.jsonl: {source}; use another folder with --output",
        .folder.display()
    )]
    ErrorFile { folder: PathBuf, source: io::Error },
    /// Reading `cluster.idx` or `errors.jsonl` failed.
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}
