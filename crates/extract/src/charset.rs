//! Decodes bytes to text.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use crate::media_type::parameter;
use crate::page::parse_attributes;

/// How far into the body a charset declaration may be; the limit of the HTML standard.
const DECLARATION_BYTES: usize = 1024;

/// How much of the body detection reads. Detection is by far the most expensive step, and more input hardly improves
/// it.
const DETECTION_SAMPLE_BYTES: usize = 16 * 1024;

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text, without byte order mark; NULs and malformed bytes are U+FFFD.
    pub text: Cow<'a, str>,
    /// The WHATWG name of the encoding that was used (`UTF-8`, `windows-1252`, …), or `UTF-32LE` or `UTF-32BE`, which
    /// WHATWG does not define.
    pub charset: &'static str,
}

/// Decodes a body by the first of these: byte order mark, the zero bytes of UTF-16 or UTF-32, valid UTF-8 with
/// non-ASCII characters (hardly ever accidental, whatever is declared), `Content-Type` header, declaration in the body,
/// detection.
#[must_use]
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    if let Some(decoded) = decoded_utf_32(body) {
        return decoded;
    }
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(body) {
        return decoded(body.get(mark_bytes..).unwrap_or_default(), encoding);
    }
    // HTML and XML begin with two ASCII characters.
    match body {
        [1..128, 0, 1..128, 0, ..] => return decoded(body, UTF_16LE),
        [0, 1..128, 0, 1..128, ..] => return decoded(body, UTF_16BE),
        _ => {}
    }
    let text = simdutf8::basic::from_utf8(body).ok();
    if let Some(text) = text.filter(|text| !text.is_ascii()) {
        let text = if is_encoded_twice(text) {
            Cow::Owned(decoded_again(text))
        } else {
            Cow::Borrowed(text)
        };
        return Decoded { text: without_nul(text), charset: UTF_8.name() };
    }
    let stated = content_type
        .and_then(|value| parameter(value, "charset"))
        .and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()))
        .or_else(|| declared(body));
    let guess = || if text.is_some() { UTF_8 } else { detected(body) };
    decoded(body, stated.unwrap_or_else(guess))
}

/// Whether UTF-8 was taken for Latin-1 and encoded again: `â` and two control characters instead of `’`. Latin-1's
/// control characters do not occur in text.
fn is_encoded_twice(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_start = |at: usize| {
        matches!(bytes.get(at..).unwrap_or_default(), [_, 0xA0..=0xAF, 0xC2, 0x80..=0x9F, ..])
    };
    memchr::memchr_iter(0xC3, bytes).any(is_start)
}

/// Undoes the second encoding wherever that gives valid UTF-8.
fn decoded_again(text: &str) -> String {
    let is_latin_1 = |c: char| matches!(c, '\u{80}'..='\u{FF}');
    let mut out = String::with_capacity(text.len());
    let mut bytes = Vec::new();
    for run in text.split_inclusive(|c| !is_latin_1(c)) {
        let latin_1 = run.trim_end_matches(|c| !is_latin_1(c));
        bytes.clear();
        bytes.extend(latin_1.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()));
        out.push_str(str::from_utf8(&bytes).unwrap_or(latin_1));
        out.push_str(run.get(latin_1.len()..).unwrap_or_default());
    }
    out
}

fn decoded<'a>(body: &'a [u8], encoding: &'static Encoding) -> Decoded<'a> {
    let (text, _) = encoding.decode_without_bom_handling(body);
    Decoded { text: without_nul(text), charset: encoding.name() }
}

/// The text of a body in UTF-32, which begins with a byte order mark or an ASCII character.
fn decoded_utf_32(body: &[u8]) -> Option<Decoded<'_>> {
    let (charset, character): (_, fn([u8; 4]) -> u32) = match body {
        [0xFF, 0xFE, 0, 0, ..] | [1..128, 0, 0, 0, ..] => ("UTF-32LE", u32::from_le_bytes),
        [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, 1..128, ..] => ("UTF-32BE", u32::from_be_bytes),
        _ => return None,
    };
    let (characters, rest) = body.as_chunks();
    let mut text = String::with_capacity(body.len() / 2);
    text.extend(
        characters
            .iter()
            .map(|bytes| char::from_u32(character(*bytes)).unwrap_or(char::REPLACEMENT_CHARACTER))
            .skip_while(|c| *c == '\u{FEFF}'),
    );
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Some(Decoded { text: without_nul(Cow::Owned(text)), charset })
}

/// The encoding that the body declares in its XML declaration or in a `<meta>` element. Unknown labels are
/// ignored.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = body.get(..DECLARATION_BYTES).unwrap_or(body).to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let in_xml = head.strip_prefix("<?xml").and_then(|rest| {
        let declaration = rest.split('>').next()?;
        encoding_named(label_after(declaration, "encoding")?)
    });
    let in_meta = || {
        outside_comments(&head)
            .flat_map(|markup| markup.split("<meta").skip(1))
            .filter_map(|rest| rest.split('>').next())
            .find_map(|attributes| encoding_named(label_in_meta(attributes)?))
    };
    in_xml.or_else(in_meta)
}

