//! `fetchwell demo`, as it is typed.

use clap::Args;

use crate::commands::args::whole;

/// `fetchwell demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Simulated sites, some of them ill-behaved
    #[arg(long, value_name = "N", default_value = "300", value_parser = whole(10, 5_000))]
    pub(crate) sites: usize,
    /// Pages to fetch, over all sites
    #[arg(long, value_name = "N", default_value = "4000", value_parser = whole(1, 100_000))]
    pub(crate) pages: usize,
    /// Makes the same demo again
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
