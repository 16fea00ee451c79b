//! Which settings file is read: the one that was named, else the first of the usual places.

use std::path::{Path, PathBuf};

use super::sources::Sources;

/// A place where a settings file may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The path to open.
    pub(super) path: PathBuf,
    /// The path as its user would name it.
    pub(super) shown: PathBuf,
    /// Whether it was asked for, so that its absence is a fault.
    pub(super) required: bool,
}

/// The places to look at, in order.
pub(super) fn places(sources: &Sources<'_>) -> Vec<Place> {
    const NAME: &str = "fetchwell.toml";
    let here = sources.working_directory;
    if let Some(named) = sources.config_file {
        return vec![Place { path: here.join(named), shown: named.to_owned(), required: true }];
    }
    let local = Place { path: here.join(NAME), shown: Path::new(".").join(NAME), required: false };
    let user = user_config_directory(sources).map(|directory| {
        let path = directory.join("fetchwell").join(NAME);
        Place { shown: path.clone(), path, required: false }
    });
    [local].into_iter().chain(user).collect()
}

/// `$XDG_CONFIG_HOME`, else `~/.config`. The XDG rules have relative paths ignored.
fn user_config_directory(sources: &Sources<'_>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        sources.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}
