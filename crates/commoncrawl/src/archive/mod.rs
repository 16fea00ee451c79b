//! The archive: a web server, a folder or a bucket, each behind the `Web` port of the engine.
//!
//! `byte_range` requests a part of a file and accepts nothing else; `near_ranges` joins ranges that are close together.
//! `folder` serves files; `s3` reads a bucket, and `sigv4` signs its requests.

pub(crate) mod byte_range;
mod folder;
pub(crate) mod near_ranges;
mod s3;
mod sigv4;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::GateRules;
use fetchwell_engine::pipeline::Runtime;
use fetchwell_engine::web::Web;
use fetchwell_policy::url::{UrlFault, WebUrl};
use thiserror::Error;

use crate::error::CommonCrawlError;
use byte_range::REFUSED_BY_ARCHIVE;
use folder::FolderWeb;
use s3::{Bucket, SignedWeb};

pub use byte_range::RangeFault;
pub use near_ranges::JoinRule;

/// The start of the error message when a worker stops because its base is wrong.
pub(crate) const NO_ARCHIVE: &str = "no archive was found at ";

/// Why an archive cannot be read. The caller adds which archive it is.
#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("there is no such folder; use another one with --base")]
    NoFolder,
    /// The URL that stands for the folder is invalid.
    #[error(transparent)]
    FolderUrl(#[from] UrlFault),
    /// The AWS variables give the bucket an invalid URL.
    #[error("the address {address} of the bucket cannot be used: {source}")]
    BucketUrl { address: String, source: UrlFault },
    /// Only one of the two AWS keys is set.
    #[error("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither for a public bucket")]
    HalfKeys,
}

pub struct Archive {
    /// The URL of its files, with a trailing slash. Names of WARC files are relative to it.
    pub root: WebUrl,
    web: Arc<dyn Web>,
    /// Whether it is reached over the network, so that the address guard applies.
    is_guarded: bool,
}

impl Archive {
    /// An archive on a web server; the URL must end in a slash.
    pub fn on_server(root: WebUrl, client: Arc<dyn Web>) -> Archive {
        Archive { root, web: client, is_guarded: true }
    }

    pub fn in_folder(path: &Path) -> Result<Archive, ArchiveError> {
        if !path.is_dir() {
            return Err(ArchiveError::NoFolder);
        }
        let web = FolderWeb { folder: path.to_owned() };
        Ok(Archive { root: folder::root()?, web: Arc::new(web), is_guarded: false })
    }

    /// An archive in a bucket; the prefix must be empty or end in a slash. `environment` holds the variables that the
    /// AWS tools read.
    pub fn in_bucket(
        bucket: &str,
        prefix: &str,
        environment: &BTreeMap<String, String>,
        client: Arc<dyn Web>,
        clock: Clock,
    ) -> Result<Archive, ArchiveError> {
        let Bucket { root, signer } = Bucket::new(bucket, prefix, environment)?;
        let web: Arc<dyn Web> = match signer {
            Some(signer) => {
                Arc::new(SignedWeb { inner: client, root: root.clone(), signer, clock })
            }
            None => client,
        };
        Ok(Archive { root, web, is_guarded: true })
    }

    /// The URL of a crawl's index files, with a trailing slash.
    pub(crate) fn indexes(&self, crawl: &str) -> Result<WebUrl, CommonCrawlError> {
        let folder = format!("cc-index/collections/{crawl}/indexes/");
        self.root.join(&folder).map_err(CommonCrawlError::Crawl)
    }

    /// Whether a run that halted for this reason was refused by our own address guard. A 403 is a refusal by the
    /// archive; a missing archive and an unreadable disk are failures.
    pub fn is_refused_by_us(&self, reason: &str) -> bool {
        let is_of_archive = reason == REFUSED_BY_ARCHIVE || reason.starts_with(NO_ARCHIVE);
        self.is_guarded && !is_of_archive
    }

    /// These rules, with the archive paced by concurrency. Its Retry-After still binds all processes on the store.
    pub fn pace(&self, mut rules: GateRules, max_concurrency: usize) -> GateRules {
        rules.pace.concurrency.insert(self.root.site(), max_concurrency);
        rules
    }

    /// The same runtime, with requests going to this archive.
    pub fn runtime(&self, runtime: Runtime) -> Runtime {
        Runtime { web: self.web.clone(), ..runtime }
    }
}
