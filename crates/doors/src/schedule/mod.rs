//! `fetchwell schedule`: what a plan has due goes on the list of `pages`, once, whoever puts it there.
//!
//! `run` is a plan at work. `plan_file` reads the plan, `entry` says when something is due, `scheduler` puts it on the
//! list, and `sitemaps` fetches those by the one flow. What was done stands in the store and nowhere else, so
//! instances need not know of each other.

mod entry;
mod plan_file;
mod run;
mod scheduler;
mod sitemaps;

pub use entry::{Entry, Kind};
pub use plan_file::{PlanFileError, read as read_plan};
pub use run::{Schedule, ScheduleRules};
