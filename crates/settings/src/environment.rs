//! Settings from the environment: `FETCHWELL_HTTP__CONNECT_TIMEOUT`, and the variables of the designs.

use std::collections::BTreeMap;

use fetchwell_policy::units::with_unit;

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::key::{EnvAliasGroup, Key, Meaning, meaning};
use super::layer::{Layer, Raw};
use super::names::retailer_name;
use super::schema::{Retailer, Values};
use super::sources::Sources;
use super::suggest::nearest;

const PREFIX: &str = "FETCHWELL_";
/// Variables of our own tests, which are not settings.
const TEST_PREFIX: &str = "FETCHWELL_TEST_";
/// Tables whose names may have dots, spaces or lower-case letters, which names of variables cannot have.
const IN_THE_FILE_ONLY: [&str; 2] = ["sites.", "categories."];

/// The prefix of the Page Fetcher's variables.
const PAGES_PREFIX: &str = "PAGE_FETCHER_";
/// Kubernetes sets such variables for a Service named "page-fetcher"; they are not settings.
const OF_KUBERNETES: [&str; 2] = ["SERVICE_", "PORT_"];

/// The values of the variables that begin with `FETCHWELL_`.
#[derive(Default)]
pub(super) struct EnvironmentLayers {
    pub(super) settings: Layer,
    pub(super) retailers: BTreeMap<String, Layer>,
}

/// The environment of this process. A name that is not Unicode cannot be a setting. In a value, invalid characters are
/// replaced, and the check of the setting reports them.
pub fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        })
        .collect()
}

/// Reads the variables that begin with `FETCHWELL_`, each of which must be a setting.
pub(super) fn layers(sources: &Sources<'_>, faults: &mut Vec<SettingError>) -> EnvironmentLayers {
    let mut layers = EnvironmentLayers::default();
    for (name, value) in sources.environment {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if name.starts_with(TEST_PREFIX) {
            continue;
        }
        let path = path_of(rest);
        let origin = ValueOrigin::Environment(name.clone());
        let added = layers.place_of(&path, name).and_then(|(layer, meaning)| {
            let raw = Raw::One(value.clone());
            layer.add(meaning, raw, origin.clone(), sources.working_directory)
        });
        if let Err(wrong) = added {
            faults.push(SettingError { origin, key: path, wrong });
        }
    }
    layers
}

impl EnvironmentLayers {
    /// The layer to which a variable belongs, and what it sets.
    fn place_of(&mut self, path: &str, variable: &str) -> Result<(&mut Layer, Meaning), Wrong> {
        // Only the exact spelling counts, so that two variables cannot set the same setting.
        let is_exact = variable_name(path) == variable;
        let known = |keys, row: &str| meaning(keys, row).filter(|_| is_exact);
        if let Some((table, name, row)) = retailer_row(path) {
            let name = retailer_name(name)?;
            let meaning =
                known(Retailer::KEYS, row).ok_or_else(|| unknown(Retailer::KEYS, table, row))?;
            return Ok((self.retailers.entry(name).or_default(), meaning));
        }
        if IN_THE_FILE_ONLY.iter().any(|table| path.starts_with(table)) {
            let mend = "write it into the file, as a table such as [sites.\"example.com\"]";
            return Err(Wrong::new("a variable cannot name such a table", mend));
        }
        let meaning = known(Values::KEYS, path).ok_or_else(|| unknown(Values::KEYS, "", path))?;
        Ok((&mut self.settings, meaning))
    }
}

/// The values of the variables that the designs define.
pub(super) fn own_names_layer(sources: &Sources<'_>, faults: &mut Vec<SettingError>) -> Layer {
    let mut layer = Layer::default();
    for key in Values::KEYS {
        let Some(own) = key.own_name else { continue };
        if !sources.own_names_of.contains(&own.door) {
            continue;
        }
        if let Some(value) = sources.environment.get(own.name) {
            let origin = ValueOrigin::OwnName(own.name.to_owned());
            layer.append(key, with_unit(value, own.unit), origin);
        }
        let file_variable = format!("{}_FILE", own.name);
        if let Some(file) = sources.environment.get(&file_variable).filter(|_| key.secret) {
            let meaning = Meaning::ValueFile(key);
            let raw = Raw::One(file.clone());
            let origin = ValueOrigin::OwnName(file_variable);
            let added = layer.add(meaning, raw, origin.clone(), sources.working_directory);
            if let Err(wrong) = added {
                faults.push(SettingError { origin, key: format!("{}_file", key.path), wrong });
            }
        }
    }
    layer
}

/// The variables with the Page Fetcher's prefix that are not settings. They are only warnings, since other programs of
/// the design may read them, but a mistyped variable must be reported.
pub(super) fn unknown_own_names(sources: &Sources<'_>) -> Vec<SettingError> {
    if !sources.own_names_of.contains(&EnvAliasGroup::Pages) {
        return Vec::new();
    }
    // Names are compared without the common prefix, which would make all of them look similar.
    let known: Vec<String> = Values::KEYS
        .iter()
        .filter_map(|key| Some((key, key.own_name?.name.strip_prefix(PAGES_PREFIX)?)))
        .flat_map(|(key, name)| {
            let file = key.secret.then(|| format!("{name}_FILE"));
            [Some(name.to_owned()), file].into_iter().flatten()
        })
        .collect();
    let is_unknown = |name: &&str| {
        let of_kubernetes = OF_KUBERNETES.iter().any(|prefix| name.starts_with(prefix));
        *name != "PORT" && !of_kubernetes && !known.iter().any(|known| known == name)
    };
    let fault = |name: &str| {
        let mend = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {PAGES_PREFIX}{near}?"),
            None => "unset it; docs/settings.md lists the known names".to_owned(),
        };
        let origin = ValueOrigin::OwnName(format!("{PAGES_PREFIX}{name}"));
        SettingError { origin, key: String::new(), wrong: Wrong::new("no such setting", mend) }
    };
    let names = sources.environment.keys().filter_map(|name| name.strip_prefix(PAGES_PREFIX));
    names.filter(is_unknown).map(fault).collect()
}

/// The key of the setting that a variable sets. Two underscores separate levels; they may also occur in the name of a
/// retailer, but not in that of a row.
fn path_of(variable_after_prefix: &str) -> String {
    let rest = variable_after_prefix.to_ascii_lowercase();
    match rest.strip_prefix("retailers__").and_then(|table| table.rsplit_once("__")) {
        Some((name, row)) => format!("retailers.{name}.{row}"),
        None => rest.replace("__", "."),
    }
}

/// Splits the path of a retailer's row into the prefix of the row, the name of the retailer, and the row.
fn retailer_row(path: &str) -> Option<(&str, &str, &str)> {
    let (name, row) = path.strip_prefix("retailers.")?.rsplit_once('.')?;
    Some((path.strip_suffix(row)?, name, row))
}

/// The name of a setting's variable.
pub(super) fn variable_name(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_ascii_uppercase())
}

/// The error for an unknown row; `table` is the prefix of its table.
fn unknown(keys: &[Key], table: &str, row: &str) -> Wrong {
    let mend = match nearest(row, keys.iter().map(|key| key.path)) {
        Some(near) => format!("did you mean {}?", variable_name(&format!("{table}{near}"))),
        None => "unset it; `fetchwell config show` lists all settings".to_owned(),
    };
    Wrong::new("no such setting", mend)
}
