//! The arguments of `fetchwell articles`, and the rules of its door.

use clap::{Args, Subcommand, ValueEnum};
use fetchwell_doors::articles::{ArticleRules, LinkRules};
use fetchwell_engine::web::Timeouts;
use fetchwell_settings::{Flag, Values};

use crate::commands::args::given;
use crate::wiring::read_limits;

#[derive(Debug, Subcommand)]
pub(crate) enum ArticlesCommand {
    /// Fetch the new links, then exit
    Run,
    /// Read the feeds that are due and fetch the new links, in a loop
    Watch {
        /// Address to serve metrics on [default: none]
        #[arg(long, value_name = "ADDR:PORT")]
        metrics_listen: Option<String>,
    },
    /// List articles and failures, newest first
    List(ArticlesListArgs),
    /// Print an article
    Show {
        /// Uid of the article, or its exact URL
        #[arg(value_name = "UID|URL")]
        article: String,
        /// Print only the text, as Markdown
        #[arg(long)]
        markdown: bool,
    },
    /// Count links, articles and failures
    Stats,
}

impl ArticlesCommand {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let ArticlesCommand::Watch { metrics_listen } = self else { return Vec::new() };
        given([("articles.metrics_listen", "--metrics-listen", metrics_listen)])
    }
}

/// The rules of the door, from the settings.
pub(super) fn rules(values: &Values) -> ArticleRules {
    let link = LinkRules {
        timeouts: Timeouts { connect: None, request: Some(values.articles_request_timeout) },
        max_redirects: values.http_max_redirects,
        reading: read_limits(values),
    };
    ArticleRules { link, max_wait: values.articles_max_wait }
}

/// `fetchwell articles list`.
#[derive(Debug, Args)]
pub(crate) struct ArticlesListArgs {
    /// Only articles in this category
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Only articles with this status
    #[arg(long, value_enum)]
    pub(crate) status: Option<ArticleStatus>,
    /// Maximum number to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// Whether a link yielded an article.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ArticleStatus {
    /// An article was extracted
    Success,
    /// The link gave no article
    Failure,
}
