//! `fetchwell pages`: turns the URLs of a list into cached pages and events, or dead letters.
//!
//! `serve` runs the door, `exposition` and `dashboard_server` serve its metrics and its dashboard, and `commands` and
//! `status` are the subcommands.

pub(crate) mod args;
mod commands;
mod dashboard_server;
mod exposition;
mod serve;
mod status;

use fetchwell_settings::Settings;

use crate::commands::pages::args::PagesCommand;
use crate::console::output::Running;

pub(crate) fn run(settings: &Settings, command: Option<PagesCommand>, json: bool) -> Running<'_> {
    Box::pin(async move {
        match command {
            None => serve::serve(settings).await,
            Some(PagesCommand::Add { urls }) => commands::add(settings, &urls, json).await,
            Some(PagesCommand::Events { after, limit, follow }) => {
                commands::events(settings, after, limit, follow).await
            }
            Some(PagesCommand::Show { url }) => commands::show(settings, &url).await,
            Some(PagesCommand::Status) => status::status(settings, json).await,
            Some(PagesCommand::Unpark) => commands::unpark(settings, json).await,
        }
    })
}
