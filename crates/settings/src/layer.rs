//! The values of one source, by path, before they are checked.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::fault::{ValueOrigin, Wrong};
use super::key::{Key, Meaning};

/// A value as a source gave it.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Raw {
    One(String),
    Many(Vec<String>),
}

impl Raw {
    pub(super) fn one(&self) -> Result<&str, Wrong> {
        match self {
            Raw::One(text) => Ok(text),
            Raw::Many(_) => Err(Wrong::new("has several values", "give it one")),
        }
    }

    pub(super) fn items(&self) -> Vec<&str> {
        match self {
            Raw::One(text) if text.trim().is_empty() => Vec::new(),
            Raw::One(text) => text.split(',').map(str::trim).collect(),
            Raw::Many(items) => items.iter().map(String::as_str).collect(),
        }
    }
}

pub(super) struct Given {
    pub(super) raw: Raw,
    pub(super) origin: ValueOrigin,
}

/// The values of one source.
#[derive(Default)]
pub(super) struct Layer {
    given: BTreeMap<&'static str, Given>,
}

impl Layer {
    pub(super) fn get(&self, key: &Key) -> Option<&Given> {
        self.given.get(key.path)
    }

    /// Adds a value. If it names a file that contains the value, reads the file.
    pub(super) fn add(
        &mut self,
        meaning: Meaning,
        raw: Raw,
        origin: ValueOrigin,
        working_directory: &Path,
    ) -> Result<(), Wrong> {
        let (key, raw) = match meaning {
            Meaning::Value(key) => (key, raw),
            Meaning::ValueFile(key) => {
                (key, Raw::One(read_value_file(&working_directory.join(raw.one()?))?))
            }
        };
        if self.given.insert(key.path, Given { raw, origin }).is_some() {
            return Err(Wrong::new(format!("{} is given twice", key.path), "keep one of the two"));
        }
        Ok(())
    }

    /// Adds the values of another layer. Returns the settings that both have, with their origins in the other layer;
    /// these keep their values.
    pub(super) fn merge(&mut self, other: Layer) -> Vec<(&'static str, ValueOrigin)> {
        let mut twice = Vec::new();
        for (path, given) in other.given {
            match self.given.entry(path) {
                Entry::Vacant(place) => {
                    place.insert(given);
                }
                Entry::Occupied(_) => twice.push((path, given.origin)),
            }
        }
        twice
    }

    /// Adds a value. If there already is one, as with a repeated flag, the result is a list.
    pub(super) fn append(&mut self, key: &'static Key, value: String, origin: ValueOrigin) {
        let raw = match self.given.remove(key.path).map(|given| given.raw) {
            None => Raw::One(value),
            Some(Raw::One(first)) => Raw::Many(vec![first, value]),
            Some(Raw::Many(mut items)) => {
                items.push(value);
                Raw::Many(items)
            }
        };
        self.given.insert(key.path, Given { raw, origin });
    }
}

/// Reads all of a text file, up to `most_bytes`.
pub(super) fn read_text_file(path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(most_bytes + 1).read_to_string(&mut text)?;
    if u64::try_from(length).unwrap_or(u64::MAX) > most_bytes {
        let problem = format!("it is larger than {most_bytes} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// Reads the file of a secret. A trailing newline, which editors add, is removed.
fn read_value_file(path: &Path) -> Result<String, Wrong> {
    const MOST_BYTES: u64 = 64 * 1024;
    let text = read_text_file(path, MOST_BYTES).map_err(|error| {
        Wrong::new(
            format!("cannot read {}: {error}", path.display()),
            "name a text file that this process may read",
        )
    })?;
    let trimmed = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(trimmed.unwrap_or(&text).to_owned())
}
