//! The lookups of the tools: the gate's explanation of a URL, and captures in a web archive.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_commoncrawl::ReadTime;
use fetchwell_commoncrawl::lookup::{Keys, LookupError};
use fetchwell_engine::gate::Gate;
use fetchwell_service::api::mcp::{ArchiveQuery, ArchivedPage, Captures, LookupFailure, Lookups};
use fetchwell_settings::Settings;
use serde_json::Value as Json;
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::commands::commoncrawl::archive::OpenArchive;
use crate::commands::commoncrawl::{find, get};
use crate::commands::explain::explain_url;
use crate::console::exit::Exit;
use crate::wiring::Parts;

/// The maximum number of concurrent explanations. Each may read a robots.txt.
const MAX_EXPLANATIONS: usize = 32;

/// The maximum number of concurrent lookups in the archive. Each may hold a record, and what reading it takes.
const MAX_ARCHIVE_LOOKUPS: usize = 4;

/// The maximum size of a record or a block of the index, as it is stored and inflated. Archives cut pages off long
/// before.
const MAX_RECORD_BYTES: usize = 16 << 20;

/// Lookups in the process of a server.
pub(crate) struct ProgramLookups {
    settings: Settings,
    parts: Arc<Parts>,
    gate: Gate,
    /// Opened on first use.
    archive: OnceCell<OpenArchive>,
    explanations: Semaphore,
    archive_lookups: Arc<Semaphore>,
    stop: CancellationToken,
}

impl ProgramLookups {
    /// `gate` must have the rules that apply to messages.
    pub(crate) fn new(
        settings: &Settings,
        parts: &Arc<Parts>,
        gate: Gate,
        stop: &CancellationToken,
    ) -> ProgramLookups {
        ProgramLookups {
            settings: settings.clone(),
            parts: parts.clone(),
            gate,
            archive: OnceCell::new(),
            explanations: Semaphore::new(MAX_EXPLANATIONS),
            archive_lookups: Arc::new(Semaphore::new(MAX_ARCHIVE_LOOKUPS)),
            stop: stop.clone(),
        }
    }

    async fn archive(&self) -> Result<&OpenArchive, LookupFailure> {
        let open = async {
            let parts = Parts::clone(&self.parts);
            OpenArchive::on(&self.settings, parts, MAX_RECORD_BYTES as u64)
        };
        self.archive
            .get_or_try_init(|| open)
            .await
            .map_err(|exit| own_failure(exit, "open the archive"))
    }

    fn crawl<'a>(&'a self, query: &'a ArchiveQuery) -> &'a str {
        query.crawl.as_deref().unwrap_or(&self.settings.values.commoncrawl_crawl)
    }
}

#[async_trait]
impl Lookups for ProgramLookups {
    async fn explain(&self, url: &str) -> Result<Json, LookupFailure> {
        // The semaphore is never closed. The wait ends when its call is dropped.
        let _turn = self.explanations.acquire().await;
        let explained =
            explain_url(&self.settings, &self.parts, &self.gate, url, self.stop.clone()).await;
        let mut explained = explained.map_err(|exit| match exit {
            Exit::Usage(reason) => LookupFailure::Invalid(reason),
            exit => own_failure(exit, "explain a URL"),
        })?;
        // Callers do not learn who operates the server.
        if let Some(paused) = explained.get_mut("paused").and_then(Json::as_object_mut) {
            paused.remove("by");
        }
        Ok(explained)
    }

    async fn captures(
        &self,
        query: &ArchiveQuery,
        limit: usize,
    ) -> Result<Captures, LookupFailure> {
        let keys = keys(query)?;
        let _turn = self.archive_lookups.acquire().await;
        let crawl = self.crawl(query);
        let archive = self.archive().await?;
        let reader = archive.reader_of(&self.settings, crawl, self.stop.clone());
        let found = reader.find(keys, limit).await.map_err(|error| self.not_read(error))?;
        if found.unread > 0 {
            let unread = found.unread;
            return Err(LookupFailure::Failed(format!(
                "{unread} parts of the index of {crawl} could not be read"
            )));
        }
        Ok(Captures {
            crawl: crawl.to_owned(),
            captures: found.captures.iter().map(find::json).collect(),
            has_more: found.has_more,
        })
    }

    async fn captured_page(
        &self,
        query: &ArchiveQuery,
        timestamp: Option<&str>,
    ) -> Result<Option<ArchivedPage>, LookupFailure> {
        let keys = keys(query)?;
        let turn = self.archive_lookups.clone().acquire_owned().await;
        let archive = self.archive().await?;
        let reader = archive.reader_of(&self.settings, self.crawl(query), self.stop.clone());
        let found = reader.get(keys, timestamp.map(str::to_owned)).await;
        let Some(page) = found.map_err(|error| self.not_read(error))? else { return Ok(None) };
        let url = page.capture.url().unwrap_or_default().to_owned();
        let timestamp = page.capture.timestamp.clone();
        let reading = ReadTime(self.settings.values.extract_max_time);
        // Extraction needs much CPU time. The record is in memory until it ends, even if the call has ended before.
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            get::markdown(&page, MAX_RECORD_BYTES, reading)
        });
        let read = read.await;
        let read = read.map_err(|panic| LookupFailure::Internal(panic.to_string()))?;
        let markdown = read.map_err(|fault| LookupFailure::Failed(fault.to_string()))?;
        Ok(Some(ArchivedPage { url, timestamp, markdown }))
    }
}

impl ProgramLookups {
    fn not_read(&self, error: LookupError) -> LookupFailure {
        // Callers do not learn where the archive is: it may be a folder or a private bucket.
        let base = &self.settings.values.commoncrawl_base;
        match error {
            LookupError::Stopped => LookupFailure::Failed("the server is stopping".to_owned()),
            LookupError::Other(error) => {
                error!("{base}: {error}");
                LookupFailure::Internal(error.to_string())
            }
            error => {
                warn!("{base}: {error}");
                let reason = error.to_string().replace(&base.to_string(), "the archive");
                LookupFailure::Failed(reason)
            }
        }
    }
}

fn keys(query: &ArchiveQuery) -> Result<Keys, LookupFailure> {
    Keys::of(&query.pattern).map_err(|error| LookupFailure::Invalid(error.to_string()))
}

/// Converts an error that is not the caller's, such as one in the settings. The log has what callers must not see.
fn own_failure(exit: Exit, what: &str) -> LookupFailure {
    match exit {
        Exit::Interrupted => LookupFailure::Failed("the server is stopping".to_owned()),
        exit => {
            error!("could not {what}: {exit}");
            LookupFailure::Internal(exit.to_string())
        }
    }
}
