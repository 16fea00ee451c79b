//! `fetchwell schedule`: queues the due entries of a plan for `pages`, once, across all instances.
//!
//! `run` runs a plan. `plan_file` reads it, `entry` computes when something is due, `scheduler` queues it, and
//! `sitemaps` fetches sitemaps through the engine's flow. The only state is in the store, so instances need not know of
//! each other.

mod entry;
mod plan_file;
mod run;
mod scheduler;
mod sitemaps;

pub use entry::{EntryKind, ScheduleEntry};
pub use plan_file::{PlanFileError, read as read_plan};
pub use run::{Schedule, ScheduleRules};
