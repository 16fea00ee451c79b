//! The doors that are not in the crate `doors` yet: those of Common Crawl, and what they use.
//!
//! | door | a lease is | it fetches | out comes | it ends |
//! |---|---|---|---|---|
//! | [`commoncrawl::batch`] | a line of `cluster.idx` | one range | batches | done |
//! | [`commoncrawl::work`] | a batch | its ranges, near pages in one | documents | done or dead |
//!
//! Plans are pure. A door's payload is the JSON in its jobs; its `plan` makes of a lease
//! what the engine steps through; its records are what the sink writes.

pub mod commoncrawl;

pub(crate) mod fetch {
    pub(crate) mod format;
}
