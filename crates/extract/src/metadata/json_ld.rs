//! The page's description of itself as linked data (schema.org in JSON-LD).
//!
//! The scanner is tolerant, because pages have JSON with line breaks in strings, with comments, or truncated. It only
//! recognizes objects, keys and values.

use std::borrow::Cow;

use crate::entities;
use crate::json_strings::{string_end, unescaped};

/// Further facts are not read: no page has that many about one article.
const MAX_FACTS: usize = 5_000;

/// Deeper objects are not told apart.
const MAX_DEPTH: usize = 32;

/// The objects of a page and their facts.
#[derive(Default)]
pub(crate) struct JsonLd<'a> {
    objects: Vec<Object<'a>>,
    facts: Vec<Fact<'a>>,
}

struct Object<'a> {
    parent: Option<usize>,
    /// Its key in the parent.
    key: &'a str,
    is_article: bool,
}

struct Fact<'a> {
    object: usize,
    key: &'a str,
    /// As in the source, with escapes.
    value: &'a str,
}

impl<'a> JsonLd<'a> {
    pub(crate) fn read(scripts: &[&'a str]) -> Self {
        let mut found = JsonLd::default();
        for script in scripts {
            Scanner { source: script, found: &mut found }.scan();
        }
        found
    }

    /// Whether one of the objects is an article.
    pub(crate) fn has_article(&self) -> bool {
        self.objects.iter().any(|object| object.is_article)
    }

    /// The values under a key: those of articles first, then of all others.
    pub(crate) fn values(&self, key: &str) -> impl Iterator<Item = Cow<'a, str>> {
        let of = move |wants_article: bool| {
            self.facts.iter().filter(move |fact| {
                fact.key == key && self.is_article(Some(fact.object)) == wants_article
            })
        };
        of(true).chain(of(false)).map(|fact| plain(fact.value))
    }

    /// The values under a key in objects that are under another key of an article: `author`, `name`.
    pub(crate) fn values_in(&self, outer: &str, key: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.facts.iter().filter(move |fact| fact.key == key).filter_map(move |fact| {
            let object = self.objects.get(fact.object)?;
            (object.key == outer && self.is_article(object.parent)).then(|| plain(fact.value))
        })
    }

    fn is_article(&self, object: Option<usize>) -> bool {
        object.and_then(|index| self.objects.get(index)).is_some_and(|object| object.is_article)
    }
}

struct Scanner<'s, 'a> {
    source: &'a str,
    found: &'s mut JsonLd<'a>,
}

impl<'a> Scanner<'_, 'a> {
    /// Arrays are transparent: their members count as under the array's key.
    fn scan(&mut self) {
        let bytes = self.source.as_bytes();
        let mut open: Vec<usize> = Vec::new();
        let mut key = "";
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' if open.len() < MAX_DEPTH && self.found.objects.len() < MAX_FACTS => {
                    let parent = open.last().copied();
                    open.push(self.found.objects.len());
                    self.found.objects.push(Object { parent, key, is_article: false });
                }
                b'}' => {
                    // What follows in an array is under the array's key again.
                    let closed = open.pop().and_then(|closed| self.found.objects.get(closed));
                    key = closed.map_or("", |object| object.key);
                }
                b'"' => {
                    let end = string_end(bytes, at);
                    let text = self.source.get(at..end).unwrap_or_default();
                    at = end + 1;
                    let next = bytes.get(at..).unwrap_or_default().trim_ascii_start();
                    if next.first() == Some(&b':') {
                        key = text;
                    } else if let Some(object) = open.last() {
                        self.add(*object, key, text);
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, object: usize, key: &'a str, value: &'a str) {
        if self.found.facts.len() >= MAX_FACTS {
            return;
        }
        if key == "@type"
            && let Some(object) = self.found.objects.get_mut(object)
        {
            object.is_article |= is_article_type(value);
        }
        self.found.facts.push(Fact { object, key, value });
    }
}

fn is_article_type(value: &str) -> bool {
    ["Article", "BlogPosting", "Report"].iter().any(|end| value.ends_with(end))
}

/// The string without JSON escapes, and without the character references that some pages add.
fn plain(raw: &str) -> Cow<'_, str> {
    if !raw.contains(['\\', '&']) {
        return Cow::Borrowed(raw);
    }
    let text = unescaped(raw);
    Cow::Owned(entities::decode(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(script: &str, key: &str) -> Option<String> {
        JsonLd::read(&[script]).values(key).next().map(Cow::into_owned)
    }

    #[test]
    fn articles_come_first() {
        let script = r#"{"@graph": [{"@type": "WebPage", "name": "page"},
            {"name": "story", "@type": ["Thing", "NewsArticle"], "author": [{"name": "Ada"}]}]}"#;
        let found = JsonLd::read(&[script]);
        assert!(found.has_article());
        assert_eq!(found.values("name").collect::<Vec<_>>(), ["story", "page", "Ada"]);
        assert_eq!(found.values_in("author", "name").collect::<Vec<_>>(), ["Ada"]);
    }

    #[test]
    fn escapes_are_read() {
        for (raw, want) in [
            (r#"a\/b \"c\""#, "a/b \"c\""),
            (r"\u00e9\uD83D\uDC1D!", "é🐝!"),
            (r"\u12", "12"),
            (r"\uD83D\n", "\u{FFFD}\n"),
            ("a &amp; b", "a & b"),
        ] {
            let script = format!("{{\"k\": \"{raw}\"}}");
            assert_eq!(first(&script, "k").as_deref(), Some(want));
        }
    }

    #[test]
    fn what_is_broken_is_read_as_far_as_it_goes() {
        assert_eq!(first("// x\n{\"k\": \"a\nb\", \"l\"", "k").as_deref(), Some("a\nb"));
        assert_eq!(first("{\"k\": \"open", "k").as_deref(), Some("open"));
        assert_eq!(first("}]{{{\"k\" \"", "k"), None);
        JsonLd::read(&[&"{\"a\":".repeat(100_000)]);
    }
}
