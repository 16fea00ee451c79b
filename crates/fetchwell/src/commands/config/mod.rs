//! `fetchwell config`: writes, shows and checks the settings.

pub(crate) mod args;

use std::path::Path;

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
        ConfigCommand::Init { path, force } => init(path, *force),
        ConfigCommand::Show => {
            let settings =
                Settings::load(sources).map_err(|faults| Exit::Usage(faults.to_string()))?;
            let mut text = Vec::new();
            config_show(&settings, as_json, &mut text)?;
            print(&text)
        }
        ConfigCommand::Check => {
            let verdict =
                config_check(sources).map_err(|faults| Exit::Usage(faults.to_string()))?;
            print(format!("{verdict}\n").as_bytes())
        }
        ConfigCommand::Reference => print(reference().as_bytes()),
    }
}

fn init(path: &Path, force: bool) -> Result<Exit, Exit> {
    config_init(path, force).map_err(|error| Exit::Usage(error.to_string()))?;
    print(format!("wrote {}\n", path.display()).as_bytes())
}
