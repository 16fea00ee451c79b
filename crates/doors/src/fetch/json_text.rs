//! Long texts in JSON. serde_json examines each byte of a text on its own; here, text without escapes is examined in
//! blocks, which takes a fraction of the time.

const BLOCK_BYTES: usize = 32;

/// Adds a last field to a JSON object.
pub(super) fn push_field(object: &mut Vec<u8>, name: &str, text: Option<&str>) {
    let end = object.pop();
    object.push(b',');
    push_text(object, name);
    object.push(b':');
    match text {
        Some(text) => push_text(object, text),
        None => object.extend_from_slice(b"null"),
    }
    object.extend(end);
}

fn push_text(json: &mut Vec<u8>, text: &str) {
    json.push(b'"');
    let mut rest = text.as_bytes();
    while let Some((plain, after)) = rest.split_at_checked(plain_bytes(rest)) {
        json.extend_from_slice(plain);
        let Some((byte, after)) = after.split_first() else { break };
        push_escaped(json, *byte);
        rest = after;
    }
    json.push(b'"');
}

/// The length of the text before the first byte that needs an escape.
fn plain_bytes(text: &[u8]) -> usize {
    let mut at = 0;
    while text.get(at..).and_then(<[u8]>::first_chunk).is_some_and(is_plain_block) {
        at += BLOCK_BYTES;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len())
}

/// There is no early exit, so that the compiler compares all bytes at once.
fn is_plain_block(block: &[u8; BLOCK_BYTES]) -> bool {
    block.iter().fold(true, |all, byte| all & is_plain(*byte))
}

fn is_plain(byte: u8) -> bool {
    (byte >= b' ') & (byte != b'"') & (byte != b'\\')
}

fn push_escaped(json: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        _ => return json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    json.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_written_as_serde_json_writes_it(
            text in r#"(\PC{0,40}|["\\\n\t\r\x00-\x1f\x7f]{0,3}|[a-z ]{25,40}){0,6}"#,
        ) {
            let mut json = b"{\"a\":1}".to_vec();
            push_field(&mut json, "text", Some(&text));
            push_field(&mut json, "none", None);
            let expected = serde_json::to_string(&text).unwrap();
            let expected = format!(r#"{{"a":1,"text":{expected},"none":null}}"#);
            prop_assert_eq!(String::from_utf8(json).unwrap(), expected);
        }
    }
}
