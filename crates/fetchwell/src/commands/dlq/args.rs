//! The arguments of `fetchwell dlq`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// Count dead letters by reason and site; with --reason or --site, list them
    List(ListArgs),
    /// Show details of a dead letter
    Show {
        /// The URL, exactly as it was queued
        url: String,
    },
    /// Retry dead letters with a fresh attempt count
    Retry(Which),
    /// Delete dead letters
    Drop(Which),
    /// Write all dead letters, with their details, as JSON Lines
    Export {
        /// File to write [default: standard output]
        file: Option<PathBuf>,
    },
}

/// `fetchwell dlq list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only dead letters whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Only dead letters of this site; - for URLs without one
    #[arg(long)]
    pub(crate) site: Option<String>,
    /// Count by reason and site even with --reason or --site
    #[arg(long)]
    pub(crate) groups: bool,
    /// Maximum number to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// Which dead letters to retry or drop.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The URL, exactly as it was queued
    #[arg(
        required_unless_present_any = ["reason", "all"],
        conflicts_with_all = ["reason", "site", "canary", "all"]
    )]
    pub(crate) url: Option<String>,
    /// Reason of a group, exactly as "list" shows it
    #[arg(long, requires = "site")]
    pub(crate) reason: Option<String>,
    /// Site of a group; - for URLs without one
    #[arg(long, requires = "reason")]
    pub(crate) site: Option<String>,
    /// Only the first 10 of the group, as a test
    #[arg(long, requires = "reason")]
    pub(crate) canary: bool,
    /// All dead letters
    #[arg(long, conflicts_with_all = ["reason", "site", "canary"])]
    pub(crate) all: bool,
}
