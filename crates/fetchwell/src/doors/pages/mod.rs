//! `fetchwell pages`: URLs of a list become cached pages and events, or dead letters.
//!
//! A job has no payload: the list holds URLs and nothing else. `plan` says what becomes of a URL, `record`
//! what comes out, `finish` where that goes: cache, then event, then the end of the lease. `serve` is the
//! flow, `counted`, `metrics`, `log_health` and `exposition` tell how it goes, and `commands` and `status` are
//! for people.

mod commands;
mod counted;
mod exposition;
mod finish;
mod log_health;
pub(crate) mod metrics;
mod plan;
mod record;
mod serve;
mod showing;
mod status;

use std::sync::Arc;

use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_settings::Settings;

pub use finish::{CacheThenEvent, Written};
pub use plan::{PageRules, obituary, plan};
pub use record::{DeadLetterDetails, LetterFailure, PageRecord, WebpageFetched};

use crate::commands::pages::args::PagesCommand;
use crate::console::exit::Exit;
use crate::console::output::Running;

/// What is read and written.
pub(crate) struct PagePorts {
    pub(crate) queue: Arc<dyn UrlQueue>,
    pub(crate) cache: Arc<dyn PageCache>,
    pub(crate) log: Arc<dyn EventLog>,
}

/// Does what was typed.
pub(crate) fn run(settings: &Settings, command: Option<PagesCommand>, json: bool) -> Running<'_> {
    Box::pin(run_inner(settings, command, json))
}

async fn run_inner(
    settings: &Settings,
    command: Option<PagesCommand>,
    json: bool,
) -> Result<Exit, Exit> {
    match command {
        None => serve::serve(settings).await,
        Some(PagesCommand::Add { urls }) => commands::add(settings, &urls, json).await,
        Some(PagesCommand::Events { after, limit, follow }) => {
            commands::events(settings, after, limit, follow).await
        }
        Some(PagesCommand::Show { url }) => commands::show(settings, &url).await,
        Some(PagesCommand::Status) => status::status(settings, json).await,
        Some(PagesCommand::Unpark) => commands::unpark(settings, json).await,
    }
}
