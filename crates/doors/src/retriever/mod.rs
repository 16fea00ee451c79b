//! `fetchwell serve`: messages come in by an API, their pages are fetched, results go to the outbox.
//!
//! `run` has two flows: one fetches messages, one delivers results to webhooks. `plan` says what becomes of a message,
//! `storied` tells of each attempt, `counted` counts results, and `deliveries` makes deliveries ready.

mod counted;
mod deliveries;
mod plan;
mod run;
mod storied;

pub use counted::OnResult;
pub use deliveries::Encode;
pub use plan::{obituary, plan, retry_rule};
pub use run::{MessageRules, deliver, delivery_gate, flow, messages, prune};
