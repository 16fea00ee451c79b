//! From the index of a web archive to the text of its pages.
//!
//! [`archive`] is a web server, a folder or a bucket, each behind the engine's `Web` port. [`lookup`] finds captures in
//! the index and fetches one of them. [`batch`] turns an index into batches on a [`BoundedQueue`], and [`work`] turns
//! these into documents. [`CrawlFiles`] reports the progress of both.
//!
//! | door | a lease is | fetches | produces | ends |
//! |---|---|---|---|---|
//! | [`lookup`] | a lookup | ranges, one after the other | captures, or one page | done |
//! | [`batch`] | a line of `cluster.idx` | one range | batches | done |
//! | [`work`] | a batch | its ranges, joined if close together | documents | done or dead |

pub mod archive;
pub mod batch;
mod bounded_queue;
mod crawl_files;
mod error;
pub mod lookup;
mod read_time;
pub mod work;

pub use bounded_queue::BoundedQueue;
pub use crawl_files::CrawlFiles;
pub use error::CommonCrawlError;
pub use read_time::ReadTime;
