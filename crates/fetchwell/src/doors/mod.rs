//! The doors: each is a source, a plan and a sink. The flow between them is the engine's.
//!
//! | door | a lease is | it fetches | out comes | it ends |
//! |---|---|---|---|---|
//! | [`commoncrawl::batch`] | a line of `cluster.idx` | one range | batches | done |
//! | [`commoncrawl::work`] | a batch | its ranges, near pages in one | documents | done or dead |
//!
//! Plans are pure. A door's payload is the JSON in its jobs; its `plan` makes of a lease
//! what the engine steps through; its records are what the sink writes.

pub mod commoncrawl;
pub(crate) mod fetch;
pub mod read_limits;
