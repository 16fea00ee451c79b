//! `fetchwell fetch`: each URL becomes one row, in one of several formats.
//!
//! `run` builds the door. `plan` fetches a URL, `row` is its result and how it is printed, `capture` the same as WARC
//! records, and `earlier` reads the results of an earlier run from an output file. `format` lists the formats, and
//! `printed` formats pages as Markdown and text.

mod capture;
mod earlier;
mod format;
mod json_text;
mod plan;
mod printed;
mod row;
mod run;

pub(crate) use plan::{PageFetch, settlement};
pub(crate) use row::CrawlFields;

pub use capture::Archived;
pub use earlier::{Earlier, EarlierRow, EarlierRows};
pub use format::OutputFormat;
pub use plan::FetchRules;
pub use printed::{markdown_page, text_page, under_url};
pub use row::{FetchRow, RowOutcome, preamble, renderer};
pub use run::{door, gate_rules, jobs};
