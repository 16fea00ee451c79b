//! Kinds that are built from other kinds: lists, optional values, and values that need a feature.

use serde_json::Value as Json;

use super::fault::Wrong;
use super::features::Feature;
use super::kinds::Kind;
use super::layer::Raw;

/// A list; in the environment and in a flag its items are separated by commas.
pub(super) struct ListOf<K>(pub(super) K);

impl<K: Kind> Kind for ListOf<K> {
    type Value = Vec<K::Value>;

    fn read(&self, raw: &Raw) -> Result<Vec<K::Value>, Wrong> {
        raw.items().into_iter().map(|item| self.0.read(&Raw::One(item.to_owned()))).collect()
    }

    fn show(&self, values: &Vec<K::Value>) -> Json {
        values.iter().map(|value| self.0.show(value)).collect()
    }
}

/// An optional value; an empty text means none.
pub(super) struct Optional<K>(pub(super) K);

impl<K: Kind> Kind for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, raw: &Raw) -> Result<Option<K::Value>, Wrong> {
        if raw.one()?.is_empty() { Ok(None) } else { self.0.read(raw).map(Some) }
    }

    fn show(&self, value: &Option<K::Value>) -> Json {
        value.as_ref().map_or_else(|| "".into(), |value| self.0.show(value))
    }
}

/// A value that only a build with this feature can use.
pub(super) struct Needs<K>(pub(super) Feature, pub(super) K);

impl<K: Kind> Kind for Needs<K> {
    type Value = K::Value;

    fn read(&self, raw: &Raw) -> Result<K::Value, Wrong> {
        let value = self.1.read(raw)?;
        self.0.require()?;
        Ok(value)
    }

    fn show(&self, value: &K::Value) -> Json {
        self.1.show(value)
    }
}
