//! `fetchwell pages`: turns the URLs of a list into cached pages and events, or dead letters.
//!
//! A job has no payload: the list holds URLs and nothing else. `run` is the door at work. `plan` says what becomes of a
//! URL, `record` what comes out, `finish` where that goes: cache, then event, then the end of the lease. `metrics`
//! and `log_health` tell how it goes.

mod finish;
mod log_health;
mod metrics;
mod plan;
mod record;
mod run;

use std::sync::Arc;

use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::url_queue::UrlQueue;

pub use finish::{CacheThenEvent, Written};
pub use log_health::WatchedLog;
pub use metrics::PageMetrics;
pub use plan::{PageRules, give_up_record, plan};
pub use record::{DeadLetterDetails, LetterFailure, PageRecord, WebpageFetched, cache_key};
pub use run::{PageDoor, PageDoorRules, door};

pub struct PagePorts {
    pub queue: Arc<dyn UrlQueue>,
    pub cache: Arc<dyn PageCache>,
    pub log: Arc<dyn EventLog>,
}
