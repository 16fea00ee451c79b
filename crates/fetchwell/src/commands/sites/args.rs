//! The arguments of `fetchwell sites`.

use clap::{Args, Subcommand};

use crate::commands::args::whole;

#[derive(Debug, Subcommand)]
pub(crate) enum SitesCommand {
    /// List known sites by name: pace and its source, status, waiting URLs
    List(SitesListArgs),
    /// Show details of a site
    Show {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
    },
    /// Send nothing to a site until it is resumed; its URLs wait. Warns if the site is unknown
    Pause {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
    },
    /// Resume a paused site
    Resume {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
    },
    /// Override the rate of a site; never faster than its Crawl-delay
    SetRate {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
        /// Requests per second, such as 0.5; 0 disables pacing and needs --i-own-these-sites
        #[arg(value_name = "RATE", required_unless_present = "clear")]
        per_second: Option<f64>,
        /// Remove the override; use the settings again
        #[arg(long, conflicts_with = "per_second")]
        clear: bool,
    },
    /// Close the breaker of a site without waiting for a probe
    ResetBreaker {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
    },
    /// Discard the cached robots.txt of a site, so that it is read again
    RefetchRobots {
        /// Host of the site, with its port unless it is the default one: example.com, example.com:8080
        site: String,
    },
}

/// `fetchwell sites list`.
#[derive(Debug, Args)]
pub(crate) struct SitesListArgs {
    /// Only sites whose names contain this text
    pub(crate) text: Option<String>,
    /// Only sites in this condition
    #[arg(long, value_parser = ["paused", "rated", "breaker-open", "resting", "limited", "failed"])]
    pub(crate) condition: Option<String>,
    /// Only sites whose names sort after this one
    #[arg(long, value_name = "SITE")]
    pub(crate) after: Option<String>,
    /// Maximum number to print
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole(1, 1_000_000))]
    pub(crate) limit: usize,
}
