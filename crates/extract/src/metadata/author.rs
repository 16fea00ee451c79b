//! Finds the authors of the article.

use super::date;
use super::json_ld::{JsonLd, MAX_AUTHORS};
use super::metas::Metas;
use super::site_name::is_site_name;
use super::sources::Sources;
use super::title::plain;
use crate::entities;
use crate::fold::one_line;
use crate::page::{Element, Node, NodeKind, Page, Tag};

/// Keys of `meta` elements, best first. `twitter:creator` is not among them: it is the name of an account.
const AUTHOR_KEYS: &str = "
    author article:author og:article:author parsely-author sailthru.author dc.creator
    dcterms.creator citation_author article_author byl";

/// Words in the class or ID of elements that contain names.
#[rustfmt::skip]
const BYLINE_WORDS: [&str; 5] = [
    "author", "authors", "byline", "writer", "contributor",
];

/// Elements whose names also contain one of these words describe the author or link to other articles.
#[rustfmt::skip]
const OTHER_WORDS: [&str; 17] = [
    "about", "avatar", "bio", "box", "card", "comment", "date", "desc", "description", "image",
    "img", "links", "list", "related", "social", "role", "title",
];

/// Folders of pages about authors.
#[rustfmt::skip]
const AUTHOR_FOLDERS: [&str; 8] = [
    "author", "authors", "contributor", "contributors", "writer", "writers", "journalist",
    "journalists",
];

/// Words before a name.
#[rustfmt::skip]
const LEADS: [&str; 13] = [
    "written by", "posted by", "post by", "published by", "text by", "words by", "story by",
    "by", "author", "authors", "von", "par", "por",
];

/// A longer text is not a name.
const MAX_NAME_CHARS: usize = 100;

/// Stricter limits for text that only its position suggests is a name.
const MAX_LIKELY_NAME_CHARS: usize = 50;
const MAX_LIKELY_NAME_WORDS: usize = 5;

/// How much of the page after the headline, and of an element, is searched for names: the number of nodes and of bytes
/// of text.
const HEADLINE_REACH: usize = 1_500;
const ELEMENT_REACH: usize = 200;

/// Further elements that may contain names are not examined.
const MAX_ELEMENTS: usize = 200;

/// The rest of a longer piece of text is not read.
const MAX_TEXT_BYTES: usize = 2_000;

/// A longer line is prose.
const MAX_BYLINE_CHARS: usize = 120;

/// Words of names that are not capitalized.
#[rustfmt::skip]
const PARTICLES: [&str; 16] = [
    "al", "bin", "da", "das", "de", "del", "den", "der", "di", "dos", "du", "el", "la", "le", "van",
    "von",
];

/// Words that appear next to names but are never part of one.
#[rustfmt::skip]
const NOT_NAMES: [&str; 31] = [
    "about", "all", "article", "articles", "author", "authors", "blog", "by", "contact",
    "contributor", "contributors", "follow", "home", "more", "our", "posts", "profile", "read",
    "share", "view", "website", "writers", "written", "us", "monday", "tuesday", "wednesday",
    "thursday", "friday", "saturday", "sunday",
];

/// Words that end a list of names.
#[rustfmt::skip]
const ENDS: [&str; 9] = [
    "at", "for", "from", "in", "last", "on", "posted", "published", "updated",
];

