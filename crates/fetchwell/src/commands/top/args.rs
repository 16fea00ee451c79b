//! The arguments of `fetchwell top`.

use clap::Args;

/// `fetchwell top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one frame, then exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between updates
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) interval: u16,
}
