//! The arguments of `fetchwell feeds`, and the rules of its door.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fetchwell_doors::feeds::FeedRules;
use fetchwell_settings::{Flag, Values};

use super::subscriptions::DEFAULT_CATEGORY;
use crate::commands::args::given;

/// `fetchwell feeds`.
#[derive(Debug, Args)]
pub(crate) struct FeedsArgs {
    /// OPML file with feeds, in addition to those in the settings and the store
    #[arg(long, global = true, value_name = "FILE.opml")]
    pub(crate) opml: Option<String>,
    #[command(subcommand)]
    pub(crate) command: FeedsCommand,
}

impl FeedsArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        given([("feeds.opml", "--opml", &self.opml)])
    }
}

/// The rules of the door, from the settings.
pub(super) fn rules(values: &Values) -> FeedRules {
    FeedRules { max_wait: values.feeds_max_wait, max_redirects: values.http_max_redirects }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedsCommand {
    /// Subscribe to feeds; resumes those that are paused
    Add {
        /// URLs; @FILE reads a list of them, one per line (# starts a comment); - reads standard input
        #[arg(required = true, value_name = "URL|@FILE|-")]
        urls: Vec<String>,
        /// Category of their links
        #[arg(long, value_name = "NAME", default_value = DEFAULT_CATEGORY)]
        category: String,
        /// How often to read them, such as 30m; a bare number is seconds [default: feeds.interval;
        /// if that is not set, at each ingest]
        #[arg(long, value_name = "DURATION")]
        interval: Option<String>,
    },
    /// Remove a feed from the store
    Remove {
        /// The URL, exactly as it was added
        url: String,
        /// Remove it only from this category
        #[arg(long, value_name = "NAME")]
        category: Option<String>,
    },
    /// List all feeds: when each was read, when it is due, and its problems
    List,
    /// Read a feed once and print the links that would be added; adds nothing
    Test {
        /// The URL of the feed
        url: String,
    },
    /// Read the feeds that are due, add their links, and exit
    Ingest {
        /// Also read feeds that are paused or not due yet
        #[arg(long)]
        all: bool,
    },
    /// Subscribe to the feeds of an OPML file
    Import {
        /// The file
        #[arg(value_name = "FILE.opml")]
        file: PathBuf,
    },
    /// Print all feeds as OPML
    Export,
}
