//! Finds and reads the settings file.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use toml_edit::Document;

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::find_file::{Candidate, places};
use super::layer::{Layer, TextFileError, read_text_file};
use super::sources::Sources;
use super::toml_walk::{Walk, line_starts};

/// The values of a settings file.
#[derive(Default)]
pub(super) struct FileLayers {
    pub(super) settings: Layer,
    pub(super) sites: BTreeMap<String, Layer>,
    pub(super) retailers: BTreeMap<String, Layer>,
    pub(super) categories: BTreeMap<String, Layer>,
}

/// Reads the first file that exists; without one, returns no values.
pub(super) fn read(sources: &Sources<'_>, faults: &mut Vec<SettingError>) -> FileLayers {
    const MOST_BYTES: u64 = 8 * 1024 * 1024;
    for place in places(sources) {
        match read_text_file(&place.path, MOST_BYTES) {
            Ok(text) => return parse(&text, &place, sources, faults),
            Err(TextFileError::Unreadable(error))
                if error.kind() == ErrorKind::NotFound && !place.required => {}
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
