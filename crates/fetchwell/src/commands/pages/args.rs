//! The arguments of `fetchwell pages`, and the rules of its door.

use clap::{Args, Subcommand};
use fetchwell_doors::pages::{PageDoorRules, PageRules};
use fetchwell_policy::retry::{Backoff, RetryRule};
use fetchwell_settings::{Flag, Values};

use crate::commands::args::given;

/// `fetchwell pages`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PagesArgs {
    /// Address to serve metrics on; '' disables metrics [default: 0.0.0.0:9100]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<String>,
    /// Serve a dashboard [default address: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8081")]
    pub(crate) dashboard: Option<String>,
    /// Without a subcommand, it fetches until it is stopped
    #[command(subcommand)]
    pub(crate) command: Option<PagesCommand>,
}

impl PagesArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        given([
            ("pages.metrics_listen", "--metrics-listen", &self.metrics_listen),
            ("pages.dashboard_listen", "--dashboard", &self.dashboard),
        ])
    }
}

/// The rules of the door, from the settings.
pub(super) fn rules(values: &Values) -> PageDoorRules {
    let base = values.pages_retry_backoff_base;
    let retry = RetryRule {
        server_error_attempts: values.pages_max_retries,
        soft_refusal_attempts: values.pages_max_retries,
        backoff: Backoff { base, ..RetryRule::PAGES.backoff },
        site_backoff: Backoff { base, ..RetryRule::PAGES.site_backoff },
        ..RetryRule::PAGES
    };
    PageDoorRules {
        page: PageRules { retry, max_redirects: values.http_max_redirects },
        cache_ttl: values.pages_cache_ttl,
        event_retention: values.pages_event_retention,
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PagesCommand {
    /// Add URLs to the list; adds none if one of them is not an http or https URL
    Add {
        /// URLs; @FILE reads a list of them, one per line (# starts a comment); - reads standard input
        #[arg(required = true, value_name = "URL|@FILE|-")]
        urls: Vec<String>,
    },
    /// Print the events in the embedded log, one JSON object per line
    Events {
        /// Only events after this cursor
        #[arg(long, value_name = "CURSOR", default_value = "0")]
        after: i64,
        /// Maximum number to print
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Wait for new events and print them
        #[arg(long)]
        follow: bool,
    },
    /// Print the cached page of a URL
    Show {
        /// The URL, exactly as it was added to the list
        url: String,
    },
    /// Print how many URLs are waiting, where and for how long, and which hosts do not exist
    Status,
    /// Put all waiting URLs in Redis back on the list, for another program to take
    ///
    /// URLs held by dead processes go back, too: the command waits until their leases expire (lease.ttl, 20 s).
    Unpark,
}
