//! The archive of the settings, with what a flow on it needs.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_archive::cdxj::MAX_RECORD_BYTES;
use fetchwell_commoncrawl::archive::{Archive, ArchiveError};
use fetchwell_engine::gate::Gate;
use fetchwell_engine::pipeline::Runtime;
use fetchwell_settings::{ArchiveBase, Settings, process_environment};
use fetchwell_telemetry::metrics::DoorName;

use crate::console::exit::Exit;
use crate::wiring::{Parts, gate_rules};

pub(crate) struct OpenArchive {
    pub(crate) archive: Archive,
    /// What the flow needs besides the archive.
    pub(crate) parts: Parts,
}

impl OpenArchive {
    /// Opens the archive of the settings. All processes on the store share its back-off.
    pub(crate) async fn open(settings: &Settings) -> Result<OpenArchive, Exit> {
        let parts = Parts::open(&with_room_for_ranges(settings)).await?;
        let parts = match settings.values.commoncrawl_base {
            // A folder is not a site and must not appear in the list of sites.
            ArchiveBase::Folder(_) => parts.with_own_politeness(settings),
            _ => parts,
        };
        OpenArchive::on(settings, parts)
    }

    /// Opens the archive for a lookup: a folder needs no store.
    pub(crate) async fn open_to_look(settings: &Settings) -> Result<OpenArchive, Exit> {
        match settings.values.commoncrawl_base {
            ArchiveBase::Folder(_) => OpenArchive::on(settings, Parts::in_memory(settings)?),
            _ => OpenArchive::open(settings).await,
        }
    }

    fn on(settings: &Settings, parts: Parts) -> Result<OpenArchive, Exit> {
        let base = &settings.values.commoncrawl_base;
        let archive = archive(base, &parts)
            .map_err(|error| Exit::Usage(format!("cannot read the archive {base}: {error}")))?;
        Ok(OpenArchive { archive, parts })
    }

    /// The exit code of a run that was halted for this reason.
    pub(crate) fn exit_when_halted(&self, reason: &str) -> Exit {
        match self.archive.is_refused_by_us(reason) {
            true => Exit::Refused,
            false => Exit::SomeFailed,
        }
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
        let gate = Gate::new(self.parts.politeness.clone(), rules, self.parts.clock.clone());
        self.archive.runtime(self.parts.runtime(settings, gate, door, Arc::new(|_| {})))
    }
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

/// Raises the body limit: a range is never longer than requested, so it may exceed the limit for pages. All ranges
/// together stay within the byte budget.
fn with_room_for_ranges(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let values = &mut settings.values;
    let longest = MAX_RECORD_BYTES.max(values.commoncrawl_max_range).saturating_add(1);
    values.http_max_body = values.http_max_body.max(longest).min(values.http_body_budget);
    settings
}
