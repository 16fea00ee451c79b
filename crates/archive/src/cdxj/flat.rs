//! JSON objects that contain only strings without escapes, as nearly all in an index do. They are parsed by their
//! quotes alone, which is several times faster than any JSON parser.

use memchr::memchr;

/// Objects with more fields are left to the JSON parser.
const MAX_FIELDS: usize = 32;

/// Names and values in order; `None` if the input is not such an object.
pub(super) fn fields(json: &str) -> Option<Vec<(&str, &str)>> {
    // An escape may hide a quote; control characters are not allowed in strings.
    let bytes = json.bytes();
    let is_odd = bytes.fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'\\'));
    let mut rest = if is_odd { None } else { token(json, b'{') }?;
    let mut fields = Vec::with_capacity(MAX_FIELDS / 2);
    loop {
        let (name, behind_name) = string(rest)?;
        let (value, behind) = string(token(behind_name, b':')?)?;
        fields.push((name, value));
        match token(behind, b',') {
            Some(next) if fields.len() < MAX_FIELDS => rest = next,
            Some(_) => return None,
            None => return token(behind, b'}')?.is_empty().then_some(fields),
        }
    }
}

/// The text after this token and the spaces around it.
fn token(text: &str, token: u8) -> Option<&str> {
    let text = behind_spaces(text);
    (text.as_bytes().first() == Some(&token)).then(|| behind_spaces(&text[1..]))
}

fn behind_spaces(text: &str) -> &str {
    &text[text.bytes().take_while(|byte| *byte == b' ').count()..]
}

/// A string, and the text after it.
fn string(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    let end = quote(text.as_bytes())?;
    Some((&text[..end], &text[end + 1..]))
}

/// The position of the first quote. Nearly all strings are short, so most quotes are found without a call.
fn quote(text: &[u8]) -> Option<usize> {
    const ONES: u128 = u128::MAX / 0xff;
    let near = text.first_chunk().map_or(0, |chunk| {
        // A byte that is a quote becomes zero, and the lowest zero byte is the first to borrow.
        let differences = u128::from_le_bytes(*chunk) ^ (ONES * u128::from(b'"'));
        differences.wrapping_sub(ONES) & !differences & (ONES << 7)
    });
    if near == 0 { memchr(b'"', text) } else { Some(near.trailing_zeros() as usize / 8) }
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
    fn the_first_quote_is_found_wherever_it_is() {
        for filler in [b'a', b'!', b'#', 0x7f, 0x80, 0xa2, 0xff] {
            for length in 0..40 {
                for (first, second) in (0..length).flat_map(|f| (f..length).map(move |s| (f, s))) {
                    let mut text = vec![filler; length];
                    (text[first], text[second]) = (b'"', b'"');
                    assert_eq!(quote(&text), Some(first), "{text:?}");
                }
                assert_eq!(quote(&vec![filler; length]), None);
            }
        }
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
