//! Writes long texts as JSON. serde_json checks one byte at a time; this module checks blocks of 32 bytes, which the
//! compiler can vectorize.

const BLOCK_BYTES: usize = 32;

/// Appends a string, or `null`.
pub(super) fn push(json: &mut Vec<u8>, text: Option<&str>) {
    let Some(text) = text else { return json.extend_from_slice(b"null") };
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

/// No early exit, so that the compiler can vectorize the loop.
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
            for text in [Some(text.as_str()), None] {
                let mut json = Vec::new();
                push(&mut json, text);
                prop_assert_eq!(String::from_utf8(json).unwrap(), serde_json::to_string(&text).unwrap());
            }
        }
    }
}
