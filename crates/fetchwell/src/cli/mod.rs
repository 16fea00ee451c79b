//! The command line: what can be typed, and what each word of it sets.

mod manual;
mod run;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use fetchwell_settings::Flag;
use fetchwell_settings::features::long_version;

use crate::commands::articles::args::ArticlesCommand;
use crate::commands::commoncrawl::args::CommonCrawlCommand;
use crate::commands::config::args::ConfigCommand;
use crate::commands::demo::args::DemoArgs;
use crate::commands::dlq::args::DlqCommand;
use crate::commands::explain::args::ExplainArgs;
use crate::commands::feeds::args::FeedsArgs;
use crate::commands::fetch::args::FetchArgs;
use crate::commands::messages::args::{LedgerArgs, MessagesCommand, OutboxCommand};
use crate::commands::pages::args::PagesArgs;
use crate::commands::schedule::args::ScheduleArgs;
use crate::commands::serve::args::{CallersCommand, MigrateArgs, ServeArgs};
use crate::commands::sites::args::SitesCommand;
use crate::commands::top::args::TopArgs;
use crate::console::logs::LogOptions;

pub use run::main;

/// Give it URLs, from anywhere; it brings the pages back, politely, and loses none.
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
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalFlags {
    /// Settings file (else ./fetchwell.toml, else the one in your config folder)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where work is kept: sqlite:PATH for every command; postgres://… for serve, callers, messages
    /// and outbox; redis://… for pages, dlq, schedule, feeds and articles; either also for explain,
    /// sites, ledger, top and doctor, and for commoncrawl with RabbitMQ [default: sqlite:fetchwell.db]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Where the pace of each site is kept; all processes on it share one pace [default: the store]
    #[arg(long, global = true, value_name = "URL")]
    politeness: Option<String>,
    /// How we introduce ourselves to servers
    #[arg(long, global = true, value_name = "TEXT")]
    user_agent: Option<String>,
    /// Requests per second and site [default: 1]; 0: no pacing
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    rate: Option<String>,
    /// Allow --rate 0 for public addresses
    #[arg(long, global = true)]
    i_own_these_sites: bool,
    /// Requests under way at once [default: 128]
    #[arg(long, global = true, value_name = "N")]
    max_in_flight: Option<String>,
    /// Send hosts to a fixed address: '*.test=127.0.0.1:8099' (repeatable)
    #[arg(long, global = true, value_name = "PATTERN=ADDR[:PORT]")]
    resolve: Vec<String>,
    /// Allow addresses that are else refused: '127.0.0.0/8' (repeatable)
    #[arg(long, global = true, value_name = "CIDR")]
    allow_private: Vec<String>,
    /// Machine-readable output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more (-v: debug, -vv: trace)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say less (-q: errors only, -qq: nothing)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) quiet: u8,
    /// No colours (also by NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

impl GlobalFlags {
    /// The flags that set settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let flag = |key, name, value: &str| Flag { key, name, value: value.to_owned() };
        let single = [
            ("store", "--store", &self.store),
            ("politeness", "--politeness", &self.politeness),
            ("user_agent", "--user-agent", &self.user_agent),
            ("rate", "--rate", &self.rate),
            ("max_in_flight", "--max-in-flight", &self.max_in_flight),
        ];
        let mut flags: Vec<_> = single
            .into_iter()
            .filter_map(|(key, name, value)| Some(flag(key, name, value.as_ref()?)))
            .collect();
        if self.i_own_these_sites {
            flags.push(flag("i_own_these_sites", "--i-own-these-sites", "true"));
        }
        flags.extend(self.resolve.iter().map(|rule| flag("resolve", "--resolve", rule)));
        flags.extend(
            self.allow_private.iter().map(|cidr| flag("allow_private", "--allow-private", cidr)),
        );
        flags
    }

    /// The flags that are about logs.
    fn log_options(&self) -> LogOptions {
        let GlobalFlags { quiet, verbose, no_color, .. } = *self;
        LogOptions { quiet, verbose, no_color }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch URLs and print what comes back
    Fetch(FetchArgs),
    /// Say what would happen to a URL, and why; fetches no page
    Explain(ExplainArgs),
    /// Take URLs by an HTTP API, and give results by it
    Serve(ServeArgs),
    /// Add, list and revoke those who may use the API of "serve"
    Callers {
        #[command(subcommand)]
        command: CallersCommand,
    },
    /// Move what "serve" keeps in SQLite to a PostgreSQL database, without losing a message
    Migrate(MigrateArgs),
    /// List, show, retry and cancel the messages of "serve", whoever sent them
    Messages {
        #[command(subcommand)]
        command: MessagesCommand,
    },
    /// Read the results of "serve", whoever they are for
    Outbox {
        #[command(subcommand)]
        command: OutboxCommand,
    },
    /// Say how many jobs of every queue stand where, and whether the sum is right
    Ledger(LedgerArgs),
    /// Fetch the URLs of a list into a page cache, and tell of each page by an event
    Pages(PagesArgs),
    /// Look after the URLs that "pages" has given up
    Dlq {
        #[command(subcommand)]
        command: DlqCommand,
    },
    /// Put URLs and the pages of sitemaps on the list of "pages", each at its interval
    Schedule(ScheduleArgs),
    /// Read feeds, and put the pages that they list into categories
    Feeds(FeedsArgs),
    /// Make clean articles of the links that feeds gave
    Articles {
        #[command(subcommand)]
        command: ArticlesCommand,
    },
    /// Find and read pages in a web archive; turn a crawl into batches and texts
    #[command(name = "commoncrawl")]
    CommonCrawl {
        /// Which part of the work
        #[command(subcommand)]
        command: CommonCrawlCommand,
    },
    /// See how sites stand, and steer them: pause, resume, set a pace
    Sites {
        #[command(subcommand)]
        command: SitesCommand,
    },
    /// Check settings, stores, servers, clocks and limits, and say how to fix what is wrong
    Doctor,
    /// Ask a service whether it is ready; exits with 0 when it is
    Health {
        /// Where to ask; without a path: its /readyz, or /livez where there is no such page
        #[arg(default_value = "http://127.0.0.1:8080/readyz", value_name = "URL")]
        url: String,
    },
    /// Watch a store live: its queues, its sites, what failed last
    Top(TopArgs),
    /// Watch it all at work on a simulated web; needs no network
    Demo(DemoArgs),
    /// Write, show or check the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
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

impl Command {
    /// What was typed for this command, as settings.
    fn settings(&self) -> Vec<Flag<'static>> {
        match self {
            Command::Fetch(args) => args.settings(),
            Command::Serve(args) => args.settings(),
            Command::Pages(args) => args.settings(),
            Command::Articles { command } => command.settings(),
            Command::Feeds(args) => args.settings(),
            Command::CommonCrawl { command } => command.settings(),
            _ => Vec::new(),
        }
    }
}
