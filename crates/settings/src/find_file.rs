//! Finds the settings file: the one given by `--config`, else the first of the usual locations.

use std::path::{Path, PathBuf};

use super::sources::Sources;

/// A possible location of the settings file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The path to open.
    pub(super) path: PathBuf,
    /// The path as the user would name it.
    pub(super) shown: PathBuf,
    /// Whether the user named it, so that it must exist.
    pub(super) required: bool,
}

/// The locations to try, in order.
pub(super) fn places(sources: &Sources<'_>) -> Vec<Candidate> {
    const NAME: &str = "fetchwell.toml";
    let here = sources.working_directory;
    if let Some(named) = sources.config_file {
        return vec![Candidate { path: here.join(named), shown: named.to_owned(), required: true }];
    }
    let local =
        Candidate { path: here.join(NAME), shown: Path::new(".").join(NAME), required: false };
    let user = user_config_directory(sources).map(|directory| {
        let path = directory.join("fetchwell").join(NAME);
        Candidate { shown: path.clone(), path, required: false }
    });
    [local].into_iter().chain(user).collect()
}

/// `$XDG_CONFIG_HOME`, else `~/.config`. Relative paths are ignored, as the XDG specification requires.
fn user_config_directory(sources: &Sources<'_>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        sources.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}
