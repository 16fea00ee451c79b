//! `fetchwell commoncrawl`: from the index of a web archive to the text of its pages.

pub(crate) mod archive;
pub(crate) mod args;
mod batch;
mod batch_bar;
mod dead;
pub(crate) mod find;
pub(crate) mod get;
mod retry_errors;
mod work;

use fetchwell_settings::Settings;

use crate::console::exit::Exit;
use args::CommonCrawlCommand;

pub(crate) async fn run(
    settings: &Settings,
    command: CommonCrawlCommand,
    as_json: bool,
    quiet: u8,
) -> Result<Exit, Exit> {
    match command {
        CommonCrawlCommand::Find(args) => find::run(settings, args, as_json).await,
        CommonCrawlCommand::Get(args) => get::run(settings, args, as_json).await,
        CommonCrawlCommand::Batch(args) => batch::run(settings, args, as_json, quiet).await,
        CommonCrawlCommand::Work(args) => work::run(settings, args).await,
        CommonCrawlCommand::Dead { command } => dead::run(settings, command, as_json).await,
        CommonCrawlCommand::RetryErrors(args) => retry_errors::run(settings, args, as_json).await,
    }
}
