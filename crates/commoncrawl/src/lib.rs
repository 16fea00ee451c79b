//! From the index of a web archive to the text of its pages.
//!
//! [`archive`] is what is read from: a web server, a folder or a bucket, each an ordinary web to the one flow.
//! [`lookup`] finds captures in the index, and brings one back. [`batch`] makes batches of an index for a
//! [`BoundedQueue`], and [`work`] makes documents of them. [`CrawlFiles`] is what others are told of both.
//!
//! | door | a lease is | it fetches | out comes | it ends |
//! |---|---|---|---|---|
//! | [`lookup`] | a lookup | ranges, one after the other | captures, or one page | done |
//! | [`batch`] | a line of `cluster.idx` | one range | batches | done |
//! | [`work`] | a batch | its ranges, near pages in one | documents | done or dead |

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
