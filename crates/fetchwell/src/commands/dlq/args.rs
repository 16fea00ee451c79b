//! `fetchwell dlq`, as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// Count the URLs that were given up by reason and site; with --reason or --site, list them
    List(ListArgs),
    /// Tell all that is known about a URL that was given up
    Show {
        /// The URL, exactly as it was queued
        url: String,
    },
    /// Try URLs anew, with a clean record
    Retry(Which),
    /// Take URLs away for good
    Drop(Which),
    /// Write every URL that was given up, with its details, as JSON lines
    Export {
        /// Where to [default: standard output]
        file: Option<PathBuf>,
    },
}

/// `fetchwell dlq list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those whose reason has this in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Only those of this site; - for URLs that have none
    #[arg(long)]
    pub(crate) site: Option<String>,
    /// Count them by reason and site, though --reason or --site is given
    #[arg(long)]
    pub(crate) groups: bool,
    /// Print at most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// Which URLs are meant.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The URL, exactly as it was queued
    #[arg(
        required_unless_present_any = ["reason", "all"],
        conflicts_with_all = ["reason", "site", "canary", "all"]
    )]
    pub(crate) url: Option<String>,
    /// Those of a group: its reason, exactly as "list" shows it
    #[arg(long, requires = "site")]
    pub(crate) reason: Option<String>,
    /// Those of a group: its site; - for URLs that have none
    #[arg(long, requires = "reason")]
    pub(crate) site: Option<String>,
    /// Only the first 10 of the group, to see how they fare
    #[arg(long, requires = "reason")]
    pub(crate) canary: bool,
    /// Every one there is
    #[arg(long, conflicts_with_all = ["reason", "site", "canary"])]
    pub(crate) all: bool,
}
