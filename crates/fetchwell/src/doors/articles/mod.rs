//! `fetchwell articles`: links of categories become canonical articles, or failures with a code.
//!
//! `run` is one run: snapshot, difference, fetch, end. Links are claimed by putting them on a queue, and
//! `unattempted` drops what others did meanwhile. `plan` says what becomes of a link, `record` what comes out,
//! `finish` where that goes. `watch` is feeds and runs in turn; `commands` and `print` are for people.

mod commands;
mod finish;
mod plan;
mod print;
mod record;
mod run;
mod unattempted;
mod watch;

pub use plan::{Link, LinkRules, obituary, plan};
pub use record::{ArticleRecord, CanonicalArticle, FailCode, FailedArticle};

use std::sync::Arc;

use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_policy::digest::sha1_hex;
use fetchwell_settings::Settings;

use crate::commands::articles::args::ArticlesCommand;
use crate::console::exit::Exit;
use crate::console::output::Running;

/// The name of an article: the first 16 hex digits of the SHA-1 of its URL.
pub fn uid(url: &str) -> String {
    sha1_hex(url.as_bytes()).chars().take(16).collect()
}

/// What a run reads and writes.
pub(crate) struct ArticlePorts {
    pub(crate) links: Arc<dyn CategoryLinks>,
    pub(crate) articles: Arc<dyn Articles>,
}

/// Does what was typed.
pub(crate) fn run(settings: &Settings, command: ArticlesCommand, as_json: bool) -> Running<'_> {
    Box::pin(run_inner(settings, command, as_json))
}

async fn run_inner(
    settings: &Settings,
    command: ArticlesCommand,
    as_json: bool,
) -> Result<Exit, Exit> {
    match command {
        ArticlesCommand::Run => run::once(settings).await,
        ArticlesCommand::Watch { .. } => watch::watch(settings).await,
        ArticlesCommand::List(args) => commands::list(settings, args, as_json).await,
        ArticlesCommand::Show { article, markdown } => {
            commands::show(settings, &article, markdown, as_json).await
        }
        ArticlesCommand::Stats => commands::stats(settings, as_json).await,
    }
}
