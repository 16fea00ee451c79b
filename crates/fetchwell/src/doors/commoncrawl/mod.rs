//! `fetchwell commoncrawl`: from the index of a web archive to the text of its pages.
//!
//! `archive` opens what is read from: a web server, a folder or a bucket, each an ordinary web to the one
//! flow. `byte_range` asks for a stretch of a file and takes nothing else, `near_ranges` joins those that
//! lie side by side. `lookup` finds captures in the index, and brings one back. `batch` makes batches of an
//! index for a `queue`, and `work` makes documents of them. `dead` is for batches that were given up.
//! `crawl_files` is what others are told of both, `read_time` what reading a page may cost.

pub mod archive;
pub mod batch;
mod byte_range;
mod crawl_files;
mod dead;
mod error;
mod folder;
pub mod lookup;
mod near_ranges;
mod queue;
mod read_time;
mod s3;
mod sigv4;
pub mod work;

use fetchwell_settings::Settings;

use crate::commands::commoncrawl::args::CommonCrawlCommand;
use crate::commands::commoncrawl::{find, get};
use crate::console::exit::Exit;

pub(crate) use crawl_files::CrawlFiles;
pub use error::CommonCrawlError;
pub use read_time::ReadTime;

/// Does what was typed.
pub(crate) async fn run(
    settings: &Settings,
    command: CommonCrawlCommand,
    as_json: bool,
    quiet: u8,
) -> Result<Exit, Exit> {
    match command {
        CommonCrawlCommand::Find(args) => find(settings, args, as_json).await,
        CommonCrawlCommand::Get(args) => get(settings, args, as_json).await,
        CommonCrawlCommand::Batch(args) => batch::run(settings, args, as_json, quiet).await,
        CommonCrawlCommand::Work(args) => work::serve(settings, args).await,
        CommonCrawlCommand::Dead { command } => dead::run(settings, command, as_json).await,
        CommonCrawlCommand::RetryErrors(args) => work::retry_errors(settings, args, as_json).await,
    }
}
