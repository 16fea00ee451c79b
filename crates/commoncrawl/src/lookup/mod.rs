//! A look into an archive: what it has of some pages, and one page of these.
//!
//! `pattern` is what is looked for, `search` finds its place in `cluster.idx` by halves, `captures` reads
//! the blocks from there on, and `errand` takes all of it through the one flow. `find` and `get` are what
//! comes of it.

mod captures;
mod errand;
mod find;
mod get;
mod pattern;
mod search;

use fetchwell_engine::pipeline::Plant;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;

pub use errand::{AnswerError, LookupError};
pub use find::CapturesFound;
pub use get::{CaptureError, CapturedPage};
pub use pattern::Keys;

/// Reads the index of a crawl, once.
pub struct CrawlReader<'a> {
    /// The archive that has the crawl.
    pub archive: &'a Archive,
    pub crawl: &'a str,
    /// What the flow runs on.
    pub plant: Plant,
    /// Ends it early.
    pub stop: CancellationToken,
}
