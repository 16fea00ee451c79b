//! The archive of the settings, with what a flow on it needs, and the queue for its batches.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_archive::cdxj::MAX_RECORD_BYTES;
use fetchwell_commoncrawl::BoundedQueue;
use fetchwell_commoncrawl::archive::{Archive, ArchiveError};
use fetchwell_commoncrawl::lookup::{CrawlReader, LookupError};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::Runtime;
use fetchwell_settings::{ArchiveBase, Settings, process_environment};
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::{Parts, gate_rules, open_batches};

pub(crate) struct OpenArchive {
    pub(crate) archive: Archive,
    /// What the flow needs besides the archive.
    pub(crate) parts: Parts,
}

impl OpenArchive {
    /// Opens the archive of the settings. All processes on the store share its back-off.
    pub(crate) async fn open(settings: &Settings) -> Result<OpenArchive, Exit> {
        OpenArchive::on(settings, Parts::open(settings).await?, longest_range(settings))
    }

    /// Opens the archive for a lookup: a folder needs no store.
    pub(crate) async fn open_to_look(settings: &Settings) -> Result<OpenArchive, Exit> {
        match settings.values.commoncrawl_base {
            ArchiveBase::Folder(_) => {
                OpenArchive::on(settings, Parts::in_memory(settings)?, longest_range(settings))
            }
            _ => OpenArchive::open(settings).await,
        }
    }

    /// Opens the archive in a process that has these parts, with its byte budget, its metrics and its own listeners.
    /// A range is never longer than requested, so `longest_range` may exceed the limit for pages.
    pub(crate) fn on(
        settings: &Settings,
        parts: Parts,
        longest_range: u64,
    ) -> Result<OpenArchive, Exit> {
        // One byte more, so that a response that is too long can be detected.
        let parts = parts.with_room_for_bodies(settings, longest_range.saturating_add(1));
        let base = &settings.values.commoncrawl_base;
        let parts = match base {
            // A folder is not a site and must not appear in the list of sites.
            ArchiveBase::Folder(_) => parts.with_own_politeness(settings),
            _ => parts,
        };
        let archive = archive(base, &parts)
            .map_err(|error| Exit::Usage(format!("cannot read the archive {base}: {error}")))?;
        Ok(OpenArchive { archive, parts })
    }

    /// A reader for the crawl of the settings. A signal stops it.
    pub(crate) fn reader<'a>(&'a self, settings: &'a Settings) -> CrawlReader<'a> {
        self.reader_of(settings, &settings.values.commoncrawl_crawl, stop_on_signal())
    }

    /// A reader for a crawl, until `stop`.
    pub(crate) fn reader_of<'a>(
        &'a self,
        settings: &Settings,
        crawl: &'a str,
        stop: CancellationToken,
    ) -> CrawlReader<'a> {
        let give_up_after = Some(settings.values.fetch_give_up_after);
        let runtime = self.runtime(settings, give_up_after, DoorName::Errand);
        CrawlReader { archive: &self.archive, crawl, runtime, stop }
    }

    /// The exit code of a run that was halted for this reason.
    pub(crate) fn exit_when_halted(&self, reason: &str) -> Exit {
        if self.archive.is_refused_by_us(reason) { Exit::Refused } else { Exit::SomeFailed }
    }

    /// The runtime for a pipeline on this archive.
    pub(crate) fn runtime(
        &self,
        settings: &Settings,
        give_up_after: Option<Duration>,
        door: DoorName,
    ) -> Runtime {
        let most = settings.values.commoncrawl_max_concurrency;
        let rules = self.archive.pace(gate_rules(settings, give_up_after), most);
        let gate = self.parts.gate_by(rules);
        self.archive.runtime(self.parts.runtime(settings, gate, door, Arc::new(|_| {})))
    }
}

/// The longest range that a batch, a worker or a command requests.
fn longest_range(settings: &Settings) -> u64 {
    MAX_RECORD_BYTES.max(settings.values.commoncrawl_max_range)
}

fn archive(base: &ArchiveBase, parts: &Parts) -> Result<Archive, ArchiveError> {
    let client = parts.client.clone();
    match base {
        ArchiveBase::Web(root) => Ok(Archive::on_server(root.clone(), client)),
        ArchiveBase::Folder(path) => Archive::in_folder(path),
        ArchiveBase::S3 { bucket, prefix } => {
            let environment = process_environment();
            Archive::in_bucket(bucket, prefix, &environment, client, parts.clock.clone())
        }
    }
}

/// Logs why a lookup failed, and returns the exit code.
pub(super) fn exit_of(settings: &Settings, error: LookupError) -> Exit {
    let exit = match error {
        LookupError::Stopped => return Exit::Ok,
        LookupError::Other(error) => return error.into(),
        LookupError::Refused(_) => Exit::Refused,
        LookupError::NotFetched { .. } | LookupError::BadAnswer(_) | LookupError::GivenUp(_) => {
            Exit::SomeFailed
        }
    };
    error!("{}: {error}", settings.values.commoncrawl_base);
    exit
}

/// Opens the queue that batches are published to, with the limits of the settings.
pub(super) async fn open_bounded(settings: &Settings, clock: &Clock) -> Result<BoundedQueue, Exit> {
    Ok(BoundedQueue {
        queue: open_batches(settings, clock).await?,
        max_unconfirmed: settings.values.commoncrawl_max_unconfirmed,
        max_waiting: settings.values.commoncrawl_max_queue,
    })
}
