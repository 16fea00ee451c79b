//! `fetchwell pages`: URLs of a list become cached pages and events, or dead letters.
//!
//! A job has no payload: the list holds URLs and nothing else. `plan` says what becomes of a URL, `record`
//! what comes out, `finish` where that goes: cache, then event, then the end of the lease.

mod finish;
pub(crate) mod metrics;
mod plan;
mod record;

pub use finish::{CacheThenEvent, Written};
pub use plan::plan;
pub use record::{DeadLetterDetails, PageRecord, WebpageFetched};
