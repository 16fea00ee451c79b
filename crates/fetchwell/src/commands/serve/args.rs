//! The arguments of `fetchwell serve`, `fetchwell callers` and `fetchwell migrate`.

use clap::{Args, Subcommand};
use fetchwell_settings::Flag;

use crate::commands::args::flag;

/// `fetchwell serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
}

impl ServeArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        flag("retriever.listen", "--listen", self.listen.as_ref()).into_iter().collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallersCommand {
    /// Add a caller and print its token, which is shown only once
    Add {
        /// Name: 1 to 32 characters from a-z, 0-9, _ and -
        name: String,
        /// caller: send messages and see its own; viewer: see everything; operator: see and do everything
        #[arg(long, default_value = "caller", value_parser = ["caller", "viewer", "operator"])]
        role: String,
    },
    /// List all callers
    List,
    /// Revoke the token of a caller
    Revoke {
        /// Name of the caller
        name: String,
    },
}

/// `fetchwell migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Target: postgres://user:password@host/database; must hold no Fetchwell data yet
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}
