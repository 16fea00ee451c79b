//! One line, borrowed from the block that it stands in.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::line::{LineFault, bounded, timestamp};

/// Fields that most lines have; for those the list of fields is allocated once.
const COMMON_FIELDS: usize = 16;

/// Up to so many fields, repeated ones are looked for one by one.
const FEW_FIELDS: usize = 64;

/// `SURT TIMESTAMP {JSON}`. As JSON it is an element of a batch: `surt_url`, `timestamp` and
/// `metadata`, all of whose values are strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The page's URL with its host reversed (`com,example)/path`).
    pub surt: &'a str,
    /// When it was captured, `YYYYMMDDhhmmss`.
    pub timestamp: &'a str,
    metadata: Metadata<'a>,
}

/// Names and values, in the order of the line. A name stands there once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Metadata<'a>(Vec<(Text<'a>, Text<'a>)>);

type Text<'a> = Cow<'a, str>;

impl<'a> Line<'a> {
    /// Reads a line, with or without its end.
    pub fn parse(line: &'a [u8]) -> Result<Line<'a>, LineFault> {
        let line = str::from_utf8(line).map_err(|_| LineFault::Encoding)?;
        let mut fields = bounded(line)?.splitn(3, ' ');
        let mut next =
            |name| fields.next().filter(|f| !f.is_empty()).ok_or(LineFault::Missing(name));
        Ok(Line {
            surt: next("surt")?,
            timestamp: timestamp(next("timestamp")?)?,
            metadata: Metadata::parse(next("metadata")?)?,
        })
    }

    /// What the line says under this name. Values that are no strings stand as they are written.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.metadata.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// All names and values, in the order of the line.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl<'a> Metadata<'a> {
    /// Nearly all lines have nothing but strings, which are read at once and mostly borrowed.
    fn parse(json: &'a str) -> Result<Metadata<'a>, LineFault> {
        let fields = match serde_json::from_str(json) {
            Ok(Fields::<OnlyText<'a>>(fields)) => {
                fields.into_iter().map(|(name, value)| (name, value.0)).collect()
            }
            Err(_) => Self::any_values(json).map_err(|error| LineFault::Json(error.to_string()))?,
        };
        Ok(Metadata(without_repeated(fields)))
    }

    fn any_values(json: &'a str) -> Result<Vec<(Text<'a>, Text<'a>)>, serde_json::Error> {
        let Fields(fields): Fields<'a, &'a RawValue> = serde_json::from_str(json)?;
        let value = |raw: &'a str| match raw.starts_with('"') {
            true => serde_json::from_str(raw).map(|text: OnlyText<'a>| text.0),
            false => Ok(Cow::Borrowed(raw)),
        };
        fields.into_iter().map(|(name, raw)| Ok((name, value(raw.get())?))).collect()
    }
}

/// As JSON is read everywhere, the last of equal names counts.
fn without_repeated<'a>(mut fields: Vec<(Text<'a>, Text<'a>)>) -> Vec<(Text<'a>, Text<'a>)> {
    let names = || fields.iter().map(|(name, _)| name);
    let is_repeated = if fields.len() <= FEW_FIELDS {
        names().enumerate().any(|(before, name)| names().take(before).any(|other| other == name))
    } else {
        true
    };
    if is_repeated {
        fields.reverse();
        let mut known = std::collections::HashSet::new();
        fields.retain(|(name, _)| known.insert(name.clone()));
        fields.reverse();
    }
    fields
}

/// The members of a JSON object, in their order.
struct Fields<'a, V>(Vec<(Text<'a>, V)>);

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Fields<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<V>(std::marker::PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
            type Value = Vec<(Text<'de>, V)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(COMMON_FIELDS);
                while let Some((name, value)) = map.next_entry::<OnlyText<'de>, V>()? {
                    fields.push((name.0, value));
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Members(std::marker::PhantomData)).map(Fields)
    }
}

/// A JSON string, borrowed unless it has escapes.
struct OnlyText<'a>(Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for OnlyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Text<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }

        deserializer.deserialize_str(Any).map(OnlyText)
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("Line", 3)?;
        record.serialize_field("surt_url", self.surt)?;
        record.serialize_field("timestamp", self.timestamp)?;
        record.serialize_field("metadata", &self.metadata)?;
        record.end()
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_carries_exactly_three_fields_with_strings() {
        let line = br#"a)/ 20240712000102 {"b":"\u00fc", "a": 7,"c":null,"d":{"x": [1]},"b":"2"}"#;
        let line = Line::parse(line).unwrap();
        let want = r#"{"surt_url":"a)/","timestamp":"20240712000102","metadata":{"a":"7","c":"null","d":"{\"x\": [1]}","b":"2"}}"#;
        assert_eq!(serde_json::to_string(&line).unwrap(), want);
        assert_eq!((line.get("b"), line.get("e")), (Some("2"), None));
    }

    #[test]
    fn a_thousand_names_are_not_compared_with_each_other() {
        let fields: Vec<String> = (0..5_000).map(|n| format!("\"{}\":\"\"", n / 2)).collect();
        let line = format!("a 20240712000102 {{{}}}", fields.join(","));
        assert_eq!(Line::parse(line.as_bytes()).unwrap().metadata().count(), 2_500);
    }

    #[test]
    fn what_is_no_text_is_a_fault() {
        assert_eq!(Line::parse(b"\xff 20240712000102 {}"), Err(LineFault::Encoding));
    }
}
