//! `fetchwell serve`: fetches the pages of messages from an API and stores the results in the outbox.
//!
//! `run` has two flows: one fetches messages, one delivers results to webhooks. `plan` says what becomes of a message,
//! `reading` reads the requested fields from its page, `with_timeline` records each attempt, `bodies` decides which
//! bodies are kept, and `deliveries` prepares deliveries.

mod bodies;
mod deliveries;
mod plan;
mod reading;
mod run;
mod with_timeline;

pub use bodies::BodyRules;
pub use deliveries::Encode;
pub(crate) use plan::PageResults;
pub use plan::{give_up_record, plan, retry_rule};
pub use run::{MessageRules, OnResult, Retention, deliver, delivery_gate, flow, messages, prune};
