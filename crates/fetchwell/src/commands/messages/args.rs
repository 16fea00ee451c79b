//! `fetchwell messages`, `fetchwell outbox` and `fetchwell ledger`, as they are typed.

use clap::{Args, Subcommand};

/// `fetchwell messages`.
#[derive(Debug, Subcommand)]
pub(crate) enum MessagesCommand {
    /// List messages of all callers, the newest first
    List(MessagesListArgs),
    /// Tell all that is known about a message: its way, its attempts, its result
    Show {
        /// The message
        #[arg(value_name = "MESSAGE")]
        id: String,
    },
    /// Send again what has ended, as a message of its own; let what waits for a time go now
    Retry(WhichMessages),
    /// End what waits: its caller is told that it was cancelled
    Cancel(WhichMessages),
}

/// What messages have in common.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MessageFilter {
    /// Where they stand
    #[arg(long, value_parser = ["queued", "processing", "delayed", "completed", "failed"])]
    pub(crate) state: Option<String>,
    /// The site that they go to: a host, with the port unless it is the usual one
    #[arg(long)]
    pub(crate) site: Option<String>,
    /// On whose behalf
    #[arg(long)]
    pub(crate) retailer: Option<String>,
    /// Who sent them
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Why they failed, exactly as "list" shows it: timeout, "http_error 404", …
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// What their URL contains
    #[arg(long, value_name = "TEXT")]
    pub(crate) url: Option<String>,
    /// The caller's own name for them
    #[arg(long, value_name = "TEXT")]
    pub(crate) correlation_id: Option<String>,
    /// Nothing that came in or ended after this time, as "list" shows it
    #[arg(long, value_name = "TIME")]
    pub(crate) as_of: Option<String>,
}

/// `fetchwell messages list`.
#[derive(Debug, Args)]
pub(crate) struct MessagesListArgs {
    #[command(flatten)]
    pub(crate) filter: MessageFilter,
    /// Print at most so many
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
    /// Only say how many there are
    #[arg(long, conflicts_with_all = ["groups", "limit"])]
    pub(crate) count: bool,
}

/// Which messages are meant.
#[derive(Debug, Args)]
pub(crate) struct WhichMessages {
    /// The messages; or name what they have in common, --state at least
    #[arg(
        value_name = "MESSAGE",
        required_unless_present = "state",
        conflicts_with_all = [
            "state", "site", "retailer", "caller", "reason", "url", "correlation_id", "as_of", "canary",
        ]
    )]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: MessageFilter,
    /// Only the newest of them, to see how it fares
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
    /// Only this caller's
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Go on with what comes
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Begin with so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) lines: u32,
}

/// `fetchwell ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Count the jobs themselves, too, and compare; exits with 1 where something differs
    #[arg(long)]
    pub(crate) check: bool,
}
