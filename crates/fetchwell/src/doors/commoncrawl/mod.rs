//! From the index of a web archive to the text of its pages.
//!
//! `archive` opens what is read from: a web server, a folder or a bucket, each an ordinary web to the one
//! flow. `byte_range` asks for a stretch of a file and takes nothing else, `near_ranges` joins those that
//! lie side by side. `lookup` finds captures in the index, and brings one back. `batch` makes batches of an
//! index for a `queue`, and `work` makes documents of them. `crawl_files` is what others are told of both,
//! `read_time` what reading a page may cost.

pub mod archive;
pub mod batch;
mod byte_range;
mod crawl_files;
mod error;
mod folder;
pub mod lookup;
mod near_ranges;
mod queue;
mod read_time;
mod s3;
mod sigv4;
pub mod work;

pub(crate) use crawl_files::CrawlFiles;
pub use error::CommonCrawlError;
pub use near_ranges::JoinRule;
pub use queue::BoundedQueue;
pub use read_time::ReadTime;
