//! Reads the rows of a table from the layers. The value with the highest precedence applies; all are checked.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::fault::{SettingError, ValueOrigin};
use super::key::Key;
use super::kinds::Kind;
use super::layer::{Layer, Raw};
use super::names::table_path;

/// The effective value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The key, as in the file, such as `sites."example.com".rate`.
    pub key: String,
    /// The normalized value; a secret is hidden.
    pub value: Json,
    /// Where the value came from.
    pub origin: ValueOrigin,
}

/// The results of reading besides the values themselves.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) effective: Vec<Effective>,
    pub(super) faults: Vec<SettingError>,
}

/// Reads one table.
pub(super) struct Reader<'a> {
    /// The prefix of the paths of the rows, such as `sites."example.com".`.
    pub(super) prefix: String,
    pub(super) strongest_first: &'a [Layer],
    pub(super) findings: &'a mut Findings,
}

impl Reader<'_> {
    /// The value of a row; `None` if no layer has a valid one and the default is invalid, too.
    pub(super) fn take<K: Kind>(&mut self, key: &Key, kind: &K) -> Option<K::Value> {
        let mut winner = None;
        for given in self.strongest_first.iter().filter_map(|layer| layer.get(key)) {
            match kind.read(&given.raw) {
                Ok(value) => winner = winner.or(Some((value, given.origin.clone()))),
                Err(wrong) => self.findings.faults.push(SettingError {
                    origin: given.origin.clone(),
                    key: self.full_path(key),
                    wrong,
                }),
            }
        }
        let default =
            || Some((kind.read(&Raw::One(key.default.to_owned())).ok()?, ValueOrigin::Default));
        let (value, origin) = winner.or_else(default)?;
        let effective = Effective { key: self.full_path(key), value: kind.show(&value), origin };
        self.findings.effective.push(effective);
        Some(value)
    }

    fn full_path(&self, key: &Key) -> String {
        format!("{}{}", self.prefix, key.path)
    }
}

/// Reads the tables of a map, such as `[sites."example.com"]`, each with `read`. Several sources may have a table of
/// the same name.
pub(super) fn read_named_tables<T>(
    map: &str,
    strongest_first: impl IntoIterator<Item = BTreeMap<String, Layer>>,
    findings: &mut Findings,
    read: fn(&mut Reader<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut tables: BTreeMap<String, Vec<Layer>> = BTreeMap::new();
    for (name, layer) in strongest_first.into_iter().flatten() {
        tables.entry(name).or_default().push(layer);
    }
    let mut values = BTreeMap::new();
    for (name, layers) in tables {
        let prefix = format!("{}.", table_path(map, &name));
        let mut reader = Reader { prefix, strongest_first: &layers, findings };
        if let Some(value) = read(&mut reader) {
            values.insert(name, value);
        }
    }
    values
}
