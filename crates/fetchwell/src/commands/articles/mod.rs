//! `fetchwell articles`: turns links of categories into canonical articles, or failures with a code.
//!
//! `run` is one run; `watch` reads feeds and runs, in a loop. `commands` and `print` show what is stored.

pub(crate) mod args;
mod commands;
mod print;
mod run;
mod watch;

use fetchwell_settings::Settings;

use crate::commands::articles::args::ArticlesCommand;
use crate::console::output::Running;

pub(crate) fn run(settings: &Settings, command: ArticlesCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        match command {
            ArticlesCommand::Run => run::once(settings).await,
            ArticlesCommand::Watch { .. } => watch::watch(settings).await,
            ArticlesCommand::List(args) => commands::list(settings, args, as_json).await,
            ArticlesCommand::Show { article, markdown } => {
                commands::show(settings, &article, markdown, as_json).await
            }
            ArticlesCommand::Stats => commands::stats(settings, as_json).await,
        }
    })
}
