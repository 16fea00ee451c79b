//! `fetchwell config`, as it is typed.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write the commented default file
    Init {
        /// Where to
        #[arg(default_value = "fetchwell.toml")]
        path: PathBuf,
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Print the effective settings and where each comes from
    Show,
    /// Check the settings and say how to fix each error
    Check,
    /// Print every setting with its default and what it is for, in Markdown
    Reference,
}
