//! The command line: its global flags, the settings that they override, and the commands about itself.

mod manual;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fetchwell_settings::Flag;
use fetchwell_settings::features::long_version;

use crate::commands::Command;
use crate::commands::args::given;
use crate::console::logs::LogOptions;

pub use run::main;

/// Fetch web pages politely, without losing any.
#[derive(Debug, Parser)]
#[command(
    name = "fetchwell",
    version,
    long_version = long_version(),
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalFlags,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    #[command(flatten)]
    Command(Box<Command>),
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command
    Man {
        /// Write the pages of all commands into this folder instead
        #[arg(long, short, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
}

/// The flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalFlags {
    /// Settings file [default: ./fetchwell.toml, else the one in your config folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Store for queues and results: sqlite:PATH for every command; postgres://… for serve, mcp, callers,
    /// messages and outbox; redis://… for pages, dlq, schedule, feeds and articles; either also for
    /// explain, sites, ledger, top and doctor, and for commoncrawl with RabbitMQ [default:
    /// sqlite:fetchwell.db; for mcp, mcp.db in your data folder]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Store for the pace of each site; processes that use the same one share it [default: the store]
    #[arg(long, global = true, value_name = "URL")]
    politeness: Option<String>,
    /// User-Agent header to send to servers
    #[arg(long, global = true, value_name = "TEXT")]
    user_agent: Option<String>,
    /// Requests per second per site; 0 disables pacing [default: 1]
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    rate: Option<String>,
    /// Allow --rate 0 for public addresses
    #[arg(long, global = true)]
    i_own_these_sites: bool,
    /// Maximum number of concurrent requests [default: 128]
    #[arg(long, global = true, value_name = "N")]
    max_in_flight: Option<String>,
    /// Send hosts to a fixed address: '*.test=127.0.0.1:8099' (repeatable)
    #[arg(long, global = true, value_name = "PATTERN=ADDR[:PORT]")]
    resolve: Vec<String>,
    /// Allow fetching from a non-public network: '127.0.0.0/8' (repeatable)
    #[arg(long, global = true, value_name = "CIDR")]
    allow_private: Vec<String>,
    /// Machine-readable output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    log_options: LogOptions,
}

impl GlobalFlags {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let owned = self.i_own_these_sites.then(|| "true".to_owned());
        let mut flags = given([
            ("store", "--store", &self.store),
            ("politeness", "--politeness", &self.politeness),
            ("user_agent", "--user-agent", &self.user_agent),
            ("rate", "--rate", &self.rate),
            ("max_in_flight", "--max-in-flight", &self.max_in_flight),
            ("i_own_these_sites", "--i-own-these-sites", &owned),
        ]);
        let flag = |key, name, value: &String| Flag { key, name, value: value.clone() };
        flags.extend(self.resolve.iter().map(|rule| flag("resolve", "--resolve", rule)));
        flags.extend(
            self.allow_private.iter().map(|cidr| flag("allow_private", "--allow-private", cidr)),
        );
        flags
    }
}
