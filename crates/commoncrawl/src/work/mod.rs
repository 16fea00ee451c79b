//! Turns batches of captured pages into text documents.
//!
//! A batch is a lease. `plan` requests its ranges and turns each captured page into a `document`, unless `filter`
//! excludes it. `in_hand` limits the texts that are not written yet, and `base_check` detects a wrong `--base`.
//! `output` writes documents to segments, each page once even if its batch is delivered again; only then is the batch
//! acknowledged. `begun` detects batches that make workers crash. `retry_errors` republishes unreadable pages. `worker`
//! runs it all.

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
pub use output::{ErrorFile, OutputTarget, SegmentFormat, SegmentRule};
pub use plan::{BatchPlanRules, plan};
pub use record::{BrokenPage, WorkRecord};
pub use retry_errors::{RetriedErrors, RetryRules, retry_errors};
pub use worker::{WorkRules, Worker};