/// The names from the first source that has any. The site's name does not count, unless the linked data says that it is
/// a person and no source has another name.
pub(super) fn authors(sources: &Sources<'_, '_>) -> Vec<String> {
    let Sources { page, metas, json_ld, url, site_name, .. } = sources;
    let is_site = |name: &str| is_site_name(name, *site_name, url);
    let is_same_as_site = |name: &String| site_name.is_some_and(|site| plain(site) == plain(name));
    // Many people have a site under their name, so a name of several words may be part of the URL.
    let may_be_person = |name: &String| {
        if name.contains(' ') { !is_same_as_site(name) } else { !is_site(name) }
    };
    let persons = |names: Vec<String>| {
        let names = names.into_iter().map(|name| match name.rsplit_once(", ") {
            Some((person, site)) if is_site(site) => person.to_owned(),
            _ => name,
        });
        distinct(names.filter(may_be_person))
    };
    let in_metas =
        |key: &str| metas.all_of(key).take(MAX_AUTHORS).filter_map(stated_name).collect();
    let in_elements = |fits: fn(&Element<'_>) -> bool, names: fn(&str) -> Vec<String>| {
        let found = page.elements().filter(move |(_, element)| fits(element)).take(MAX_ELEMENTS);
        found.map(|(index, _)| names_in(page, index, names)).find_map(persons)
    };
    let people = || json_ld.authors(true).into_iter().filter_map(|name| stated_name(&name));
    let others = || {
        let names = json_ld.authors(false).into_iter().filter_map(|name| stated_name(&name));
        persons(names.filter(|name| !is_site(name)).collect())
    };
    distinct(people().filter(|name| !is_same_as_site(name)))
        .or_else(others)
        .or_else(|| AUTHOR_KEYS.split_whitespace().map(in_metas).find_map(persons))
        .or_else(|| in_elements(is_stated_author, stated_names))
        .or_else(|| in_elements(is_byline, likely_names))
        .or_else(|| in_elements(is_link_to_author, likely_names))
        .or_else(|| near_headline(page).find_map(persons))
        .or_else(|| distinct(people()))
        .unwrap_or_default()
}

/// The people whom the linked data or the `meta` elements name: what can be known of the authors without a search.
pub(crate) fn stated_authors(metas: &Metas, json_ld: &JsonLd<'_>) -> Vec<String> {
    let people = json_ld.authors(true).into_iter().filter_map(|name| stated_name(&name));
    let in_metas = || metas.all(AUTHOR_KEYS).take(MAX_AUTHORS).filter_map(stated_name);
    distinct(people).or_else(|| distinct(in_metas())).unwrap_or_default()
}

/// Whether a word is in the list, ignoring case.
fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The names, each once; `None` if there is none.
fn distinct(names: impl Iterator<Item = String>) -> Option<Vec<String>> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    (!kept.is_empty()).then_some(kept)
}

/// A name that the page marks as such, without account names in parentheses (`Ada Keeper (@ada)`). `None` for a profile
/// URL, an account name, and a text that is empty or too long.
pub(crate) fn stated_name(value: &str) -> Option<String> {
    let value = one_line(value);
    let value = without_accounts(&value);
    let name = without_lead(&value).unwrap_or(&value).trim_matches(is_mark);
    let is_name = !name.is_empty() && !is_account(name) && name.chars().count() <= MAX_NAME_CHARS;
    is_name.then(|| name.to_owned())
}

/// The text without the accounts in parentheses.
fn without_accounts(text: &str) -> String {
    let mut names = String::new();
    let mut rest = text;
    while let Some((name, account)) = rest.split_once("(@") {
        names.push_str(name.trim_end());
        rest = account.split_once(')').map_or("", |(_, after)| after);
    }
    names + rest
}

/// Whether the text contains an account name, an email address or a URL, even one without `https://` (`t.me/ada`).
fn is_account(text: &str) -> bool {
    // A capital after the dot begins a name: `J.Smith/AFP`.
    let is_top_level =
        |end: &str| end.len() >= 2 && end.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_host = |host: &str| host.rsplit_once('.').is_some_and(|(_, end)| is_top_level(end));
    let is_address = |word: &str| word.split_once('/').is_some_and(|(host, _)| is_host(host));
    text.contains('@') || text.contains("://") || text.split(' ').any(is_address)
}

fn is_mark(c: char) -> bool {
    matches!(c, ' ' | ',' | '|' | '·' | ':' | '•' | '-' | '–' | '—' | '/' | '»')
}

