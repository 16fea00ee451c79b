//! `fetchwell serve`, `fetchwell callers` and `fetchwell migrate`, as they are typed.

use clap::{Args, Subcommand};
use fetchwell_settings::Flag;

use crate::commands::args::flag;

/// `fetchwell serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
}

impl ServeArgs {
    /// What was typed, as settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        flag("retriever.listen", "--listen", self.listen.as_ref()).into_iter().collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallersCommand {
    /// Add a caller, and print its token: it is shown this once
    Add {
        /// 1 to 32 of a-z, 0-9, _ and -
        name: String,
        /// What it may do: send and see its own; see everything; do everything
        #[arg(long, default_value = "caller", value_parser = ["caller", "viewer", "operator"])]
        role: String,
    },
    /// List all callers
    List,
    /// Take a caller's token away
    Revoke {
        /// Whose
        name: String,
    },
}

/// `fetchwell migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Where to: postgres://user:password@host/database, with nothing of Fetchwell's in it
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}
