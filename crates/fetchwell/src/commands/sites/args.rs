//! `fetchwell sites`, as it is typed.

use clap::{Args, Subcommand};

use crate::commands::args::whole;

#[derive(Debug, Subcommand)]
pub(crate) enum SitesCommand {
    /// List the sites that are known, by name: pace and its source, what holds each up, what waits
    List(SitesListArgs),
    /// Tell all that is known about a site
    Show {
        /// Such as example.com or example.com:8080
        site: String,
    },
    /// Send nothing to a site until it is resumed; its URLs wait. Warns if the site is unknown
    Pause {
        /// Such as example.com or example.com:8080
        site: String,
    },
    /// Go on with a site that was paused
    Resume {
        /// Such as example.com or example.com:8080
        site: String,
    },
    /// Give a site a pace, whatever the settings say; never faster than its Crawl-delay
    SetRate {
        /// Such as example.com or example.com:8080
        site: String,
        /// Requests per second, such as 0.5; 0: no pacing, which needs --i-own-these-sites
        #[arg(value_name = "RATE", required_unless_present = "clear")]
        per_second: Option<f64>,
        /// Take the order back: the settings hold again
        #[arg(long, conflicts_with = "per_second")]
        clear: bool,
    },
    /// Take a site that is down for sound again, without waiting for a probe
    ResetBreaker {
        /// Such as example.com or example.com:8080
        site: String,
    },
    /// Forget what is known of a site's robots.txt, so that it is read again
    RefetchRobots {
        /// Such as example.com or example.com:8080
        site: String,
    },
}

/// `fetchwell sites list`.
#[derive(Debug, Args)]
pub(crate) struct SitesListArgs {
    /// Only those with this in their names
    pub(crate) text: Option<String>,
    /// Only those that stand so
    #[arg(long, value_parser = ["paused", "rated", "breaker-open", "resting", "limited", "failed"])]
    pub(crate) condition: Option<String>,
    /// Only those whose names come after this one
    #[arg(long, value_name = "SITE")]
    pub(crate) after: Option<String>,
    /// Print at most so many
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole(1, 1_000_000))]
    pub(crate) limit: usize,
}
