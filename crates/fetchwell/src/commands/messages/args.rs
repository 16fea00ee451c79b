//! The arguments of `fetchwell messages`, `fetchwell outbox` and `fetchwell ledger`.

use clap::{Args, Subcommand};

/// `fetchwell messages`.
#[derive(Debug, Subcommand)]
pub(crate) enum MessagesCommand {
    /// List messages of all callers, newest first
    List(MessagesListArgs),
    /// Show details of a message: timeline, attempts and result
    Show {
        /// Id of the message
        #[arg(value_name = "MESSAGE")]
        id: String,
    },
    /// Resend finished messages as new ones; make delayed messages due now
    Retry(WhichMessages),
    /// Cancel waiting messages; their results have the status cancelled
    Cancel(WhichMessages),
}

/// Filters for messages.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MessageFilterArgs {
    /// Only messages in this state
    #[arg(long, value_parser = ["queued", "processing", "delayed", "completed", "failed"])]
    pub(crate) state: Option<String>,
    /// Only messages to this site: a host, with the port unless it is the default one
    #[arg(long)]
    pub(crate) site: Option<String>,
    /// Only messages of this retailer
    #[arg(long)]
    pub(crate) retailer: Option<String>,
    /// Only messages of this caller
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Only messages that failed for this reason, exactly as "list" shows it: timeout, "http_error 404", …
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Only messages whose URL contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) url: Option<String>,
    /// Only messages with this correlation id
    #[arg(long, value_name = "TEXT")]
    pub(crate) correlation_id: Option<String>,
    /// Ignore messages that were accepted or ended after this time, as "list" shows it
    #[arg(long, value_name = "TIME")]
    pub(crate) as_of: Option<String>,
}

/// `fetchwell messages list`.
#[derive(Debug, Args)]
pub(crate) struct MessagesListArgs {
    #[command(flatten)]
    pub(crate) filter: MessageFilterArgs,
    /// Maximum number to print
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Count failures by reason and site instead
    #[arg(
        long,
        conflicts_with_all = [
            "state", "site", "retailer", "caller", "reason", "url", "correlation_id", "as_of", "limit",
        ]
    )]
    pub(crate) groups: bool,
    /// Print only the number of messages
    #[arg(long, conflicts_with_all = ["groups", "limit"])]
    pub(crate) count: bool,
}

/// Which messages to retry or cancel.
#[derive(Debug, Args)]
pub(crate) struct WhichMessages {
    /// Message ids; or select messages with --state and further filters
    #[arg(
        value_name = "MESSAGE",
        required_unless_present = "state",
        conflicts_with_all = [
            "state", "site", "retailer", "caller", "reason", "url", "correlation_id", "as_of", "canary",
        ]
    )]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: MessageFilterArgs,
    /// Only the newest of them, as a test
    #[arg(long, requires = "state")]
    pub(crate) canary: bool,
}

/// `fetchwell outbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// Print the newest results
    Tail(TailArgs),
}

/// `fetchwell outbox tail`.
#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// Only results of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Wait for new results and print them
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Number of results to start with
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) lines: u32,
}

/// `fetchwell ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Also count the jobs themselves and compare; exits with 1 if the counts differ
    #[arg(long)]
    pub(crate) check: bool,
}
