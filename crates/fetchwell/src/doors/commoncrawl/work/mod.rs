//! `fetchwell commoncrawl work`: batches of captured pages become text documents.
//!
//! A batch is a lease; `plan` asks for its ranges and makes each captured page a `document`, unless `filter`
//! leaves it out. `output` writes documents into segments, each page once however often its batch comes,
//! and only then does the batch end. `serve` is the door at work.

mod at_archive;
mod counted;
mod document;
mod filter;
mod metrics;
mod output;
mod plan;
mod record;
mod serve;

pub use document::{Document, WarcPlace};
pub use filter::DocumentFilter;
pub(crate) use output::standing;
pub use plan::{WorkRules, plan};
pub use record::{BrokenPage, WorkRecord};
pub(super) use serve::serve;
