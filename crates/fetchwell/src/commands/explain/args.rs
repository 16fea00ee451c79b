//! `fetchwell explain`, as it is typed.

use std::path::PathBuf;

use clap::Args;

/// `fetchwell explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The URL; without a scheme it means https
    pub(crate) url: String,
    /// Judge by this robots.txt, offline; exits with 0 when allowed and 3 when not
    #[arg(long, value_name = "FILE")]
    pub(crate) robots: Option<PathBuf>,
}
