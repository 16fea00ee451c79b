//! The arguments of `fetchwell explain`.

use std::path::PathBuf;

use clap::Args;

/// `fetchwell explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The URL; https if it has no scheme
    pub(crate) url: String,
    /// Use this robots.txt, offline; exits with 0 if allowed and 3 if not
    #[arg(long, value_name = "FILE")]
    pub(crate) robots: Option<PathBuf>,
}
