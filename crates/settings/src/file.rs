//! Finds and reads the settings file: the one given by `--config`, else the first of the usual locations.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml_edit::Document;

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::layer::read_text_file;
use super::sources::Sources;
use super::toml_walk::{FileLayers, Walk, line_starts};

/// Reads the first file that exists; without one, returns no values.
pub(super) fn read(sources: &Sources<'_>, faults: &mut Vec<SettingError>) -> FileLayers {
    const MOST_BYTES: u64 = 8 * 1024 * 1024;
    for place in places(sources) {
        match read_text_file(&place.path, MOST_BYTES) {
            Ok(text) => return parse(&text, &place, sources, faults),
            Err(error) if error.kind() == ErrorKind::NotFound && !place.required => {}
            Err(error) => {
                faults.push(SettingError {
                    origin: ValueOrigin::File { path: place.shown, line: None },
                    key: String::new(),
                    wrong: Wrong::new(
                        format!("cannot be read: {error}"),
                        "name a text file that this process may read; \
                         `fetchwell config init` writes one to start from",
                    ),
                });
                break;
            }
        }
    }
    FileLayers::default()
}

fn parse(
    text: &str,
    place: &Candidate,
    sources: &Sources<'_>,
    faults: &mut Vec<SettingError>,
) -> FileLayers {
    let mut walk = Walk {
        path: &place.shown,
        line_starts: line_starts(text),
        working_directory: sources.working_directory,
        faults,
    };
    match Document::parse(text) {
        Ok(document) => walk.root(document.as_table()),
        Err(error) => {
            let origin = walk.origin(error.span().map(|span| span.start));
            let mend = "fix the line; put strings in quotes, as in store = \"sqlite:my.db\"";
            let wrong = Wrong::new(format!("is not TOML: {}", error.message().trim()), mend);
            faults.push(SettingError { origin, key: String::new(), wrong });
            FileLayers::default()
        }
    }
}

/// A possible location of the settings file.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    /// The path to open.
    path: PathBuf,
    /// The path as the user would name it.
    shown: PathBuf,
    /// Whether the user named it, so that it must exist.
    required: bool,
}

/// The locations to try, in order.
fn places(sources: &Sources<'_>) -> Vec<Candidate> {
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
