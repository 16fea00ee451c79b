//! Dispatches commands.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use fetchwell_engine::descriptors;
use fetchwell_settings::{Door, Flag, Settings, Sources, process_environment};
use tracing::warn;

use super::{Cli, Command, GlobalFlags, manual};
use crate::commands::messages::args::OutboxCommand;
use crate::commands::{
    articles, commoncrawl, config, demo, dlq, doctor, explain, feeds, fetch, health, messages,
    pages, schedule, serve, sites, top,
};
use crate::console::exit::Exit;
use crate::console::logs;
use crate::console::output::print;
use crate::console::terminal::printable;

/// The longest wait at exit for the SQLite files to close. The last process to close a file merges its WAL, which takes
/// as long as writing some 16 MiB.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

pub fn main() -> ExitCode {
    let code = run_to_the_end();
    // Everything that used a store was dropped with the runtime.
    fetchwell_sqlite::db::wait_until_closed(CLOSE_WITHIN);
    code
}

/// This is in the library and not in the binary because the code of a future is generated in the crate that polls it:
/// otherwise the binary would take as long to compile as the library.
#[tokio::main]
async fn run_to_the_end() -> ExitCode {
    descriptors::raise_limit();
    let exit = run(Cli::parse()).await.unwrap_or_else(|exit| exit);
    // The message may quote a URL or a file name.
    let last_words = exit.to_string().split('\n').map(printable).collect::<Vec<_>>().join("\n");
    if !last_words.is_empty() {
        logs::say(&format!("fetchwell: {last_words}"));
    }
    exit.code()
}

async fn run(cli: Cli) -> Result<Exit, Exit> {
    let log_options = cli.global.log_options();
    let environment = process_environment();
    let working_directory = std::env::current_dir()?;
    let mut flags = cli.global.settings();
    flags.extend(cli.command.settings());
    let sources = Sources {
        flags: &flags,
        config_file: cli.global.config.as_deref(),
        environment: &environment,
        working_directory: &working_directory,
        own_names_of: own_names_of(&cli.command),
    };
    let load = || Settings::load(&sources).map_err(|faults| Exit::Usage(faults.to_string()));
    match cli.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fetchwell", &mut script);
            print(&script)
        }
        Command::Man { output: None } => print(&manual::main_page()?),
        Command::Man { output: Some(folder) } => write_manual(&folder),
        Command::Config { command } => config::run(&command, &sources, cli.global.json),
        Command::Fetch(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            fetch::run(&settings, args, cli.global.json, cli.global.quiet).await
        }
        Command::Serve(_) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            serve::run(&settings).await
        }
        Command::Callers { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            serve::callers(&settings, command, cli.global.json).await
        }
        Command::Migrate(args) => {
            let settings = load()?;
            let mut flags = flags.clone();
            flags.retain(|flag| flag.key != "store");
            flags.push(Flag { key: "store", name: "--to", value: args.to });
            let target = Settings::load(&Sources { flags: &flags, ..sources })
                .map_err(|faults| Exit::Usage(faults.to_string()))?;
            logs::start(log_options, settings.values.log_format);
            serve::migrate(&settings, &target, cli.global.json).await
        }
        Command::Messages { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            messages::run(&settings, command, cli.global.json).await
        }
        Command::Outbox { command: OutboxCommand::Tail(args) } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            messages::tail(&settings, &args, cli.global.json).await
        }
        Command::Ledger(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            messages::ledger(&settings, &args, cli.global.json).await
        }
        Command::Pages(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            warn_of_settings(&settings);
            pages::run(&settings, args.command, cli.global.json).await
        }
        Command::Dlq { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            warn_of_settings(&settings);
            dlq::run(&settings, command, cli.global.json).await
        }
        Command::Schedule(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            warn_of_settings(&settings);
            schedule::run(&settings, args, cli.global.json).await
        }
        Command::Articles { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            articles::run(&settings, command, cli.global.json).await
        }
        Command::Feeds(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            feeds::run(&settings, args.command, cli.global.json).await
        }
        Command::CommonCrawl { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            let GlobalFlags { json, quiet, .. } = cli.global;
            commoncrawl::run(&settings, command, json, quiet).await
        }
        Command::Sites { command } => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            sites::run(&settings, command, cli.global.json).await
        }
        Command::Doctor => doctor::run(&sources, cli.global.json).await,
        Command::Health { url } => health::run(&url).await,
        Command::Top(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            top::run(&settings, &args, cli.global.json).await
        }
        Command::Demo(args) => demo::run(&args, &sources, cli.global.json, log_options).await,
        Command::Explain(args) => {
            let settings = load()?;
            logs::start(log_options, settings.values.log_format);
            explain::run(&settings, &args, cli.global.json).await
        }
    }
}

/// Warns about settings that have no effect.
fn warn_of_settings(settings: &Settings) {
    for warning in settings.warnings() {
        warn!("{}: {}", warning.origin, warning.wrong);
    }
}

/// The doors whose own setting names apply to a command: those of its door, or all of them for commands that inspect
/// several doors, so that these use the same stores as the doors.
fn own_names_of(command: &Command) -> &'static [Door] {
    match command {
        Command::Pages(_) | Command::Dlq { .. } | Command::Schedule(_) => &[Door::Pages],
        Command::CommonCrawl { .. } => &[Door::CommonCrawl],
        Command::Config { .. } | Command::Ledger(_) | Command::Sites { .. } | Command::Top(_) => {
            Door::ALL
        }
        _ => &[],
    }
}

fn write_manual(folder: &Path) -> Result<Exit, Exit> {
    let written = manual::write_pages(folder).map_err(|error| {
        Exit::Usage(format!("could not write the manual pages to {}: {error}", folder.display()))
    })?;
    print(format!("wrote {written} pages to {}\n", folder.display()).as_bytes())
}
