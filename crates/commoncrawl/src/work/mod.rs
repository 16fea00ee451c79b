//! Batches of captured pages become text documents.
//!
//! A batch is a lease; `plan` asks for its ranges and makes each captured page a `document`, unless `filter`
//! leaves it out. What all batches have made and not written yet is `in_hand`. `base_check` notices that there is no
//! archive at all. `output` writes documents into segments, each page once however often its batch comes, and only
//! then does the batch end. `begun` counts the workers that died over a batch. `retry_errors` publishes again what
//! could not be read. `worker` is all of it at work.

mod at_archive;
mod base_check;
mod begun;
mod document;
mod filter;
mod in_hand;
mod metrics;
mod output;
mod plan;
mod record;
mod report;
mod retry_errors;
mod worker;

pub use base_check::BaseCheck;
pub use document::{Document, LASTING_KINDS, PASSING_KINDS, WarcPlace};
pub(crate) use document::{DocumentFault, record_bytes};
pub use filter::DocumentFilter;
pub use in_hand::{InHand, Part};
pub use metrics::WorkMetrics;
pub(crate) use output::standing;
pub use output::{ErrorFile, SegmentFormat, SegmentRule};
pub use plan::{BatchPlanRules, plan};
pub use record::{BrokenPage, WorkRecord};
pub use retry_errors::{RetriedErrors, RetryRules, retry_errors};
pub use worker::{WorkRules, Worker};
