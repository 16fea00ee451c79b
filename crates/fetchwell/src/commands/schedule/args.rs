//! The arguments of `fetchwell schedule`.

use std::path::PathBuf;

use clap::Args;

/// `fetchwell schedule`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// Plan file: FILE.yaml or FILE.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// Add the URLs that are due now, then exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print what is due now; change nothing
    #[arg(long, conflicts_with = "once")]
    pub(crate) dry_run: bool,
}
