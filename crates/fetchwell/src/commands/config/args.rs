//! The arguments of `fetchwell config`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write the commented default file
    Init {
        /// File to write
        #[arg(default_value = "fetchwell.toml")]
        path: PathBuf,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Print the effective settings and where each comes from
    Show,
    /// Check the settings and say how to fix each error
    Check,
    /// Print every setting with its default and description, in Markdown
    Reference,
}
