//! The arguments of `fetchwell schedule`, and the rules of its door.

use std::path::PathBuf;

use clap::Args;
use fetchwell_doors::schedule::ScheduleRules;
use fetchwell_settings::Values;

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

impl ScheduleArgs {
    /// The rules of the door, from the arguments and the settings.
    pub(super) fn rules(&self, values: &Values) -> ScheduleRules {
        ScheduleRules { max_waiting: values.schedule_max_queue, ends: self.once || self.dry_run }
    }
}
