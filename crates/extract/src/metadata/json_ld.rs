//! The page's description of itself as linked data (schema.org in JSON-LD).
//!
//! The scanner is tolerant, because pages have JSON with line breaks in strings, with comments, or truncated. It only
//! recognizes objects, keys and values.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::entities;
use crate::json_strings::{string_end, unescaped};

/// Further facts are not read: no page has that many about one article.
const MAX_FACTS: usize = 5_000;

/// Further articles on a page, and further authors of one, are not examined.
const MAX_WORKS: usize = 20;
pub(super) const MAX_AUTHORS: usize = 100;

/// Deeper objects are not told apart.
const MAX_DEPTH: usize = 32;

/// The kind of a page, as it states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatedKind {
    Article,
    Product,
    /// A list of articles, products or the like.
    List,
}

/// The objects of a page and their facts.
#[derive(Default)]
pub(crate) struct JsonLd<'a> {
    objects: Vec<Object<'a>>,
    facts: Vec<Fact<'a>>,
    /// The first name for each ID.
    names: HashMap<&'a str, &'a str>,
}

#[derive(Default)]
struct Object<'a> {
    parent: Option<usize>,
    /// Its key in the parent.
    key: &'a str,
    is_article: bool,
    /// Whether it is a question or a post in a forum.
    is_post: bool,
    is_person: bool,
    is_product: bool,
    is_list: bool,
    id: Option<&'a str>,
    /// As in the source, with escapes.
    name: Option<&'a str>,
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
        for object in &found.objects {
            if let Some((id, name)) = object.id.zip(object.name) {
                found.names.entry(id).or_insert(name);
            }
        }
        found
    }

    /// The kind of page that the objects describe.
    pub(crate) fn stated_kind(&self) -> Option<StatedKind> {
        let has = |wanted: fn(&Object<'_>) -> bool| self.objects.iter().any(wanted);
        if has(|object| object.is_article) {
            Some(StatedKind::Article)
        } else if has(|object| object.is_list) {
            Some(StatedKind::List)
        } else if has(|object| object.is_product) {
            Some(StatedKind::Product)
        } else {
            None
        }
    }

    /// The values under a key: those of articles first, then of posts, then of all others. A post may be about a
    /// product or a game that has a date of its own.
    pub(crate) fn values(&self, key: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.values_where(key, |object| object.is_article)
            .chain(self.values_where(key, |object| object.is_post && !object.is_article))
            .chain(self.values_where(key, |object| !object.is_post && !object.is_article))
    }

    /// The values under a key of an article.
    pub(crate) fn values_of_article(&self, key: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.values_where(key, |object| object.is_article)
    }

    fn values_where(
        &self,
        key: &str,
        fits: fn(&Object<'_>) -> bool,
    ) -> impl Iterator<Item = Cow<'a, str>> {
        let facts = self.facts.iter().filter(move |fact| fact.key == key);
        let wanted = facts.filter(move |fact| self.objects.get(fact.object).is_some_and(fits));
        wanted.map(|fact| plain(fact.value))
    }

    /// The values under a key in objects that are under another key of an article: `publisher`, `name`.
    pub(crate) fn values_in(&self, outer: &str, key: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.facts.iter().filter(move |fact| fact.key == key).filter_map(move |fact| {
            let object = self.objects.get(fact.object)?;
            (object.key == outer && self.is_article(object.parent)).then(|| plain(fact.value))
        })
    }

    /// The names of the authors of the first article that has any, else of the first post, else of the first other work
    /// that the page is about: those that are said to be people, or all.
    pub(crate) fn authors(&self, people_only: bool) -> Vec<Cow<'a, str>> {
        let of = |wanted: fn(&Object<'_>) -> bool| {
            let works = self.objects.iter().enumerate().filter(move |(_, object)| wanted(object));
            works
                .take(MAX_WORKS)
                .map(|(work, _)| self.authors_of(work, people_only))
                .find(|names| !names.is_empty())
        };
        of(|work| work.is_article)
            .or_else(|| of(|work| work.is_post))
            .or_else(|| of(|work| matches!(work.key, "" | "@graph")))
            .unwrap_or_default()
    }

    fn authors_of(&self, work: usize, people_only: bool) -> Vec<Cow<'a, str>> {
        let is_own = |fact: &&Fact<'_>| fact.object == work && fact.key == "author";
        let mut names = Vec::new();
        if !people_only {
            let own = self.facts.iter().filter(is_own).take(MAX_AUTHORS);
            names.extend(own.map(|fact| plain(fact.value)));
        }
        let is_author = |object: &&Object<'_>| {
            object.key == "author"
                && object.parent == Some(work)
                && (object.is_person || !people_only)
        };
        let authors = self.objects.iter().filter(is_author).take(MAX_AUTHORS);
        names.extend(authors.filter_map(|author| self.name_of(author)).map(plain));
        names
    }

    /// The name of an object, or of the first other one with the same ID.
    fn name_of(&self, object: &Object<'a>) -> Option<&'a str> {
        object.name.or_else(|| self.names.get(object.id?).copied())
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
                    self.found.objects.push(Object { parent, key, ..Object::default() });
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
        if let Some(object) = self.found.objects.get_mut(object) {
            match key {
                "@type" => object.add_type(value),
                "@id" => object.id = object.id.or(Some(value)),
                "name" => object.name = object.name.or(Some(value)),
                _ => {}
            }
        }
        self.found.facts.push(Fact { object, key, value });
    }
}

impl Object<'_> {
    /// A type may be written as a URL: `https://schema.org/Person`.
    fn add_type(&mut self, value: &str) {
        let is_one_of = |ends: &[&str]| ends.iter().any(|end| value.ends_with(end));
        self.is_article |= is_one_of(&["Article", "BlogPosting", "Report"]);
        self.is_post |= is_one_of(&["Question", "DiscussionForumPosting"]);
        self.is_person |= is_one_of(&["Person"]);
        self.is_product |= is_one_of(&["Product", "ProductGroup"]);
        self.is_list |= is_one_of(&["ItemList", "CollectionPage"]);
    }
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
        assert_eq!(found.stated_kind(), Some(StatedKind::Article));
        assert_eq!(found.values("name").collect::<Vec<_>>(), ["story", "page", "Ada"]);
        assert_eq!(found.values_in("author", "name").collect::<Vec<_>>(), ["Ada"]);
        assert_eq!(found.authors(false), ["Ada"]);
    }

    #[test]
    fn a_post_comes_before_what_it_is_about() {
        let script = r#"[{"@type": "VideoGame", "datePublished": "2017-03-03"},
            {"@type": "DiscussionForumPosting", "datePublished": "2024-02-21"}]"#;
        assert_eq!(first(script, "datePublished").as_deref(), Some("2024-02-21"));
    }

    #[test]
    fn escapes_are_read() {
        for (raw, want) in [
            (r#"a\/b \"c\""#, "a/b \"c\""),
            (r"\u00e9\uD83D\uDC1D!", "é🐝!"),
            (r"\u12", "12"),
            (r"\uD83D\n", "\u{FFFD}\n"),
            (r"a\u0000b", "a\u{FFFD}b"),
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
