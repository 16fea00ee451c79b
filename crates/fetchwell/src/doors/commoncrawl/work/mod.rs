//! `fetchwell commoncrawl work`: batches of captured pages become text documents.
//!
//! A batch is a lease; `plan` asks for its ranges and makes each captured page a `document`, unless `filter`
//! leaves it out. What all batches have made and not written yet is `in_hand`. `output` writes documents into segments, each page once however often its batch comes,
//! and only then does the batch end. `begun` counts who died over a batch of a broker. `serve` is the door at work.

mod at_archive;
#[cfg(feature = "rabbitmq")]
mod begun;
mod counted;
mod document;
mod filter;
mod in_hand;
mod metrics;
mod output;
mod plan;
mod record;
mod serve;

pub(super) use document::record_bytes;
pub use document::{Document, WarcPlace};
pub use filter::DocumentFilter;
pub use in_hand::{InHand, Part};
pub(crate) use output::standing;
pub use plan::{WorkRules, plan};
pub use record::{BrokenPage, WorkRecord};
pub(super) use serve::serve;
