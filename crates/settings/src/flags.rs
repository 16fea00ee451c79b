//! Command-line flags that are settings.

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::key::{Meaning, meaning};
use super::layer::Layer;
use super::schema::Values;
use super::sources::Sources;

/// Reads the flags into a layer.
pub(super) fn read(sources: &Sources<'_>, faults: &mut Vec<SettingError>) -> Layer {
    let mut layer = Layer::default();
    for flag in sources.flags {
        let origin = ValueOrigin::Flag(flag.name.to_owned());
        match meaning(Values::KEYS, flag.key) {
            Some(Meaning::Value(key)) => layer.append(key, flag.value.clone(), origin),
            _ => faults.push(SettingError {
                origin,
                key: flag.key.to_owned(),
                wrong: Wrong::new("no such setting", "remove the flag"),
            }),
        }
    }
    layer
}
