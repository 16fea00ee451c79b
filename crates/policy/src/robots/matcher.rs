//! Matches the patterns of rules against paths.

use std::borrow::Cow;

use crate::wildcard;

/// The path pattern of a rule, such as `/private/` or `/*.pdf$`.
///
/// A pattern that begins with neither `/` nor `*` cannot match any path. Its author must have meant a path from the
/// root, so a `/` is prepended.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// In normal form, and matched to the end of the path: a pattern without `$` gets a trailing `*`. Each `*` is a
    /// wildcard, because a literal one is `%2A` in normal form.
    glob: Box<str>,
    specificity: usize,
}

impl Pattern {
    pub(super) fn new(written: &[u8]) -> Pattern {
        let (path, anchored) = match written.strip_suffix(b"$") {
            Some(path) => (path, true),
            None => (written, false),
        };
        let mut glob = String::new();
        if !path.starts_with(b"*") {
            push_root(&mut glob, path);
        }
        for (index, literal) in path.split(|octet| *octet == b'*').enumerate() {
            if index > 0 {
                push_wildcard(&mut glob);
            }
            push_normal(&mut glob, literal);
        }
        let specificity = glob.len() + usize::from(anchored);
        if !anchored {
            push_wildcard(&mut glob);
        }
        Pattern { glob: glob.into(), specificity }
    }

    /// The length of the pattern in octets, in normal form. The longest matching rule decides.
    pub(super) fn specificity(&self) -> usize {
        self.specificity
    }

    /// Whether the pattern matches `path`, which must be a [`normal_path`].
    pub(super) fn matches(&self, path: &str) -> bool {
        wildcard::matches(&self.glob, path)
    }
}

/// The normal form of a URL's path and query. Two that encode the same octets are equal.
pub(super) fn normal_path(path_and_query: &str) -> Cow<'_, str> {
    let octets = path_and_query.as_bytes();
    if octets.starts_with(b"/") && octets.iter().all(|octet| *octet != b'%' && is_plain(*octet)) {
        return Cow::Borrowed(path_and_query);
    }
    let mut normal = String::new();
    push_root(&mut normal, octets);
    push_normal(&mut normal, octets);
    Cow::Owned(normal)
}

fn push_root(normal: &mut String, path: &[u8]) {
    if !path.starts_with(b"/") {
        normal.push('/');
    }
}

/// Consecutive wildcards are equivalent to one.
fn push_wildcard(glob: &mut String) {
    if !glob.ends_with('*') {
        glob.push('*');
    }
}

fn push_normal(normal: &mut String, written: &[u8]) {
    let mut rest = written;
    while let [first, others @ ..] = rest {
        let (octet, plain) = match percent_encoded(rest) {
            Some((octet, after)) => {
                rest = after;
                (octet, is_unreserved(octet))
            }
            None => {
                rest = others;
                (*first, is_plain(*first))
            }
        };
        if plain {
            normal.push(char::from(octet));
        } else {
            push_encoded(normal, octet);
        }
    }
}

/// The percent-encoded octet at the start of `text`, if there is one, and the rest.
fn percent_encoded(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, after @ ..] = text else { return None };
    let digit = |hex: u8| u8::try_from(char::from(hex).to_digit(16)?).ok();
    Some((digit(*high)? << 4 | digit(*low)?, after))
}

fn push_encoded(normal: &mut String, octet: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digits = [octet >> 4, octet & 0x0F].map(|digit| char::from(HEX[usize::from(digit)]));
    normal.push('%');
    normal.extend(digits);
}

fn is_plain(octet: u8) -> bool {
    is_unreserved(octet) || keeps_its_meaning(octet)
}

