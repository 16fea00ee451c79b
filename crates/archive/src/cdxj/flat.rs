//! JSON objects that hold nothing but strings, and those without escapes: nearly all that an index
//! has. They are read by their quotes alone, which is several times faster than any JSON parser.

use memchr::memchr;

/// Objects with more fields are left to others.
const MAX_FIELDS: usize = 32;

/// Names and values, in their order; none if the object is not of that kind, or is no object.
pub(super) fn fields(json: &str) -> Option<Vec<(&str, &str)>> {
    // An escape may hide a quote; control characters must not stand in strings.
    let bytes = json.bytes();
    let is_odd = bytes.fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'));
    let mut rest = if is_odd { None } else { token(json, '{') }?;
    let mut fields = Vec::with_capacity(MAX_FIELDS / 2);
    loop {
        let (name, behind_name) = string(rest)?;
        let (value, behind) = string(token(behind_name, ':')?)?;
        fields.push((name, value));
        match token(behind, ',') {
            Some(next) if fields.len() < MAX_FIELDS => rest = next,
            Some(_) => return None,
            None => return token(behind, '}')?.is_empty().then_some(fields),
        }
    }
}

/// What follows this token and the spaces around it.
fn token(text: &str, token: char) -> Option<&str> {
    text.trim_start_matches(' ').strip_prefix(token).map(|rest| rest.trim_start_matches(' '))
}

/// A string, and what follows it.
fn string(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    let end = memchr(b'"', text.as_bytes())?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_too_many_are_left_to_others() {
        let object = |fields: usize| format!("{{{}}}", vec![r#""a":"b""#; fields].join(","));
        let found = fields(&object(MAX_FIELDS)).map(|fields| fields.len());
        assert_eq!(found, Some(MAX_FIELDS));
        assert_eq!(fields(&object(MAX_FIELDS + 1)), None);
    }

    #[test]
    fn only_flat_objects_of_strings_are_read() {
        let two = vec![("a", "b"), ("c", "")];
        for (json, want) in [
            (r#"{"a":"b","c":""}"#, Some(two.clone())),
            (r#"  { "a" :  "b" , "c": "" }  "#, Some(two)),
            (r#"{"a":"b"}"#, Some(vec![("a", "b")])),
            (r#"{"ü":"{:,}"}"#, Some(vec![("ü", "{:,}")])),
            (r#"{}"#, None),
            (r#"{"a":"b",}"#, None),
            (r#"{"a":"b"}}"#, None),
            (r#"{"a":"b"} x"#, None),
            (r#"{"a":"b""c":"d"}"#, None),
            (r#"{"a":"b":"c":"d"}"#, None),
            (r#"{"a","b"}"#, None),
            (r#"{"a":"b","c":7}"#, None),
            (r#"{"a":"b","c":7,"d":"e"}"#, None),
            (r#"{"a":{"b":"c"}}"#, None),
            (r#"{"a":["b","c"]}"#, None),
            (r#"{"a":"b\n"}"#, None),
            ("{\"a\":\"b\u{1}\"}", None),
            (r#""a":"b""#, None),
            (r#"{"a":"b"#, None),
            (r#"{"a""#, None),
            ("", None),
        ] {
            assert_eq!(fields(json), want, "{json}");
        }
    }
}
