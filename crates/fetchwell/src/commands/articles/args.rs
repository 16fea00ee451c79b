//! `fetchwell articles`, as it is typed.

use clap::{Args, Subcommand, ValueEnum};
use fetchwell_settings::Flag;

use crate::commands::args::flag;

#[derive(Debug, Subcommand)]
pub(crate) enum ArticlesCommand {
    /// Fetch the links that are new, and end
    Run,
    /// Read the feeds that are due, then fetch the links that are new, again and again
    Watch {
        /// Where to tell metrics [default: nowhere]
        #[arg(long, value_name = "ADDR:PORT")]
        metrics_listen: Option<String>,
    },
    /// List articles and failures, the newest first
    List(ArticlesListArgs),
    /// Print an article
    Show {
        /// Its uid, or its URL exactly as it was found
        #[arg(value_name = "UID|URL")]
        article: String,
        /// Only what it says, as Markdown
        #[arg(long)]
        markdown: bool,
    },
    /// Count links, articles and failures
    Stats,
}

impl ArticlesCommand {
    /// What was typed, as settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let ArticlesCommand::Watch { metrics_listen } = self else { return Vec::new() };
        let listen = metrics_listen.as_ref();
        flag("articles.metrics_listen", "--metrics-listen", listen).into_iter().collect()
    }
}

/// `fetchwell articles list`.
#[derive(Debug, Args)]
pub(crate) struct ArticlesListArgs {
    /// Only those of this category
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Only those of this status
    #[arg(long, value_enum)]
    pub(crate) status: Option<ArticleStatus>,
    /// Print at most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// Whether a link gave an article.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ArticleStatus {
    /// It did.
    Success,
    /// It did not.
    Failure,
}
