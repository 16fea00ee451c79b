//! JSON of a request body. Duplicate names in an object are refused (I-JSON, RFC 7493).
//!
//! Of two values with the same name, some programs use the first and others the last. A proxy that checks requests
//! might see another URL than the one that is fetched.
//!
//! Strings without escapes are not copied; for a batch of a thousand messages that would be most of the work.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A JSON value without duplicate names, so that it has only one meaning.
#[derive(Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Object<'a>),
}

/// Names and values, sorted by name.
#[derive(Debug, PartialEq)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Object<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Json<'a>> {
        let place = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }
}

impl<'a> Json<'a> {
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate keys")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let mut array = Vec::new();
        while let Some(entry) = entries.next_element()? {
            array.push(entry);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json<'de>, A::Error> {
        let mut object = Vec::new();
        while let Some(Name(name)) = fields.next_key()? {
            object.push((name, fields.next_value()?));
        }
        object.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if object.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(A::Error::custom("duplicate key"));
        }
        Ok(Json::Object(Object(object)))
    }
}

/// A `Cow` by itself is always deserialized as an owned string.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// As everybody else writes it.
    fn plain(json: &Json<'_>) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => (*value).into(),
            Json::Number(value) => value.clone().into(),
            Json::Text(value) => (**value).into(),
            Json::Array(values) => values.iter().map(plain).collect(),
            Json::Object(object) => {
                object.iter().map(|(name, value)| (name.to_owned(), plain(value))).collect()
            }
        }
    }

    #[test]
    fn it_is_read_as_ever() {
        let text = r#"{"b": {}, "a": [null, true, -1, 1, 18446744073709551615, 1.5, "x", "\u00e4"], "\u0061a": "\n"}"#;
        let json: Json<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(plain(&json), serde_json::from_str::<Value>(text).unwrap());
        let object = json.as_object().unwrap();
        assert_eq!(object.names().collect::<Vec<_>>(), ["a", "aa", "b"]);
        assert_eq!(object.get("aa").and_then(Json::as_str), Some("\n"));
        assert!(object.get("c").is_none());
        for wrong in ["", "{", "[1,]", "{\"a\"}", "\"\\ud800\"", &"[".repeat(1_000)] {
            assert!(serde_json::from_str::<Json<'_>>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_a_fault_at_any_depth() {
        for twice in [r#"{"a": 1, "b": 1, "a": 1}"#, r#"[{"b": {"a": 1, "\u0061": 2}}]"#] {
            assert!(serde_json::from_str::<Json<'_>>(twice).unwrap_err().is_data(), "{twice}");
        }
        assert!(serde_json::from_str::<Json<'_>>(r#"[{"a": 1}, {"a": 1}]"#).is_ok());
    }
}
