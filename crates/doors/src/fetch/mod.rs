//! `fetchwell fetch`: each URL becomes one row, in one of several formats.
//!
//! `run` makes the door. `plan` says what becomes of a URL, `row` is what comes out and how it is printed, `capture` the
//! same as records of an archive, and `earlier` reads what an earlier run left in an output. `format` lists the formats.

mod capture;
mod earlier;
mod format;
mod jobs;
mod plan;
mod row;
mod run;

pub use capture::{Archived, warcinfo};
pub use earlier::Earlier;
pub use format::OutputFormat;
pub use jobs::jobs;
pub use plan::FetchRules;
pub use row::{Row, RowOutcome, renderer};
pub use run::{door, gate_rules};
