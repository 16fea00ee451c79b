//! Looks up captures in an archive, and fetches one of them.
//!
//! `pattern` turns a search pattern into index keys, `search` finds them in `cluster.idx` by binary search, `captures`
//! reads the blocks from there on, `get` fetches the record of one of them, and `plan` runs this through the engine's
//! flow.

mod captures;
mod get;
mod pattern;
mod plan;
mod search;

use fetchwell_engine::pipeline::Runtime;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;

pub use captures::CapturesFound;
pub use get::{CaptureError, CapturedPage};
pub use pattern::Keys;
pub use plan::{AnswerError, LookupError};

/// Reads the index of a crawl, for one lookup.
pub struct CrawlReader<'a> {
    /// The archive that holds the crawl.
    pub archive: &'a Archive,
    pub crawl: &'a str,
    pub runtime: Runtime,
    pub stop: CancellationToken,
}
