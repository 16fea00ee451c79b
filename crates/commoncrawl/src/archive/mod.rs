//! The archive that is read: a web server, a folder or a bucket, each an ordinary web to the one flow.
//!
//! `byte_range` asks for a stretch of a file and takes nothing else, `near_ranges` joins those that lie side by side.
//! `folder` answers from files; `s3` is a bucket, whose requests `sigv4` signs.

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
use fetchwell_engine::pipeline::Plant;
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

/// Why an archive cannot be read. Whoever names the archive says which one.
#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("there is no such folder; use another one with --base")]
    NoFolder,
    /// There is no URL that could stand for its folder.
    #[error(transparent)]
    FolderUrl(#[from] UrlFault),
    /// AWS's variables give its bucket an address that is not a URL.
    #[error("the address {address} of the bucket cannot be used: {source}")]
    BucketUrl { address: String, source: UrlFault },
    /// One of AWS's two keys is set without the other.
    #[error("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither for a public bucket")]
    HalfKeys,
}

pub struct Archive {
    /// Where its files are: a URL that ends in a slash. WARC files are named from here.
    pub root: WebUrl,
    web: Arc<dyn Web>,
    /// Whether it is reached over the network, where the address guard has a say.
    is_guarded: bool,
}

impl Archive {
    /// On a web server, below a URL that ends in a slash.
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

    /// In a bucket, below a prefix that is empty or ends in a slash. The environment has the variables that AWS's own
    /// tools read.
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

    /// Where the index files of a crawl are: a URL that ends in a slash.
    pub(crate) fn indexes(&self, crawl: &str) -> Result<WebUrl, CommonCrawlError> {
        let folder = format!("cc-index/collections/{crawl}/indexes/");
        self.root.join(&folder).map_err(CommonCrawlError::Crawl)
    }

    /// Whether a run that was halted for this reason was refused by the address guard, which is ours. A 403 is the
    /// archive's refusal, and an archive that is not there or a disk that can't be read is a failure.
    pub fn is_refused_by_us(&self, reason: &str) -> bool {
        let is_of_archive = reason == REFUSED_BY_ARCHIVE || reason.starts_with(NO_ARCHIVE);
        self.is_guarded && !is_of_archive
    }

    /// These rules with the archive paced by concurrency. A pause that it asks for still holds, for all processes on
    /// the store.
    pub fn pace(&self, mut rules: GateRules, max_concurrency: usize) -> GateRules {
        rules.pace.concurrency.insert(self.root.site(), max_concurrency);
        rules
    }

    /// The same with requests that go to this archive.
    pub fn plant(&self, plant: Plant) -> Plant {
        Plant { web: self.web.clone(), ..plant }
    }
}
