//! The commands: one module each, their names, and how each is started. `args` has argument helpers that they share.

pub(crate) mod args;
pub(crate) mod articles;
pub(crate) mod commoncrawl;
pub(crate) mod config;
pub(crate) mod crawl;
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod feeds;
pub(crate) mod fetch;
pub(crate) mod health;
pub(crate) mod mcp;
pub(crate) mod messages;
pub(crate) mod pages;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod sites;
pub(crate) mod top;

use clap::Subcommand;
use fetchwell_settings::{EnvAliasGroup, Flag, Settings, Sources};
use tracing::warn;

use crate::console::exit::Exit;
use crate::console::logs::{self, LogOptions};
use articles::args::ArticlesCommand;
use commoncrawl::args::CommonCrawlCommand;
use config::args::ConfigCommand;
use crawl::args::CrawlArgs;
use demo::args::DemoArgs;
use dlq::args::DlqCommand;
use explain::args::ExplainArgs;
use extract::args::ExtractArgs;
use feeds::args::FeedsArgs;
use fetch::args::FetchArgs;
use messages::args::{LedgerArgs, MessagesCommand, OutboxCommand};
use pages::args::PagesArgs;
use schedule::args::ScheduleArgs;
use serve::args::{CallersCommand, MigrateArgs, ServeArgs};
use sites::args::SitesCommand;
use top::args::TopArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch URLs and print the results
    Fetch(FetchArgs),
    /// Follow the links of a site politely, and print the results; can be resumed
    Crawl(CrawlArgs),
    /// Extract the articles of HTML, WARC and ARC files that you already have; needs no network
    Extract(ExtractArgs),
    /// Show whether a URL would be fetched, and why; fetches no page
    Explain(ExplainArgs),
    /// Run an HTTP service that accepts URLs and returns results
    Serve(ServeArgs),
    /// Serve tools for language models (MCP) on standard input and output: fetch, map, explain, find_in_archive
    Mcp,
    /// Manage the callers of "serve" and their API tokens
    Callers {
        #[command(subcommand)]
        command: CallersCommand,
    },
    /// Move the data of "serve" from SQLite to a PostgreSQL database, without losing a message
    Migrate(MigrateArgs),
    /// List, show, retry and cancel the messages of "serve", for all callers
    Messages {
        #[command(subcommand)]
        command: MessagesCommand,
    },
    /// Print the results of "serve", for all callers
    Outbox {
        #[command(subcommand)]
        command: OutboxCommand,
    },
    /// Count the jobs of every queue by state, and check that none is missing
    Ledger(LedgerArgs),
    /// Fetch the URLs of a list into a page cache, and publish an event for each page
    Pages(PagesArgs),
    /// Inspect, retry and drop the dead letters of "pages"
    Dlq {
        #[command(subcommand)]
        command: DlqCommand,
    },
    /// Add URLs and the pages of sitemaps to the list of "pages" at intervals
    Schedule(ScheduleArgs),
    /// Read feeds, and store the links of their entries by category
    Feeds(FeedsArgs),
    /// Extract articles from the links of feeds
    Articles {
        #[command(subcommand)]
        command: ArticlesCommand,
    },
    /// Find and read pages in the Common Crawl archive; extract the text of a whole crawl
    #[command(name = "commoncrawl")]
    CommonCrawl {
        /// Which part of the work
        #[command(subcommand)]
        command: CommonCrawlCommand,
    },
    /// Show the state of sites; pause and resume them, and set their rates
    Sites {
        #[command(subcommand)]
        command: SitesCommand,
    },
    /// Check settings, stores, servers, clocks and limits, and say how to fix each problem
    Doctor,
    /// Check whether a service is ready; exits with 0 if it is
    Health {
        /// URL to check; without a path: /readyz, or /livez if there is no /readyz
        #[arg(default_value = "http://127.0.0.1:8080/readyz", value_name = "URL")]
        url: String,
    },
    /// Show a live view of a store: queues, sites and recent failures
    Top(TopArgs),
    /// Run a demo on a simulated web; needs no network
    Demo(DemoArgs),
    /// Write, show or check the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
}

