//! The settings as a whole: what beats what, where a value came from, and every fault at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::commands::{config_check, config_init, config_show};
use super::key::group_of;
use super::*;

/// A directory to start in, with an environment and flags.
struct World {
    directory: TempDir,
    environment: BTreeMap<String, String>,
    flags: Vec<Flag<'static>>,
    own_names_of: &'static [EnvAliasGroup],
}

impl World {
    fn new() -> World {
        let directory = TempDir::new().expect("a temporary directory");
        World { directory, environment: BTreeMap::new(), flags: Vec::new(), own_names_of: &[] }
    }

    fn file(self, name: &str, text: &str) -> World {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
        self
    }

    fn toml(self, text: &str) -> World {
        self.file("fetchwell.toml", text)
    }

    fn variable(mut self, name: &str, value: &str) -> World {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag(mut self, key: &'static str, name: &'static str, value: &str) -> World {
        self.flags.push(Flag { key, name, value: value.to_owned() });
        self
    }

    fn own_names_of(mut self, doors: &'static [EnvAliasGroup]) -> World {
        self.own_names_of = doors;
        self
    }

    fn load_with(&self, config_file: Option<&Path>) -> Result<Settings, SettingsFaults> {
        Settings::load(&self.sources(config_file))
    }

    fn sources<'a>(&'a self, config_file: Option<&'a Path>) -> Sources<'a> {
        Sources {
            flags: &self.flags,
            config_file,
            environment: &self.environment,
            working_directory: self.directory.path(),
            own_names_of: self.own_names_of,
        }
    }

    fn settings(&self) -> Settings {
        self.load_with(None).expect("good settings")
    }

    /// Each fault as its lines.
    fn faults(&self) -> Vec<String> {
        let faults = self.load_with(None).expect_err("faults");
        faults.faults().iter().map(SettingError::to_string).collect()
    }
}

fn origin(settings: &Settings, key: &str) -> String {
    let found = settings.effective.iter().find(|setting| setting.key == key);
    found.expect(key).origin.to_string()
}

mod faults;
mod precedence;
mod written;