/// Unreserved characters are equivalent encoded or not (RFC 3986, 2.3).
fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// The reserved characters (RFC 3986, 2.2), which differ from their encoded form, and a `%` that encodes nothing. Three
/// are excluded: `*` and `$`, because rules can contain them literally only in encoded form, and `'`, because URL
/// parsers encode it in a query.
fn keeps_its_meaning(octet: u8) -> bool {
    b"/?&=:#[]@!()+,;%".contains(&octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(&normal_path(path))
    }

    #[test]
    fn patterns_and_paths() {
        let cases = [
            // A pattern is a prefix.
            ("/", "/", true),
            ("/", "/any/thing?at=all", true),
            ("/fish", "/fish", true),
            ("/fish", "/fishheads/yummy.html", true),
            ("/fish", "/fish.html?id=1", true),
            ("/fish", "/Fish.asp", false),
            ("/fish", "/catfish", false),
            ("/fish", "/fis", false),
            ("/fish/", "/fish", false),
            ("/fish/", "/fish/?id=1", true),
            ("/a?b", "/a?b=1", true),
            ("/a?b", "/a/b", false),
            // Wildcards.
            ("/fish*", "/fish", true),
            ("/*.php", "/index.php", true),
            ("/*.php", "/folder/x.php?parameters", true),
            ("/*.php", "/windows.PHP", false),
            ("/fish*.php", "/fishheads/catfish.php?p", true),
            ("/fish*.php", "/Fish.PHP", false),
            ("/a*b*c", "/a-b-c-d", true),
            ("/a*b*c", "/a-c-b", false),
            ("/a***b", "/a-b", true),
            ("*", "/x", true),
            ("**", "/", true),
            ("*x", "/a/x/b", true),
            ("*.gif$", "/a/b.gif", true),
            ("/ab*ab$", "/ab", false),
            ("/ab*ba", "/aba", false),
            // Anchors.
            ("/$", "/", true),
            ("/$", "/x", false),
            ("/*.php$", "/file.php", true),
            ("/*.php$", "/file.php?a=b", false),
            ("/*.php$", "/file.php.php", true),
            ("/*.php$", "/file.php5", false),
            ("/a*$", "/abc", true),
            ("$", "/", true),
            ("$", "/x", false),
            ("*$", "/x", true),
            // A `$` elsewhere is a letter like any other.
            ("/a$b", "/a$bc", true),
            ("/a$b", "/a", false),
            ("/a$$", "/a$", true),
            ("/a$*", "/a$b", true),
            // A missing first slash.
            ("fish", "/fish", true),
            ("fish", "/cat/fish", false),
            ("?q=", "/?q=1", true),
            ("/", "", true),
            ("/?q", "?q=1", true),
            // What encoding leaves alone, and what it does not.
            ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
            ("/foo/bar/baz", "/foo/bar/%62%61%7a", true),
            ("/%7Ejoe", "/~joe", true),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84", true),
            ("/foo/bar/%e3%83%84", "/foo/bar/ツ", true),
            ("/ü", "/%c3%bc/x", true),
            ("/a%3cd", "/a%3Cd", true),
            ("/a/b", "/a%2Fb", false),
            ("/a%2fb", "/a%2Fb", true),
            ("/a%2fb", "/a/b", false),
            ("/a?b", "/a%3Fb", false),
            ("/a b", "/a%20b", true),
            ("/a+b", "/a%20b", false),
            ("/a|b", "/a%7Cb", true),
            ("/?q='a'", "/?q=%27a%27", true),
            ("/100%", "/100%", true),
            ("/100%", "/100%25", true),
            ("/%zz", "/%zz", true),
            ("/%4", "/%4", true),
            // The literal characters `*` and `$`.
            ("/a%2Ab", "/a*b", true),
            ("/a%2ab", "/a%2Ab", true),
            ("/a%2Ab", "/a-b", false),
            ("/a*b", "/a*b", true),
            ("/a*b", "/a%2Ab", true),
            ("/a%24", "/a$", true),
            ("/a%24", "/a%24b", true),
            ("/a%24", "/a", false),
            ("/a$b", "/a%24b", true),
            ("/a%24$", "/a$", true),
            ("/a%24$", "/a$b", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn specificity_counts_the_octets_of_the_normal_form() {
        let cases = [
            ("/", 1),
            ("/a", 2),
            ("a", 2),
            ("/*", 2),
            ("/**", 2),
            ("/$", 2),
            ("/%61", 2),
            ("/%2a", 4),
            ("/ü", 7),
        ];
        for (pattern, octets) in cases {
            assert_eq!(Pattern::new(pattern.as_bytes()).specificity(), octets, "{pattern}");
        }
    }

    /// Tens of thousands of steps for this matcher; for one that backtracks to its last wildcard
    /// thousands of millions, and for one that backtracks to all of them no end of it.
    #[test]
    fn hostile_wildcards_end() {
        let path = format!("/{}", "a".repeat(64 * 1024));
        for literal in ["*a", "*aab", "**a", "*"] {
            assert!(!matches(&format!("/{}b", literal.repeat(100_000)), &path), "{literal}");
        }
        assert!(matches(&format!("/{}", "*a".repeat(64 * 1024)), &path));
        assert!(!matches(&format!("/*{}b", "a".repeat(32 * 1024)), &path));
    }
}
