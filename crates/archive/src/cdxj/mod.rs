//! CDXJ: one line per captured page, with a JSON object about it.
//!
//! An index has billions of lines, and most are not wanted. So most lines are rejected by a look at their raw bytes,
//! and only the others are parsed.

mod filter;
mod flat;
mod items;
mod line;
mod peek;
mod record;
mod sieve;

pub use filter::{Criterion, IndexFilter, Language, LanguagePlace};
pub use items::{BatchItem, ItemFault, read_batch};
pub use line::CdxLine;
pub use record::{CdxRecord, MAX_RECORD_BYTES, parse_line};
pub use sieve::{MalformedLine, Sieve, Sifted, sift};