impl Command {
    /// The flags of this command that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        match self {
            Command::Fetch(args) => args.settings(),
            Command::Crawl(args) => args.settings(),
            Command::Serve(args) => args.settings(),
            Command::Pages(args) => args.settings(),
            Command::Articles { command } => command.settings(),
            Command::Feeds(args) => args.settings(),
            Command::CommonCrawl { command } => command.settings(),
            _ => Vec::new(),
        }
    }

    /// The doors whose own setting names apply to a command: those of its door, or all of them for commands that
    /// inspect several doors, so that these use the same stores as the doors.
    pub(crate) fn own_names_of(&self) -> &'static [EnvAliasGroup] {
        match self {
            Command::Pages(_) | Command::Dlq { .. } | Command::Schedule(_) => {
                &[EnvAliasGroup::Pages]
            }
            Command::CommonCrawl { .. } => &[EnvAliasGroup::CommonCrawl],
            Command::Config { .. }
            | Command::Ledger(_)
            | Command::Sites { .. }
            | Command::Top(_) => EnvAliasGroup::ALL,
            _ => &[],
        }
    }

    pub(crate) async fn run(
        self,
        sources: &Sources<'_>,
        json: bool,
        log_options: LogOptions,
    ) -> Result<Exit, Exit> {
        let start = || -> Result<Settings, Exit> {
            let settings = Settings::load(sources)?;
            logs::start(log_options, settings.values.log_format);
            Ok(settings)
        };
        let start_and_warn = || start().inspect(warn_of_settings);
        match self {
            Command::Fetch(args) => fetch::run(&start()?, args, json, log_options.quiet).await,
            Command::Crawl(args) => crawl::run(&start()?, args, json, log_options.quiet).await,
            Command::Extract(args) => extract::run(&start()?, &args, json, log_options.quiet),
            Command::Explain(args) => explain::run(&start()?, &args, json).await,
            Command::Serve(_) => serve::run(&start()?).await,
            Command::Mcp => {
                let settings = start()?;
                let Some(store) = mcp::own_store(&settings, sources.environment)? else {
                    return mcp::run(&settings).await;
                };
                let flags = [sources.flags, &[store][..]].concat();
                let settings = Settings::load(&Sources { flags: &flags, ..*sources })?;
                mcp::run(&settings).await
            }
            Command::Callers { command } => serve::callers(&start()?, command, json).await,
            Command::Migrate(args) => {
                let settings = start()?;
                let mut flags = sources.flags.to_vec();
                flags.retain(|flag| flag.key != "store");
                flags.push(Flag { key: "store", name: "--to", value: args.to });
                let target = Settings::load(&Sources { flags: &flags, ..*sources })?;
                serve::migrate(&settings, &target, json).await
            }
            Command::Messages { command } => messages::run(&start()?, command, json).await,
            Command::Outbox { command: OutboxCommand::Tail(args) } => {
                messages::tail(&start()?, &args, json).await
            }
            Command::Ledger(args) => messages::ledger(&start()?, &args, json).await,
            Command::Pages(args) => pages::run(&start_and_warn()?, args.command, json).await,
            Command::Dlq { command } => dlq::run(&start_and_warn()?, command, json).await,
            Command::Schedule(args) => schedule::run(&start_and_warn()?, args, json).await,
            Command::Feeds(args) => feeds::run(&start()?, args.command, json).await,
            Command::Articles { command } => articles::run(&start()?, command, json).await,
            Command::CommonCrawl { command } => {
                commoncrawl::run(&start()?, command, json, log_options.quiet).await
            }
            Command::Sites { command } => sites::run(&start()?, command, json).await,
            Command::Top(args) => top::run(&start()?, &args, json).await,
            // These need no settings, or load them in another way.
            Command::Doctor => doctor::run(sources, json).await,
            Command::Health { url } => health::run(&url).await,
            Command::Demo(args) => demo::run(&args, sources, json, log_options).await,
            Command::Config { command } => config::run(&command, sources, json),
        }
    }
}

/// Warns about settings that have no effect.
fn warn_of_settings(settings: &Settings) {
    for warning in &settings.warnings {
        warn!("{}: {}", warning.origin, warning.wrong);
    }
}
