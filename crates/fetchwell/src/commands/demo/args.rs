//! The arguments of `fetchwell demo`.

use clap::Args;

use crate::commands::args::whole;

/// `fetchwell demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Number of simulated sites; some of them misbehave
    #[arg(long, value_name = "N", default_value = "300", value_parser = whole(10, 5_000))]
    pub(crate) sites: usize,
    /// Number of pages to fetch, across all sites
    #[arg(long, value_name = "N", default_value = "4000", value_parser = whole(1, 100_000))]
    pub(crate) pages: usize,
    /// Random seed; the same seed repeats the same demo
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
