//! Settings from the environment: `FETCHWELL_HTTP__CONNECT_TIMEOUT`, and the designs' own names.

use std::collections::BTreeMap;

use super::Sources;
use super::fault::{Fault, Origin, Wrong};
use super::key::meaning;
use super::layer::{Layer, Raw};
use super::schema::Values;
use super::suggest::nearest;

const PREFIX: &str = "FETCHWELL_";
/// Variables of our own tests, which are no settings.
const TEST_PREFIX: &str = "FETCHWELL_TEST_";

/// The environment of this process. What is not Unicode cannot be a setting's name; in a value it
/// is replaced, and the value's own check then says what is wrong.
pub fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        })
        .collect()
}

/// The variables that begin with `FETCHWELL_`, each of which must be a setting.
pub(super) fn layer(sources: &Sources<'_>, faults: &mut Vec<Fault>) -> Layer {
    let mut layer = Layer::default();
    for (name, value) in sources.environment {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if name.starts_with(TEST_PREFIX) {
            continue;
        }
        let path = rest.replace("__", ".").to_ascii_lowercase();
        let origin = Origin::Environment(name.clone());
        // Only the exact spelling counts, so that one setting cannot come by two variables.
        let known = meaning(Values::KEYS, &path).filter(|_| variable_name(&path) == *name);
        let added = match known {
            Some(meaning) => {
                let raw = Raw::One(value.clone());
                layer.add(meaning, raw, origin.clone(), sources.working_directory)
            }
            None => Err(unknown(&path)),
        };
        if let Err(wrong) = added {
            faults.push(Fault { origin, key: path, wrong });
        }
    }
    layer
}

/// The variables that the design of the door at work had for its settings.
pub(super) fn own_names_layer(sources: &Sources<'_>) -> Layer {
    let mut layer = Layer::default();
    for key in Values::KEYS {
        let Some(own) = key.own_name.filter(|own| sources.door == Some(own.door)) else { continue };
        if let Some(value) = sources.environment.get(own.name) {
            let origin = Origin::Environment(own.name.to_owned());
            layer.append(key, with_unit(value, own.unit), origin);
        }
    }
    layer
}

/// The variable of a setting.
pub(super) fn variable_name(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_ascii_uppercase())
}

fn unknown(path: &str) -> Wrong {
    let mend = match nearest(path, Values::KEYS.iter().map(|key| key.path)) {
        Some(near) => format!("did you mean {}?", variable_name(near)),
        None => "unset it; `fetchwell config show` lists all settings".to_owned(),
    };
    Wrong::new("no such setting", mend)
}

/// `30` under a name that says `_SECONDS` is `30s`.
fn with_unit(value: &str, unit: &str) -> String {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_bare = !value.is_empty() && value.bytes().all(is_digit);
    if is_bare { format!("{value}{unit}") } else { value.to_owned() }
}
