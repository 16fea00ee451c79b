//! Strings in JSON that may be malformed.

use memchr::memchr2;

/// The end of the string that starts here: its closing quote, else the end of the source.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// Decodes the escapes in a string.
pub(crate) fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        if after.starts_with('u') {
            rest = push_units(&mut out, after);
            continue;
        }
        let mut characters = after.chars();
        match characters.next() {
            Some('n' | 'r') => out.push('\n'),
            Some('t' | 'b' | 'f') => out.push(' '),
            other => out.extend(other),
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out
}

/// Decodes a sequence such as `uD83D\uDE00`, which follows a backslash: two units may make one character. Returns the
/// rest.
fn push_units<'t>(out: &mut String, from_first: &'t str) -> &'t str {
    let mut units = Vec::new();
    let mut rest = from_first;
    let mut next = Some(from_first);
    while let Some(unit) = next.and_then(|text| text.strip_prefix('u')?.get(..4)) {
        rest = next.and_then(|text| text.get(5..)).unwrap_or_default();
        let unit = u16::from_str_radix(unit, 16).ok();
        // NUL becomes U+FFFD in every other place of a page, too.
        units.push(unit.filter(|unit| *unit != 0).unwrap_or(0xFFFD));
        next = rest.strip_prefix('\\');
    }
    if units.is_empty() {
        rest = from_first.strip_prefix('u').unwrap_or_default();
    }
    out.push_str(&String::from_utf16_lossy(&units));
    rest
}
