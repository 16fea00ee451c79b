//! `fetchwell schedule`, as it is typed.

use std::path::PathBuf;

use clap::Args;

/// `fetchwell schedule`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// What is due how often: FILE.yaml or FILE.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// Put on the list what is due now, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print what is due now, and change nothing
    #[arg(long, conflicts_with = "once")]
    pub(crate) dry_run: bool,
}
