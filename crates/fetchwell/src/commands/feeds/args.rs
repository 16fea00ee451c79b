//! `fetchwell feeds`, as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fetchwell_settings::Flag;

use crate::commands::args::flag;
use crate::doors::feeds::DEFAULT_CATEGORY;

/// `fetchwell feeds`.
#[derive(Debug, Args)]
pub(crate) struct FeedsArgs {
    /// A list of feeds besides those of the settings and of the store
    #[arg(long, global = true, value_name = "FILE.opml")]
    pub(crate) opml: Option<String>,
    #[command(subcommand)]
    pub(crate) command: FeedsCommand,
}

impl FeedsArgs {
    /// What was typed, as settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        flag("feeds.opml", "--opml", self.opml.as_ref()).into_iter().collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedsCommand {
    /// Subscribe to feeds; one that was paused is read again
    Add {
        /// URLs; @FILE reads a list of them, one a line (# begins a comment); - reads standard input
        #[arg(required = true, value_name = "URL|@FILE|-")]
        urls: Vec<String>,
        /// Where their links go
        #[arg(long, value_name = "NAME", default_value = DEFAULT_CATEGORY)]
        category: String,
        /// How often they are read, such as 30m; a bare number is seconds [default: feeds.interval;
        /// unless that is set, at each ingest]
        #[arg(long, value_name = "DURATION")]
        interval: Option<String>,
    },
    /// Take a feed out of the store
    Remove {
        /// The URL, exactly as it was added
        url: String,
        /// Only out of this category
        #[arg(long, value_name = "NAME")]
        category: Option<String>,
    },
    /// List all feeds: when each was read, when it is due, and what is wrong with it
    List,
    /// Read a feed once and print what would be added; adds nothing
    Test {
        /// The URL of the feed
        url: String,
    },
    /// Read the feeds that are due, add the pages that they list, and end
    Ingest {
        /// Also those that are not due yet, and those that are paused
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
