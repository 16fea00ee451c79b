//! Decodes character references (`&amp;`, `&#8217;`).

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;

use crate::entity_names::ENTITIES;

/// No name in the table is longer, so anything longer is not a reference.
const MAX_NAME_BYTES: usize = 32;

/// Decodes the character references in text or in an attribute value.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    replace_references(raw, reference)
}

/// Replaces the character references in a text. `reference` reads the one after an `&`, and returns its character and
/// the rest of the text; an `&` without a reference is kept.
pub fn replace_references(
    raw: &str,
    reference: impl Fn(&str) -> Option<(char, &str)>,
) -> Cow<'_, str> {
    if memchr::memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut parts = raw.split('&');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match reference(part) {
            Some((character, rest)) => {
                out.push(character);
                out.push_str(rest);
            }
            None => {
                out.push('&');
                out.push_str(part);
            }
        }
    }
    Cow::Owned(out)
}

/// The reference after an `&`, and the rest of the text.
fn reference(after_ampersand: &str) -> Option<(char, &str)> {
    match after_ampersand.strip_prefix('#') {
        Some(number) => numeric(number),
        None => named(after_ampersand),
    }
}

fn numeric(number: &str) -> Option<(char, &str)> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    if digits.is_empty() {
        return None;
    }
    // A number too long to parse is out of range, too.
    let code = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    Some((character(code), rest.strip_prefix(';').unwrap_or(rest)))
}

/// The standard maps 128 to 159 to windows-1252, because that is what such pages mean.
fn character(code: u32) -> char {
    match u8::try_from(code) {
        Ok(0) => char::REPLACEMENT_CHARACTER,
        Ok(byte @ 0x80..=0x9F) => {
            let bytes = [byte];
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
            text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn named(after_ampersand: &str) -> Option<(char, &str)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric();
    let end = after_ampersand.bytes().take(MAX_NAME_BYTES + 1).take_while(is_name).count();
    let (name, rest) = after_ampersand.split_at_checked(end).filter(|_| end > 0)?;
    let character = named_character(name)?;
    match rest.strip_prefix(';') {
        Some(rest) => Some((character, rest)),
        // The oldest names work without a semicolon, but `&copy` in `?a=1&copy=2` is not a reference.
        None => (u32::from(character) < 256 && !rest.starts_with('=')).then_some((character, rest)),
    }
}

/// The character that a reference names: `eacute` is `é`.
#[must_use]
pub fn named_character(name: &str) -> Option<char> {
    let index = ENTITIES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    ENTITIES.get(index).map(|(_, character)| *character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(ENTITIES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(ENTITIES.iter().all(|(name, _)| name.len() <= MAX_NAME_BYTES));
    }

    #[test]
    fn references_are_decoded() {
        for (raw, want) in [
            ("Fish &amp; Chips", "Fish & Chips"),
            ("&lt;b&gt;", "<b>"),
            ("&#8217;&#x2019;&rsquo;", "’’’"),
            ("&#146;", "’"),
            ("&nbsp;", "\u{A0}"),
            ("caf&eacute", "café"),
            ("&#0;&#xD800;&#99999999999;", "\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("?a=1&copy=2&b", "?a=1&copy=2&b"),
            ("&&;&#;&#x;&nosuch;&", "&&;&#;&#x;&nosuch;&"),
            ("&amp;lt;", "&lt;"),
        ] {
            assert_eq!(decode(raw), want, "{raw}");
        }
    }
}
