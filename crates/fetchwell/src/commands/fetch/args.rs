//! The arguments of `fetchwell fetch`.

use std::path::PathBuf;

use clap::Args;
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_policy::units::with_unit;
use fetchwell_settings::Flag;

use crate::commands::args::{flag, output_format};

/// `fetchwell fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// URLs; https if there is no scheme. @FILE reads a list of them, one per line (# starts a
    /// comment); - reads standard input
    #[arg(required = true, value_name = "URL|@FILE|-")]
    pub(crate) urls: Vec<String>,
    #[arg(long, value_parser = output_format(), help = format_help())]
    pub(crate) format: Option<OutputFormat>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Continue where an earlier run with the same --output stopped
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Maximum wait for a site that is down or asks us to wait, such as 30s; a bare number is seconds
    /// [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) give_up_after: Option<String>,
}

fn format_help() -> String {
    let endings = OutputFormat::ALL.into_iter().filter_map(|format| format.endings().first());
    let endings: Vec<&str> = endings.copied().collect();
    format!(
        "Output format [default: by the extension of --output ({}), else markdown for one URL and \
         json for several]",
        endings.join(", ")
    )
}

impl FetchArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let after = self.give_up_after.as_ref().map(|after| with_unit(after, "s"));
        flag("fetch.give_up_after", "--give-up-after", after.as_ref()).into_iter().collect()
    }
}
