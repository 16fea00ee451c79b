//! The command line: what can be typed, and what each word of it sets.

mod articles;
mod commoncrawl;
mod config;
mod dlq;
mod exit;
mod feeds;
mod manual;
mod oversight;
mod pages;
mod run;
mod schedule;
mod sites;

use std::path::PathBuf;
use std::pin::Pin;

use clap::builder::{RangedI64ValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use fetchwell_policy::units::with_unit;
use fetchwell_settings::Flag;
use fetchwell_settings::features::long_version;

use crate::telemetry::LogOptions;

pub(crate) use articles::{ArticleStatus, ArticlesCommand, ArticlesListArgs};
pub(crate) use commoncrawl::{
    BatchArgs, CommonCrawlCommand, DeadCommand, FindArgs, GetArgs, RetryErrorsArgs, WorkArgs,
};
pub(crate) use dlq::{DlqCommand, ListArgs, Which};
pub use exit::Exit;
pub(crate) use feeds::{FeedsArgs, FeedsCommand};
pub(crate) use oversight::{
    LedgerArgs, MessageFilter, MessagesCommand, MessagesListArgs, OutboxCommand, TailArgs,
    WhichMessages,
};
pub(crate) use pages::{PagesArgs, PagesCommand};
pub use run::main;
pub(crate) use run::print;
pub(crate) use schedule::ScheduleArgs;
pub(crate) use sites::{SitesCommand, SitesListArgs};

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

/// The future of a running command.
///
/// Each command boxes its future in its own module. Then its code is generated there, beside that
/// of the others; otherwise all of it would be generated where commands are dispatched.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Exit, Exit>> + 'a>>;

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

/// `fetchwell fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// URLs; one without a scheme means https. @FILE reads a list of them, one per line (# begins a
    /// comment); - reads standard input
    #[arg(required = true, value_name = "URL|@FILE|-")]
    pub(crate) urls: Vec<String>,
    /// What to print [default: what the name of --output says (.md, .txt, .html, .jsonl, .warc.gz),
    /// else markdown for one URL and json for several]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on where an earlier run with the same --output stopped
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Wait this long for a site that is down or asks for a longer wait, such as 30s; a bare number is seconds
    /// [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) give_up_after: Option<String>,
}

impl FetchArgs {
    /// What was typed, as settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let after = self.give_up_after.as_ref().map(|after| with_unit(after, "s"));
        flag("fetch.give_up_after", "--give-up-after", after.as_ref()).into_iter().collect()
    }
}

/// What `fetch` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The page's text as Markdown.
    Markdown,
    /// The page's text.
    Text,
    /// The page's source, as UTF-8.
    Html,
    /// One JSON object a line.
    Json,
    /// An archive of what was asked and answered; needs --output FILE.warc.gz.
    Warc,
}

/// `fetchwell explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The URL; without a scheme it means https
    pub(crate) url: String,
    /// Judge by this robots.txt, offline; exits with 0 when allowed and 3 when not
    #[arg(long, value_name = "FILE")]
    pub(crate) robots: Option<PathBuf>,
}

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

/// `fetchwell top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print one frame, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two looks at the store
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) interval: u16,
}

/// `fetchwell demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Simulated sites, some of them ill-behaved
    #[arg(long, value_name = "N", default_value = "300", value_parser = whole(10, 5_000))]
    pub(crate) sites: usize,
    /// Pages to fetch, over all sites
    #[arg(long, value_name = "N", default_value = "4000", value_parser = whole(1, 100_000))]
    pub(crate) pages: usize,
    /// Makes the same demo again
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// A flag as the setting that it sets, where it was given.
fn flag(key: &'static str, name: &'static str, value: Option<&String>) -> Option<Flag<'static>> {
    value.map(|value| Flag { key, name, value: value.clone() })
}

/// A whole number within bounds.
fn whole(least: i64, most: i64) -> impl TypedValueParser<Value = usize> {
    RangedI64ValueParser::<usize>::new().range(least..=most)
}

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
