//! The commands `fetchwell config init`, `show` and `check`.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use thiserror::Error;

use super::{Settings, SettingsFaults, Sources, ValueOrigin, default_file, limits};

/// Why the default file was not written.
#[derive(Debug, Error)]
pub enum InitError {
    #[error("could not write {}: it already exists; use --force to overwrite it", .0.display())]
    Exists(PathBuf),
    #[error("could not write {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Writes the commented default file; overwrites an existing file only with `force`.
pub fn config_init(path: &Path, force: bool) -> Result<(), InitError> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::AlreadyExists => InitError::Exists(path.to_owned()),
        _ => InitError::Write { path: path.to_owned(), source },
    };
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(default_file().as_bytes()).map_err(failed)
}

/// Prints the effective value of each setting and its origin. The text format is TOML.
pub fn config_show(settings: &Settings, json: bool, out: &mut impl Write) -> io::Result<()> {
    if json {
        let all: Json = settings
            .effective
            .iter()
            .map(|setting| {
                let origin = setting.origin.to_string();
                (setting.key.clone(), json!({ "value": setting.value, "origin": origin }))
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        return writeln!(out, "{all:#}");
    }
    for setting in &settings.effective {
        let line = format!("{} = {}", setting.key, setting.value);
        writeln!(out, "{line:<55} # {}", setting.origin)?;
    }
    Ok(())
}

/// Checks all sources for errors. If there are none, reports the settings that have no effect, what was checked, and
/// which limits apply.
pub fn config_check(sources: &Sources<'_>) -> Result<String, SettingsFaults> {
    let settings = Settings::load(sources)?;
    let all = &settings.effective;
    let given = all.iter().filter(|setting| setting.origin != ValueOrigin::Default).count();
    let warnings: String =
        settings.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    let defaults = all.len() - given;
    let limits = limits::in_words(&settings);
    Ok(format!(
        "{warnings}No errors found; settings given: {given}, defaults: {defaults}.\n{limits}"
    ))
}
