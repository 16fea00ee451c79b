//! The archive that is read: a web server, a folder or a bucket, each an ordinary web to the one flow.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_archive::cdxj::MAX_RECORD_BYTES;
use fetchwell_engine::gate::Gate;
use fetchwell_engine::pipeline::Plant;
use fetchwell_engine::web::Web;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::{ArchiveBase, Settings, process_environment};
use fetchwell_telemetry::metrics::DoorName;

use super::byte_range::REFUSED_BY_ARCHIVE;
use super::error::CommonCrawlError;
use super::folder::{self, FolderWeb};
use super::near_ranges::JoinRule;
use super::s3::{Bucket, SignedWeb};
use super::work::NO_ARCHIVE;
use crate::console::exit::Exit;
use crate::plant::{Parts, gate_rules};

/// An archive, opened.
pub(crate) struct Archive {
    /// Where its files are: a URL that ends in a slash. WARC files are named from here.
    pub(crate) root: WebUrl,
    /// What the flow stands on besides.
    pub(crate) parts: Parts,
    web: Arc<dyn Web>,
    /// Whether it is reached over the network, where the address guard has a say.
    is_guarded: bool,
}

impl Archive {
    /// Opens the archive that the settings name. All processes on the store share its back-off.
    pub(crate) async fn open(settings: &Settings) -> Result<Archive, Exit> {
        let parts = Parts::open(&with_room_for_ranges(settings)).await?;
        let parts = match settings.values.commoncrawl_base {
            // A folder is no site: nobody is to meet it in a list of sites.
            ArchiveBase::Folder(_) => parts.with_own_politeness(settings),
            _ => parts,
        };
        Archive::on(settings, parts)
    }

    /// The same for a look at it: a folder needs no store.
    pub(crate) async fn open_to_look(settings: &Settings) -> Result<Archive, Exit> {
        match settings.values.commoncrawl_base {
            ArchiveBase::Folder(_) => Archive::on(settings, Parts::in_memory(settings)?),
            _ => Archive::open(settings).await,
        }
    }

    fn on(settings: &Settings, parts: Parts) -> Result<Archive, Exit> {
        let base = &settings.values.commoncrawl_base;
        let unusable = |why: String| Exit::Usage(format!("cannot read the archive {base}: {why}"));
        let (root, web): (WebUrl, Arc<dyn Web>) = match base {
            ArchiveBase::Web(root) => (root.clone(), parts.client.clone()),
            ArchiveBase::Folder(path) if !path.is_dir() => {
                return Err(unusable(
                    "there is no such folder; use another one with --base".to_owned(),
                ));
            }
            ArchiveBase::Folder(path) => {
                let root = folder::root().map_err(|fault| unusable(fault.to_string()))?;
                (root, Arc::new(FolderWeb { folder: path.clone() }))
            }
            ArchiveBase::S3 { bucket, prefix } => {
                let bucket = Bucket::new(bucket, prefix, &process_environment());
                bucket_web(bucket.map_err(unusable)?, &parts)
            }
        };
        let is_guarded = !matches!(base, ArchiveBase::Folder(_));
        Ok(Archive { root, parts, web, is_guarded })
    }

    /// Where the index files of a crawl are: a URL that ends in a slash.
    pub(crate) fn indexes(&self, crawl: &str) -> Result<WebUrl, CommonCrawlError> {
        let folder = format!("cc-index/collections/{crawl}/indexes/");
        self.root.join(&folder).map_err(CommonCrawlError::Crawl)
    }

    /// What a run comes to that was halted. The guard's refusal is ours; a 403 is the archive's, and an archive
    /// that is not there or a disk that can't be read is a failure.
    pub(crate) fn exit_when_halted(&self, reason: &str) -> Exit {
        let is_of_archive = reason == REFUSED_BY_ARCHIVE || reason.starts_with(NO_ARCHIVE);
        match self.is_guarded && !is_of_archive {
            true => Exit::Refused,
            false => Exit::SomeFailed,
        }
    }

    /// All that a pipeline on this archive needs besides a door. The archive is paced by concurrency, and
    /// what it asks for in the way of rest it gets, from all processes on the store.
    pub(crate) fn plant(
        &self,
        settings: &Settings,
        give_up_after: Option<Duration>,
        door: DoorName,
    ) -> Plant {
        let mut rules = gate_rules(settings, give_up_after);
        let most = settings.values.commoncrawl_max_concurrency;
        rules.pace.concurrency.insert(self.root.site(), most);
        let gate = Gate::new(self.parts.politeness.clone(), rules, self.parts.clock.clone());
        Plant { web: self.web.clone(), ..self.parts.plant(settings, gate, door, Arc::new(|_| {})) }
    }
}

/// Which stretches of a file are asked for together.
pub(crate) fn join_rule(settings: &Settings) -> JoinRule {
    JoinRule {
        max_gap_bytes: settings.values.commoncrawl_join_gap,
        max_range_bytes: settings.values.commoncrawl_max_range,
    }
}

fn bucket_web(bucket: Bucket, parts: &Parts) -> (WebUrl, Arc<dyn Web>) {
    let Bucket { root, signer } = bucket;
    let inner = parts.client.clone();
    let clock = parts.clock.clone();
    match signer {
        Some(signer) => {
            let signed = SignedWeb { inner, root: root.clone(), signer, clock };
            (root, Arc::new(signed))
        }
        None => (root, inner),
    }
}

/// A range is as long as it was asked for: that it may be longer than a page does no harm. All of them
/// together have the budget of all bodies.
fn with_room_for_ranges(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let values = &mut settings.values;
    let longest = MAX_RECORD_BYTES.max(values.commoncrawl_max_range).saturating_add(1);
    values.http_max_body = values.http_max_body.max(longest).min(values.http_body_budget);
    settings
}