/// What follows `By` or another such word; `None` if the text does not begin with one.
fn without_lead(text: &str) -> Option<&str> {
    LEADS.iter().find_map(|lead| {
        let begins = text.get(..lead.len())?.eq_ignore_ascii_case(lead);
        let rest = text.get(lead.len()..).filter(|_| begins)?;
        (rest.is_empty() || rest.starts_with([' ', ':'])).then(|| rest.trim_matches(is_mark))
    })
}

fn is_stated_author(element: &Element<'_>) -> bool {
    element.mentions("author")
        && (element.attribute_has("rel", "author") || element.attribute_has("itemprop", "author"))
}

/// Whether the class or ID of an element says that it contains the names.
fn is_byline(element: &Element<'_>) -> bool {
    // A cheap check that rules out most elements.
    if !["uthor", "yline", "riter", "ontributor"].iter().any(|part| element.mentions(part)) {
        return false;
    }
    ["class", "id"].iter().any(|name| {
        element.attribute(name).is_some_and(|value| value.split_whitespace().any(is_byline_name))
    })
}

fn is_byline_name(name: &str) -> bool {
    let has = |words: &[&str]| name_words(name).any(|word| is_one_of(words, word));
    has(&BYLINE_WORDS) && !has(&OTHER_WORDS)
}

