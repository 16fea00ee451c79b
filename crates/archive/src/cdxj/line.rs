//! A line, borrowed from its block.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serializer};
use serde_json::value::RawValue;

use super::flat;
use crate::line::{LineFault, bounded, timestamp};

/// `SURT TIMESTAMP {JSON}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdxLine<'a> {
    /// The page's URL with its host reversed (`com,example)/path`).
    pub surt: &'a str,
    /// When the page was captured, `YYYYMMDDhhmmss`.
    pub timestamp: &'a str,
    metadata: Metadata<'a>,
}

/// Names and values in the order of the line. Each name occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Metadata<'a> {
    /// Only strings without escapes, and the JSON object that contains them.
    Flat { fields: Vec<(&'a str, &'a str)>, json: &'a str },
    /// Anything else.
    Any(Vec<(Text<'a>, Text<'a>)>),
}

type Text<'a> = Cow<'a, str>;

impl<'a> CdxLine<'a> {
    /// Parses a line, with or without its line break.
    pub fn parse(line: &'a [u8]) -> Result<CdxLine<'a>, LineFault> {
        let line = simdutf8::basic::from_utf8(line).map_err(|_| LineFault::Encoding)?;
        let line = bounded(line)?;
        let (surt, rest) = at_space(line);
        let (time, json) = at_space(rest);
        let given = |field: &'a str, name| match field {
            "" => Err(LineFault::Missing(name)),
            _ => Ok(field),
        };
        Ok(CdxLine {
            surt: given(surt, "surt")?,
            timestamp: timestamp(given(time, "timestamp")?)?,
            metadata: Metadata::parse(given(json, "metadata")?)?,
        })
    }

    /// The value under this name. Values that are not strings are given as JSON text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        match &self.metadata {
            Metadata::Flat { fields, .. } => {
                fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            }
            Metadata::Any(fields) => {
                fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
            }
        }
    }

    /// All names and values, in the order of the line.
    pub fn metadata(&self) -> Vec<(&str, &str)> {
        match &self.metadata {
            Metadata::Flat { fields, .. } => fields.clone(),
            Metadata::Any(fields) => fields.iter().map(|(n, v)| (&**n, &**v)).collect(),
        }
    }

    /// Appends the line as an element of a batch: `surt_url`, `timestamp` and `metadata`, whose values are all strings.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        // Writing strings as JSON into memory cannot fail.
        drop(self.try_write_json(out));
    }

    fn try_write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(b"{\"surt_url\":");
        write_string(self.surt, out)?;
        out.extend_from_slice(b",\"timestamp\":\"");
        out.extend_from_slice(self.timestamp.as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        match &self.metadata {
            Metadata::Flat { json, .. } => out.extend_from_slice(json.as_bytes()),
            Metadata::Any(fields) => {
                let mut map = serde_json::Serializer::new(&mut *out);
                map.collect_map(fields.iter().map(|(name, value)| (name, value)))?;
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// The text before and after the first space.
fn at_space(text: &str) -> (&str, &str) {
    memchr(b' ', text.as_bytes()).map_or((text, ""), |space| (&text[..space], &text[space + 1..]))
}

/// Appends a JSON string. Few strings need escapes.
fn write_string(text: &str, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let is_odd = |byte| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |odd, byte| odd | is_odd(byte)) {
        return serde_json::to_writer(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

impl<'a> Metadata<'a> {
    fn parse(json: &'a str) -> Result<Metadata<'a>, LineFault> {
        if let Some(fields) = flat::fields(json)
            && !has_repeated(&fields)
        {
            return Ok(Metadata::Flat { fields, json });
        }
        let fault = |error: serde_json::Error| LineFault::Json(error.into());
        let Fields(fields) = serde_json::from_str(json).map_err(fault)?;
        let value = |raw: &'a RawValue| match raw.get() {
            text if text.starts_with('"') => serde_json::from_str(text).map(|OnlyText(text)| text),
            other => Ok(Cow::Borrowed(other)),
        };
        let fields = fields.into_iter().map(|(name, raw)| Ok((name, value(raw)?)));
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(fault)?;
        Ok(Metadata::Any(without_repeated(fields)))
    }
}

/// Whether a name occurs twice. Flat objects have few names, and most of them begin differently, which is checked
/// without a call.
fn has_repeated(fields: &[(&str, &str)]) -> bool {
    let is_same =
        |one: &str, other: &str| one.bytes().next() == other.bytes().next() && one == other;
    fields
        .iter()
        .enumerate()
        .any(|(at, (name, _))| fields[..at].iter().any(|(other, _)| is_same(name, other)))
}

/// As in most JSON parsers, the last of equal names counts.
fn without_repeated<'a>(mut fields: Vec<(Text<'a>, Text<'a>)>) -> Vec<(Text<'a>, Text<'a>)> {
    fields.reverse();
    let mut known = HashSet::new();
    fields.retain(|(name, _)| known.insert(name.clone()));
    fields.reverse();
    fields
}

/// The members of a JSON object, in order.
struct Fields<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Text<'de>, &'de RawValue)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((OnlyText(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Members).map(Fields)
    }
}

/// A JSON string, borrowed unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct OnlyText<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_carries_exactly_three_fields_with_strings() {
        let line =
            br#"a)/"\\ 20240712000102 {"b":"\u00fc", "a": 7,"c":null,"d":{"x": [1]},"b":"2"}"#;
        let line = CdxLine::parse(line).unwrap();
        let want = r#"{"surt_url":"a)/\"\\\\","timestamp":"20240712000102","metadata":{"a":"7","c":"null","d":"{\"x\": [1]}","b":"2"}}"#;
        let mut json = Vec::new();
        line.write_json(&mut json);
        assert_eq!(String::from_utf8(json).unwrap(), want);
        assert_eq!((line.get("b"), line.get("e")), (Some("2"), None));
    }

    #[test]
    fn a_thousand_names_are_not_compared_with_each_other() {
        let fields: Vec<String> = (0..5_000).map(|n| format!("\"{}\":\"\"", n / 2)).collect();
        let line = format!("a 20240712000102 {{{}}}", fields.join(","));
        assert_eq!(CdxLine::parse(line.as_bytes()).unwrap().metadata().len(), 2_500);
    }

    #[test]
    fn what_is_no_text_is_a_fault() {
        assert_eq!(CdxLine::parse(b"\xff 20240712000102 {}"), Err(LineFault::Encoding));
    }
}
