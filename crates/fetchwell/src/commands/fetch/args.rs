//! The arguments of `fetchwell fetch`, and the rules of its door.

use std::path::PathBuf;

use clap::Args;
use fetchwell_doors::fetch::{FetchRules, OutputFormat};
use fetchwell_engine::plan::redirect_chain::Patience;
use fetchwell_policy::time::Time;
use fetchwell_policy::units::with_unit;
use fetchwell_settings::{Flag, Values};

use crate::commands::args::{given, output_format};
use crate::wiring::read_limits;

/// `fetchwell fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// URLs; https if there is no scheme. @FILE reads a list of them, one per line (# starts a
    /// comment); - reads standard input
    #[arg(required = true, value_name = "URL|@FILE|-")]
    pub(crate) urls: Vec<String>,
    #[arg(long, value_parser = output_format(&OutputFormat::ALL), help = format_help())]
    pub(crate) format: Option<OutputFormat>,
    /// Add the links of each page to its JSON row
    #[arg(long)]
    pub(crate) links: bool,
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
        given([("fetch.give_up_after", "--give-up-after", &after)])
    }
}

/// The rules of the door, from the settings. Its patience counts from this time.
pub(crate) fn rules(values: &Values, format: OutputFormat, links: bool, since: Time) -> FetchRules {
    FetchRules {
        format,
        links,
        reading: read_limits(values),
        max_redirects: values.http_max_redirects,
        patience: Patience { since, lasts: values.fetch_give_up_after },
    }
}
