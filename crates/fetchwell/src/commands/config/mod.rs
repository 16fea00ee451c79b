//! `fetchwell config`: writes, shows and checks the settings.

pub(crate) mod args;

use fetchwell_settings::commands::{config_check, config_init, config_show};
use fetchwell_settings::{Settings, Sources, reference};

use crate::commands::config::args::ConfigCommand;
use crate::console::exit::Exit;
use crate::console::output::print;

pub(crate) fn run(
    command: &ConfigCommand,
    sources: &Sources<'_>,
    as_json: bool,
) -> Result<Exit, Exit> {
    match command {
        ConfigCommand::Init { path, force } => {
            config_init(path, *force).map_err(|error| Exit::Usage(error.to_string()))?;
            print(format!("wrote {}\n", path.display()))
        }
        ConfigCommand::Show => {
            let mut text = Vec::new();
            config_show(&Settings::load(sources)?, as_json, &mut text)?;
            print(text)
        }
        ConfigCommand::Check => print(config_check(sources)? + "\n"),
        ConfigCommand::Reference => print(reference()),
    }
}
