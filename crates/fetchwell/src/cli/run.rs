//! Runs the program: reads the command line, runs the command, and prints its final error.

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use fetchwell_engine::descriptors;
use fetchwell_settings::{Sources, process_environment};

use super::{Cli, CliCommand, manual};
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
    let global = cli.global;
    let command = match cli.command {
        CliCommand::Command(command) => command,
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fetchwell", &mut script);
            return print(script);
        }
        CliCommand::Man { output: None } => return print(manual::main_page()?),
        CliCommand::Man { output: Some(folder) } => {
            let shown = folder.display();
            let written = manual::write_pages(&folder).map_err(|error| {
                Exit::Usage(format!("could not write the manual pages to {shown}: {error}"))
            })?;
            return print(format!("wrote {written} pages to {shown}\n"));
        }
    };
    let environment = process_environment();
    let working_directory = std::env::current_dir()?;
    let mut flags = global.settings();
    flags.extend(command.settings());
    let sources = Sources {
        flags: &flags,
        config_file: global.config.as_deref(),
        environment: &environment,
        working_directory: &working_directory,
        own_names_of: command.own_names_of(),
    };
    let mut log_options = global.log_options;
    log_options.no_color |= environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
    command.run(&sources, global.json, log_options).await
}