/// The encoding with this label in a document.
fn encoding_named(label: &str) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        // The declaration was readable as ASCII, so the body is not UTF-16.
        UTF_8
    } else if encoding == X_USER_DEFINED {
        // The HTML standard maps this label to windows-1252.
        WINDOWS_1252
    } else {
        encoding
    })
}

/// The charset label in a `meta` element. `content` counts only with `http-equiv="content-type"`; otherwise it is
/// ordinary text.
fn label_in_meta(attributes: &str) -> Option<&str> {
    // `<metadata>` is another element.
    if !attributes.starts_with(|c: char| c.is_ascii_whitespace() || c == '/') {
        return None;
    }
    let value = |wanted: &str| {
        let found = parse_attributes(attributes).find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value)
    };
    let in_header = || {
        let is_type = value("http-equiv")?.trim() == "content-type";
        label_after(value("content")?, "charset").filter(|_| is_type)
    };
    value("charset").map_or_else(in_header, first_label)
}

/// The markup between comments. An unclosed comment extends to the end of the input.
fn outside_comments(markup: &str) -> impl Iterator<Item = &str> {
    let mut parts = markup.split("<!--");
    let first = parts.next();
    // `<!-->` and `<!--->` are whole comments.
    let after = parts.filter_map(|comment| {
        let is_whole = |end| comment.strip_prefix(end);
        is_whole(">").or_else(|| is_whole("->")).or_else(|| Some(comment.split_once("-->")?.1))
    });
    first.into_iter().chain(after)
}

fn label_after<'t>(tag: &'t str, key: &str) -> Option<&'t str> {
    let (_, after_key) = tag.split_once(key)?;
    first_label(after_key.trim_start().strip_prefix('=')?)
}

fn first_label(value: &str) -> Option<&str> {
    value
        .split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '?'))
        .find(|part| !part.is_empty())
}

fn detected(body: &[u8]) -> &'static Encoding {
    // ASCII says nothing about the charset, and a page may begin with much of it: styles, scripts.
    let start = body.iter().position(|byte| !byte.is_ascii()).unwrap_or_default();
    let telling = body.get(start..).unwrap_or_default();
    let sample = telling.get(..DETECTION_SAMPLE_BYTES).unwrap_or(telling);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, sample.len() == telling.len());
    // UTF-8 is allowed although the whole body is not valid: it may have just one truncated character.
    detector.guess(None, Utf8Detection::Allow)
}

fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    let nuls = memchr::memchr_iter(0, text.as_bytes()).count();
    if nuls == 0 {
        return text;
    }
    // Allocate once: a page of nothing but NULs must not be copied repeatedly as the string grows.
    let mut out = String::with_capacity(text.len() + nuls * ('\u{FFFD}'.len_utf8() - 1));
    out.extend(text.chars().map(|c| if c == '\0' { '\u{FFFD}' } else { c }));
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], content_type: Option<&str>, text: &str, charset: &str) {
        let decoded = decode(body, content_type);
        assert_eq!((decoded.text.as_ref(), decoded.charset), (text, charset));
    }

    #[test]
    fn the_mark_beats_the_header() {
        check(b"\xEF\xBB\xBF\xC3\xA9", Some("text/html; charset=latin1"), "é", "UTF-8");
        check(b"\xFF\xFEh\0i\0", None, "hi", "UTF-16LE");
    }

    #[test]
    fn valid_utf8_beats_what_is_declared() {
        check("é".as_bytes(), Some("text/html; charset=latin1"), "é", "UTF-8");
    }

    #[test]
    fn the_header_beats_the_declaration() {
        let body = b"<meta charset=utf-8>\xE9";
        let header = Some("text/html;charset=\"ISO-8859-1\"");
        check(body, header, "<meta charset=utf-8>é", "windows-1252");
    }

    #[test]
    fn declarations_are_read() {
        check(
            b"<META Charset='windows-1251'>\xEF",
            None,
            "<META Charset='windows-1251'>п",
            "windows-1251",
        );
        let body = b"<meta http-equiv=content-type content=\"text/html; charset=koi8-r\">\xD0";
        assert_eq!(decode(body, None).charset, "KOI8-R");
        assert_eq!(decode(b"<?xml version=\"1.0\" encoding=\"euc-jp\"?>", None).charset, "EUC-JP");
        assert_eq!(decode(b"<meta charset=utf-16>", None).charset, "UTF-8");
    }

    /// As the HTML standard prescribes ("prescan a byte stream to determine its encoding"): the `content` of a `meta`
    /// element counts only if it stands for a `Content-Type` header.
    #[test]
    fn charset_in_meta_content_counts_only_with_http_equiv() {
        for (head, charset) in [
            ("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>", "KOI8-R"),
            ("<meta content='text/html; charset = koi8-r' HTTP-EQUIV='content-type'/>", "KOI8-R"),
            ("<meta/charset=koi8-r>", "KOI8-R"),
            ("<meta name=description content='charset=utf-8'><meta charset=koi8-r>", "KOI8-R"),
            ("<meta property=og:title charset=koi8-r content='charset=utf-8'>", "KOI8-R"),
            ("<meta http-equiv=content-type content='charset=utf-8' charset=koi8-r>", "KOI8-R"),
            ("<meta name=description content='How to declare charset=koi8-r'>", "UTF-8"),
            ("<meta http-equiv=refresh content='0; url=/?charset=koi8-r'>", "UTF-8"),
            ("<meta name=x data-charset=koi8-r>", "UTF-8"),
            ("<metadata charset=koi8-r>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<meta http-equiv=content-type content='charset=x-user-defined'>", "windows-1252"),
        ] {
            assert_eq!(decode(head.as_bytes(), None).charset, charset, "{head}");
        }
    }

    /// From the same part of the standard: comments are skipped, and unknown labels are ignored.
    #[test]
    fn declarations_in_comments_and_unknown_labels_are_skipped() {
        for (head, charset) in [
            ("<!-- <meta charset=koi8-r> --><meta charset=windows-1251>", "windows-1251"),
            ("<!--><meta charset=koi8-r><!-- --><meta charset=windows-1251>", "KOI8-R"),
            ("<!---><meta charset=koi8-r><!-- --><meta charset=windows-1251>", "KOI8-R"),
            ("<!-- a -- b > <meta charset=koi8-r> --><meta charset=greek>", "ISO-8859-7"),
            ("<meta charset=klingon><meta charset=koi8-r>", "KOI8-R"),
            ("<?xml version='1.0' encoding='klingon'?><meta charset=koi8-r>", "KOI8-R"),
        ] {
            assert_eq!(decode(head.as_bytes(), None).charset, charset, "{head}");
            let header = Some("text/html; charset=klingon");
            assert_eq!(decode(head.as_bytes(), header).charset, charset, "{head}");
        }
        let unended = [b"<!-- <meta charset=koi8-r>".as_slice(), b"caf\xE9"].concat();
        assert_eq!(decode(&unended, None).charset, "windows-1252");
        check("é".as_bytes(), Some("text/html; charset=klingon"), "é", "UTF-8");
    }

    /// The zero bytes around the first characters reveal the encoding (XML 1.0, appendix F).
    #[test]
    fn wide_characters_need_no_byte_order_mark() {
        check(b"h\0i\0\xE9\0", Some("text/html; charset=utf-8"), "hié", "UTF-16LE");
        check(b"\0h\0i\0\xE9", None, "hié", "UTF-16BE");
        check(b"h\0\0\0\xE9\0\0\0", None, "hé", "UTF-32LE");
        check(b"\0\0\0h\0\0\0\xE9\0", None, "hé\u{FFFD}", "UTF-32BE");
        check(b"\xFF\xFE\0\0h\0\0\0\0\xD8\0\0", None, "h\u{FFFD}", "UTF-32LE");
        check(b"\0\0\xFE\xFF\0\0\0h", None, "h", "UTF-32BE");
        check(b"h\0i", None, "h\u{FFFD}i", "UTF-8");
    }

    #[test]
    fn what_nobody_declares_is_detected() {
        let russian = encoding_rs::WINDOWS_1251.encode("Съешь ещё этих мягких французских булок").0;
        assert_eq!(decode(&russian, None).charset, "windows-1251");
        let styles = "p { margin: 0 } ".repeat(2_000).into_bytes();
        assert_eq!(decode(&[styles.as_slice(), &russian].concat(), None).charset, "windows-1251");
    }

    #[test]
    fn text_that_was_encoded_twice_is_repaired() {
        let twice = |text: &str| text.bytes().map(char::from).collect::<String>();
        for text in ["It’s a café — “now” 🐝", "naïve", "日本語の文"] {
            let broken = format!("it’s fine; {}", twice(text));
            let want =
                if text == "naïve" { broken.clone() } else { format!("it’s fine; {text}") };
            check(broken.as_bytes(), None, &want, "UTF-8");
        }
        // Letters that only look like it.
        check("Ã©tÃ© â™¥".as_bytes(), None, "Ã©tÃ© â™¥", "UTF-8");
    }

    #[test]
    fn nul_and_broken_bytes_are_replaced() {
        check(b"a\0b\xFFc", Some("text/plain; charset=utf-8"), "a\u{FFFD}b\u{FFFD}c", "UTF-8");
    }

    #[test]
    fn plain_utf8_is_borrowed() {
        assert!(matches!(decode("é".as_bytes(), None).text, Cow::Borrowed(_)));
    }
}
