//! JSON objects that hold nothing but strings, and those without escapes: nearly all that an index
//! has. They are read by their quotes alone, which is several times faster than any JSON parser.

/// The most quotes of an object: four a field.
const MAX_QUOTES: usize = 128;

/// Names and values, in their order; none if the object is not of that kind, or is no object.
pub(super) fn fields(json: &str) -> Option<Vec<(&str, &str)>> {
    let bytes = json.as_bytes();
    // An escape may hide a quote; control characters must not stand in strings.
    let is_odd = bytes.iter().fold(false, |odd, byte| odd | (*byte < b' ') | (*byte == b'\\'));
    let mut places = [0; MAX_QUOTES + 1];
    let quotes = if is_odd { None } else { quotes(bytes, &mut places) }?;
    let mut fields = Vec::with_capacity(quotes.len() / 4);
    let (mut from, mut separator) = (0, b'{');
    for field in quotes.chunks(4) {
        let &[name_start, name_end, value_start, value_end] = field else { return None };
        let is_field = is_only(separator, &bytes[from..name_start])
            && is_only(b':', &bytes[name_end + 1..value_start]);
        if !is_field {
            return None;
        }
        fields.push((json.get(name_start + 1..name_end)?, json.get(value_start + 1..value_end)?));
        (from, separator) = (value_end + 1, b',');
    }
    (!fields.is_empty() && is_only(b'}', &bytes[from..])).then_some(fields)
}

/// Where quotes stand, if they are not too many. No branch depends on a byte, since a processor
/// would guess most of them wrong.
fn quotes<'p>(bytes: &[u8], places: &'p mut [usize; MAX_QUOTES + 1]) -> Option<&'p [usize]> {
    let mut count = 0;
    for (place, byte) in bytes.iter().enumerate() {
        places[count.min(MAX_QUOTES)] = place;
        count += usize::from(*byte == b'"');
    }
    (count <= MAX_QUOTES).then(|| &places[..count])
}

/// Whether there is this byte, once, and spaces.
fn is_only(separator: u8, bytes: &[u8]) -> bool {
    match bytes {
        [only] => *only == separator,
        [one, b' '] | [b' ', one] => *one == separator,
        _ => bytes.trim_ascii() == [separator],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_too_many_are_left_to_others() {
        let object = |fields: usize| format!("{{{}}}", vec![r#""a":"b""#; fields].join(","));
        let most = MAX_QUOTES / 4;
        assert_eq!(fields(&object(most)).map(|fields| fields.len()), Some(most));
        assert_eq!(fields(&object(most + 1)), None);
        assert_eq!(fields(&object(1_000)), None);
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
