//! The strings in JSON that may be broken.

use memchr::memchr2;

/// Where the string that begins here ends: at its quote, else with the source.
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

/// The string without its escapes.
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

/// Reads `uD83DuDE00` and so on, each but the first behind a backslash: two may make one
/// character. Returns what follows.
fn push_units<'t>(out: &mut String, from_first: &'t str) -> &'t str {
    let mut units = Vec::new();
    let mut rest = from_first;
    let mut next = Some(from_first);
    while let Some(unit) = next.and_then(|text| text.strip_prefix('u')?.get(..4)) {
        rest = next.and_then(|text| text.get(5..)).unwrap_or_default();
        units.push(u16::from_str_radix(unit, 16).unwrap_or(0xFFFD));
        next = rest.strip_prefix('\\');
    }
    if units.is_empty() {
        rest = from_first.strip_prefix('u').unwrap_or_default();
    }
    out.push_str(&String::from_utf16_lossy(&units));
    rest
}
