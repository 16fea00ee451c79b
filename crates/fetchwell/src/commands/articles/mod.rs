//! `fetchwell articles`: links of categories become canonical articles, or failures with a code.
//!
//! `run` is one run, `watch` feeds and runs in turn; `commands` and `print` are for people.

pub(crate) mod args;
mod commands;
mod print;
mod run;
mod watch;

use fetchwell_settings::Settings;

use crate::commands::articles::args::ArticlesCommand;
use crate::console::exit::Exit;
use crate::console::output::Running;

/// Does what was typed.
pub(crate) fn run(settings: &Settings, command: ArticlesCommand, as_json: bool) -> Running<'_> {
    Box::pin(run_inner(settings, command, as_json))
}

async fn run_inner(
    settings: &Settings,
    command: ArticlesCommand,
    as_json: bool,
) -> Result<Exit, Exit> {
    match command {
        ArticlesCommand::Run => run::once(settings).await,
        ArticlesCommand::Watch { .. } => watch::watch(settings).await,
        ArticlesCommand::List(args) => commands::list(settings, args, as_json).await,
        ArticlesCommand::Show { article, markdown } => {
            commands::show(settings, &article, markdown, as_json).await
        }
        ArticlesCommand::Stats => commands::stats(settings, as_json).await,
    }
}
