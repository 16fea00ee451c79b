//! What can be typed after `fetchwell pages`.

use clap::{Args, Subcommand};
use fetchwell_settings::Flag;

use crate::commands::args::flag;

/// `fetchwell pages`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PagesArgs {
    /// Where to tell metrics [default: 0.0.0.0:9100]; '' tells none
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<String>,
    /// Show a dashboard, at 127.0.0.1:8081 where nothing else is said
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8081")]
    pub(crate) dashboard: Option<String>,
    /// Without one of these it fetches until it is stopped
    #[command(subcommand)]
    pub(crate) command: Option<PagesCommand>,
}

impl PagesArgs {
    /// What was typed, as settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let metrics = self.metrics_listen.as_ref();
        let dashboard = self.dashboard.as_ref();
        let flags = [
            flag("pages.metrics_listen", "--metrics-listen", metrics),
            flag("pages.dashboard_listen", "--dashboard", dashboard),
        ];
        flags.into_iter().flatten().collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PagesCommand {
    /// Put URLs on the list; adds nothing if one of them is no http or https URL
    Add {
        /// URLs; @FILE reads a list of them, one per line (# begins a comment); - reads standard input
        #[arg(required = true, value_name = "URL|@FILE|-")]
        urls: Vec<String>,
    },
    /// Print the events that are kept in the embedded log, one JSON object a line
    Events {
        /// Only those after this cursor
        #[arg(long, value_name = "CURSOR", default_value = "0")]
        after: i64,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Go on with those that come
        #[arg(long)]
        follow: bool,
    },
    /// Print the cached page of a URL
    Show {
        /// The URL, exactly as it was put on the list
        url: String,
    },
    /// Print how many URLs are waiting, where and for how long, and which hosts do not exist
    Status,
    /// Put all that waits in Redis back on the list, for another program to take
    ///
    /// What dead processes hold goes back, too: the command waits until their leases have ended (lease.ttl, 20 s).
    Unpark,
}