/// The words of a class name: `post-authorName` has three.
fn name_words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|mut rest| {
        std::iter::from_fn(move || {
            let is_seam = |pair: &[u8]| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']);
            let seam = rest.as_bytes().windows(2).position(is_seam);
            let (word, after) = rest.split_at_checked(seam.map_or(rest.len(), |at| at + 1))?;
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// Whether it is a link to the page of an author: `/authors/ada`.
fn is_link_to_author(element: &Element<'_>) -> bool {
    element.tag == Tag::A
        && element.attribute("href").is_some_and(|href| {
            let path = href.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let mut folders = path.rsplit('/');
            // The last part names the author; a link to the list of authors has no folder.
            let has_page = folders.next().is_some_and(|page| !page.is_empty());
            has_page && folders.take(2).any(|folder| is_one_of(&AUTHOR_FOLDERS, folder))
        })
}

/// The names in an element: in the part of it that is marked as the name, else in its first line.
fn names_in(page: &Page<'_>, index: usize, names: fn(&str) -> Vec<String>) -> Vec<String> {
    let is_name = |element: &Element<'_>| {
        element.mentions("name") && element.attribute_has("itemprop", "name")
    };
    let nodes = page.subtree(index);
    let marked = page.nodes.get(nodes.clone()).unwrap_or_default().iter().take(ELEMENT_REACH);
    let marked = marked.enumerate().find_map(|(at, node)| match &node.kind {
        NodeKind::Element(element) if is_name(element) => Some(nodes.start + at),
        _ => None,
    });
    if let Some(content) = marked.and_then(|at| page.short_text(at, ELEMENT_REACH)) {
        let names: Vec<String> = stated_name(&content).into_iter().collect();
        if !names.is_empty() {
            return names;
        }
    }
    let Some(nodes) = page.nodes.get(nodes) else { return Vec::new() };
    let mut lines = Lines::of(nodes, ELEMENT_REACH);
    let Some(first) = lines.next() else { return Vec::new() };
    // `By` may be a line of its own.
    let is_lead = without_lead(&first).is_some_and(str::is_empty);
    let line = if is_lead { lines.next().unwrap_or_default() } else { first };
    names(&line)
}

/// The names in a line that the page states to be names. Forum user names are often lower case.
fn stated_names(line: &str) -> Vec<String> {
    let likely = likely_names(line);
    if !likely.is_empty() {
        return likely;
    }
    match words_before_end(without_lead(line).unwrap_or(line)).as_slice() {
        [user] if !is_one_of(&NOT_NAMES, user) => stated_name(user).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The names in the lines after the headline that begin with `By`. One word is not enough: `By Monday`.
fn near_headline(page: &Page<'_>) -> impl Iterator<Item = Vec<String>> {
    let headline = page.elements().find(|(_, element)| element.tag == Tag::H1);
    let from = headline.map_or(0, |(index, _)| page.subtree(index).end);
    let nodes = page.nodes.get(from..).unwrap_or_default();
    let mut was_lead = false;
    Lines::of(nodes, HEADLINE_REACH).map(move |line| {
        let rest = without_lead(&line);
        let mut names = match rest {
            _ if line.chars().count() > MAX_BYLINE_CHARS => Vec::new(),
            Some(rest) => names_at_start(rest),
            None if was_lead => names_at_start(&line),
            None => Vec::new(),
        };
        was_lead = rest.is_some_and(str::is_empty);
        names.retain(|name| name.contains(' '));
        names
    })
}

/// The non-empty lines of text in a range of nodes, with white space folded.
struct Lines<'p, 'a> {
    nodes: &'p [Node<'a>],
    left_bytes: usize,
}

impl<'p, 'a> Lines<'p, 'a> {
    /// Reads at most `reach` nodes, and text until it has that many bytes.
    fn of(nodes: &'p [Node<'a>], reach: usize) -> Self {
        Lines { nodes: nodes.get(..reach).unwrap_or(nodes), left_bytes: reach }
    }

    fn add(&mut self, text: &str, line: &mut String) {
        let words = text.trim();
        let words = words.get(..words.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default();
        self.left_bytes = self.left_bytes.saturating_sub(words.len());
        if text.starts_with(char::is_whitespace) {
            line.push(' ');
        }
        line.push_str(&entities::decode(words));
        if text.ends_with(char::is_whitespace) {
            line.push(' ');
        }
    }
}

impl Iterator for Lines<'_, '_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.left_bytes > 0
            && let Some((node, rest)) = self.nodes.split_first()
        {
            self.nodes = rest;
            match &node.kind {
                NodeKind::Text(text) => self.add(text, &mut line),
                NodeKind::Element(element) if element.tag.is_block() || element.tag == Tag::Br => {
                    let whole = one_line(&std::mem::take(&mut line));
                    if !whole.is_empty() {
                        return Some(whole);
                    }
                }
                // Often there is no other space between `By` and the name.
                NodeKind::Element(element) if element.tag == Tag::Span => line.push(' '),
                NodeKind::Element(_) => {}
            }
        }
        let line = one_line(&line);
        (!line.is_empty()).then_some(line)
    }
}

/// The names at the start of a line that probably contains names, with or without a lead.
fn likely_names(line: &str) -> Vec<String> {
    names_at_start(without_lead(line).unwrap_or(line))
}

/// The words before a date, a mark or a word such as `on`.
fn words_before_end(line: &str) -> Vec<&str> {
    let begins_with_digit = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut kept = Vec::new();
    let mut words = line.split(' ').peekable();
    while let Some(word) = words.next() {
        let is_date = is_month(word) && words.peek().is_some_and(|next| begins_with_digit(next));
        if is_date || is_one_of(&ENDS, word) || word.starts_with(|c: char| is_mark(c) || c == '(') {
            break;
        }
        if begins_with_digit(word) {
            // A single word before a number (`Top 10`) is not a name.
            kept.truncate(if kept.len() == 1 { 0 } else { kept.len() });
            break;
        }
        kept.push(word);
    }
    kept
}

/// What follows the names is a date or a title.
fn names_at_start(line: &str) -> Vec<String> {
    let line = words_before_end(line).join(" ");
    let mut names: Vec<String> = Vec::new();
    for part in line.replace(" and ", ", ").replace(" & ", ", ").split([',', '|', '•', '·']) {
        let part = part.trim_matches(is_mark);
        if part.is_empty() {
            continue;
        }
        if is_degree(part)
            && let Some(name) = names.last_mut()
        {
            name.push_str(", ");
            name.push_str(part);
        } else if is_likely_name(part) {
            names.push(part.to_owned());
        } else {
            break;
        }
    }
    names
}

/// `MD`, `PhD`.
fn is_degree(part: &str) -> bool {
    let capitals = part.chars().filter(char::is_ascii_uppercase).count();
    part.len() <= 6 && capitals >= 2 && part.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
}

fn is_month(word: &str) -> bool {
    date::is_month(word.trim_matches('.'))
}

fn is_likely_name(text: &str) -> bool {
    let is_capitalized = |word: &str| {
        let mut letters = word.chars().filter(|c| c.is_alphabetic());
        letters.next().is_some_and(|first| !first.is_lowercase())
    };
    let is_word = |word: &str| is_capitalized(word) || is_one_of(&PARTICLES, word);
    let words: Vec<&str> = text.split(' ').collect();
    words.len() <= MAX_LIKELY_NAME_WORDS
        && text.chars().count() <= MAX_LIKELY_NAME_CHARS
        && !is_month(text)
        && !is_account(text)
        && words.iter().all(|word| is_word(word) && !is_one_of(&NOT_NAMES, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_what_is_none() {
        for (value, want) in [
            ("By Ada Keeper", Some("Ada Keeper")),
            ("Author: Ada Keeper", Some("Ada Keeper")),
            (" @ada ", None),
            ("Ada Keeper (@ada)", Some("Ada Keeper")),
            ("Ada Keeper (@ada), Bob Miller (@bob)", Some("Ada Keeper, Bob Miller")),
            ("Ada Keeper (@ada) and Bob Miller (@bob", Some("Ada Keeper and Bob Miller")),
            ("(@ada)", None),
            ("Ada Keeper @ada", None),
            ("ada@site.test", None),
            ("t.me/ada", None),
            ("mastodon.social/@ada", None),
            ("www.social.test/ada", None),
            ("Ada K./The Hive", Some("Ada K./The Hive")),
            ("AC/DC", Some("AC/DC")),
            ("J.Smith/AFP", Some("J.Smith/AFP")),
            ("St.John/Reuters", Some("St.John/Reuters")),
            ("Bypass Editors", Some("Bypass Editors")),
            ("https://a.test/ada", None),
            ("", None),
        ] {
            assert_eq!(stated_name(value).as_deref(), want, "{value}");
        }
        assert_eq!(stated_name(&"x".repeat(200)), None);
    }

    #[test]
    fn bylines_are_reduced_to_their_names() {
        for (line, want) in [
            ("By Ada Keeper • March 12, 2025", vec!["Ada Keeper"]),
            ("Posted by Ada at December 16, 2025", vec!["Ada"]),
            ("Ada Keeper | Senior Writer", vec!["Ada Keeper"]),
            ("Ada Keeper, MD, and Ben van der Hive", vec!["Ada Keeper, MD", "Ben van der Hive"]),
            ("By Jan Novak", vec!["Jan Novak"]),
            ("Ada Keeper Nov. 15, 2023", vec!["Ada Keeper"]),
            ("November 15, 2023", vec![]),
            ("Wednesday, November 15", vec![]),
            ("Top 10 Hives", vec![]),
            ("View all posts", vec![]),
            ("by the numbers", vec![]),
            ("By @Ada", vec![]),
            ("Ada Keeper (@ada)", vec!["Ada Keeper"]),
        ] {
            assert_eq!(likely_names(line), want, "{line}");
        }
    }

    #[test]
    fn stated_names_may_be_lower_case() {
        for (line, want) in [
            ("by ada_k » Wed Nov 15", vec!["ada_k"]),
            ("ada", vec!["ada"]),
            ("View all posts by Ada", vec![]),
            ("the editors", vec![]),
            ("more", vec![]),
        ] {
            assert_eq!(stated_names(line), want, "{line}");
        }
    }

    #[test]
    fn class_names_have_words() {
        let words = |name| name_words(name).collect::<Vec<_>>();
        assert_eq!(words("post-authorName"), ["post", "author", "Name"]);
        assert_eq!(words("block_byline__x1"), ["block", "byline", "x1"]);
        assert_eq!(words("é--"), Vec::<&str>::new());
    }
}
