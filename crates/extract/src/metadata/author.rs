//! Finds the authors of the article.

use url::Url;

use super::date;
use super::json_ld::JsonLd;
use super::metas::Metas;
use super::title::{is_site_name, plain};
use crate::entities;
use crate::fold::one_line;
use crate::page::{Element, Node, NodeKind, Page, Tag};

/// Keys of `meta` elements, best first. `twitter:creator` is not among them: it is the name of an account.
const AUTHOR_KEYS: &str = "
    author article:author og:article:author parsely-author sailthru.author dc.creator
    dcterms.creator citation_author article_author byl";

/// Words in the class or ID of elements that contain names.
const BYLINE_WORDS: &str = "author authors byline writer contributor";

/// An element with one of these words, too, is about the author, or about other articles.
const OTHER_WORDS: &str = "
    about avatar bio box card comment date desc description image img links list related social
    role title";

/// Folders of pages about authors.
const AUTHOR_FOLDERS: &str = "
    author authors contributor contributors writer writers by producers journalist team";

/// Words before a name.
#[rustfmt::skip]
const LEADS: [&str; 13] = [
    "written by", "posted by", "post by", "published by", "text by", "words by", "story by",
    "by", "author", "authors", "von", "par", "por",
];

/// A longer text is not a name.
const MAX_NAME_CHARS: usize = 100;

/// The same for text that only its place suggests to be a name.
const MAX_LIKELY_NAME_CHARS: usize = 50;
const MAX_LIKELY_NAME_WORDS: usize = 5;

/// How much text after the headline may contain the line with the author.
const BYLINE_BYTES: usize = 1_500;

/// Texts in the elements that are examined.
const MAX_BYLINE_BYTES: usize = 200;

/// Words of names that are not capitalized.
const PARTICLES: &str = "al bin da das de del den der di dos du el la le van von";

/// Words that stand beside names, but are not part of one.
const NO_NAMES: &str = "
    about all article articles author authors blog by contact contributor contributors follow
    home more our posts profile read share view website writers written us";

/// Words after the last name.
const ENDS: &str = "at for from in last on posted published updated";

pub(super) struct Sources<'s, 'a> {
    pub(super) page: &'s Page<'a>,
    pub(super) metas: &'s Metas,
    pub(super) json_ld: &'s JsonLd<'a>,
    pub(super) url: &'s Url,
    pub(super) site_name: Option<&'s str>,
}

/// The names from the first source that has any. The name of the site is none.
pub(super) fn authors(sources: &Sources<'_, '_>) -> Vec<String> {
    let Sources { page, metas, json_ld, url, site_name } = sources;
    let is_site = |name: &str| is_site_name(name, *site_name, url);
    // Many people have a site under their name, so a name of several words may be part of the URL.
    let may_be_person = |name: &String| {
        let is_same = || site_name.is_some_and(|site| plain(site) == plain(name));
        if name.contains(' ') { !is_same() } else { !is_site(name) }
    };
    let persons = |names: Vec<String>| {
        let names = names.into_iter().map(|name| match name.rsplit_once(", ") {
            Some((person, site)) if is_site(site) => person.to_owned(),
            _ => name,
        });
        distinct(names.filter(may_be_person))
    };
    let in_metas = |key: &str| metas.all_of(key).filter_map(stated_name).collect();
    let in_elements = |fits: fn(&Element<'_>) -> bool, names: fn(&str) -> Vec<String>| {
        let found = page.elements().filter(move |(_, element)| fits(element));
        found.map(|(index, _)| names_in(page, index, names)).find_map(persons)
    };
    let people = json_ld.authors(true).into_iter().filter_map(|name| stated_name(&name));
    let others = || {
        let names = json_ld.authors(false).into_iter().filter_map(|name| stated_name(&name));
        persons(names.filter(|name| !is_site(name)).collect())
    };
    distinct(people)
        .or_else(others)
        .or_else(|| AUTHOR_KEYS.split_whitespace().map(in_metas).find_map(persons))
        .or_else(|| in_elements(is_stated_author, stated_names))
        .or_else(|| in_elements(is_byline, likely_names))
        .or_else(|| in_elements(is_link_to_author, likely_names))
        .or_else(|| near_headline(page).find_map(persons))
        .unwrap_or_default()
}

/// Whether a word is one of these, which are separated by white space.
fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known.eq_ignore_ascii_case(word))
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

/// A name that the page states as such. `None` for the URL of a profile, for the name of an account, and for anything
/// that is too long.
fn stated_name(value: &str) -> Option<String> {
    let value = one_line(value);
    let name = without_lead(&value).unwrap_or(&value).trim_matches(is_mark);
    let is_account = name.starts_with('@') || name.contains("://") || name.contains(".com/");
    let is_name = !name.is_empty() && !is_account && name.chars().count() <= MAX_NAME_CHARS;
    is_name.then(|| name.to_owned())
}

fn is_mark(c: char) -> bool {
    matches!(c, ' ' | ',' | '|' | '·' | ':' | '•' | '-' | '–' | '—' | '/')
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
    // Most elements mention none of these, and are decided fast.
    if !["uthor", "yline", "riter", "ontributor"].iter().any(|part| element.mentions(part)) {
        return false;
    }
    ["class", "id"].iter().any(|name| {
        element.attribute(name).is_some_and(|value| value.split_whitespace().any(is_byline_name))
    })
}

fn is_byline_name(name: &str) -> bool {
    let has = |words: &str| name_words(name).any(|word| is_one_of(words, &word));
    has(BYLINE_WORDS) && !has(OTHER_WORDS)
}

/// The words of a class name: `post-authorName` has three.
fn name_words(name: &str) -> impl Iterator<Item = String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase());
        if begins {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.into_iter()
}

/// Whether it is a link to the page of an author: `/authors/ada`.
fn is_link_to_author(element: &Element<'_>) -> bool {
    element.tag == Tag::A
        && element.attribute("href").is_some_and(|href| {
            let path = href.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let mut folders = path.rsplit('/');
            // The last part names the author; a link to the list of authors has no folder.
            let has_page = folders.next().is_some_and(|page| !page.is_empty());
            has_page && folders.take(2).any(|folder| is_one_of(AUTHOR_FOLDERS, folder))
        })
}

/// The names in an element: in the part of it that is marked as the name, else in its first line.
fn names_in(page: &Page<'_>, index: usize, names: fn(&str) -> Vec<String>) -> Vec<String> {
    let is_name = |element: &Element<'_>| {
        element.mentions("name") && element.attribute_has("itemprop", "name")
    };
    let nodes = page.subtree(index);
    let marked = page.nodes.get(nodes.clone()).unwrap_or_default().iter().take(MAX_BYLINE_BYTES);
    let marked = marked.enumerate().find_map(|(at, node)| match &node.kind {
        NodeKind::Element(element) if is_name(element) => Some(nodes.start + at),
        _ => None,
    });
    if let Some(content) = marked.and_then(|at| page.short_text(at, MAX_BYLINE_BYTES)) {
        let names: Vec<String> = stated_name(&content).into_iter().collect();
        if !names.is_empty() {
            return names;
        }
    }
    let Some(nodes) = page.nodes.get(nodes) else { return Vec::new() };
    let mut lines = Lines::of(nodes, MAX_BYLINE_BYTES);
    let Some(first) = lines.next() else { return Vec::new() };
    // `By` may be a line of its own.
    let is_lead = without_lead(&first).is_some_and(str::is_empty);
    let line = if is_lead { lines.next().unwrap_or_default() } else { first };
    names(&line)
}

/// The names in a line that the page states to be names. Users of forums write theirs in lower case.
fn stated_names(line: &str) -> Vec<String> {
    let likely = likely_names(line);
    if !likely.is_empty() {
        return likely;
    }
    let name = without_lead(line).unwrap_or(line).split([' ', '»']).next().unwrap_or_default();
    stated_name(name).into_iter().collect()
}

/// The lines near the headline that begin with `By`.
fn near_headline(page: &Page<'_>) -> impl Iterator<Item = Vec<String>> {
    let headline = page.elements().find(|(_, element)| element.tag == Tag::H1);
    let from = headline.map_or(0, |(index, _)| index);
    let nodes = page.nodes.get(from..).unwrap_or_default();
    let mut was_lead = false;
    Lines::of(nodes, BYLINE_BYTES).map(move |line| {
        let rest = without_lead(&line);
        let names = match rest {
            Some(rest) => likely_names(rest),
            None if was_lead => likely_names(&line),
            None => Vec::new(),
        };
        was_lead = rest.is_some_and(str::is_empty);
        names
    })
}

/// The lines of text among nodes, each on one line and not empty.
struct Lines<'p, 'a> {
    nodes: &'p [Node<'a>],
    left_bytes: usize,
}

impl<'p, 'a> Lines<'p, 'a> {
    fn of(nodes: &'p [Node<'a>], max_bytes: usize) -> Self {
        Lines { nodes, left_bytes: max_bytes }
    }
}

impl Iterator for Lines<'_, '_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.left_bytes > 0
            && let Some((node, rest)) = self.nodes.split_first()
        {
            let is_break = match &node.kind {
                NodeKind::Element(element) => element.tag.is_block() || element.tag == Tag::Br,
                NodeKind::Text(text) => {
                    self.left_bytes = self.left_bytes.saturating_sub(text.trim().len());
                    line.push_str(&entities::decode(text));
                    false
                }
            };
            if is_break && !line.trim().is_empty() {
                break;
            }
            self.nodes = rest;
        }
        let line = one_line(&line);
        (!line.is_empty()).then_some(line)
    }
}

/// The names at the start of a line that probably contains names. What follows them is a date or a title.
fn likely_names(line: &str) -> Vec<String> {
    let line = without_lead(line).unwrap_or(line);
    let ends = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit() || is_mark(c) || c == '(')
            || is_one_of(ENDS, word)
    };
    let words: Vec<&str> = line.split(' ').take_while(|word| !ends(word)).collect();
    // `Top 10`
    let next = line.split(' ').nth(words.len()).unwrap_or_default();
    if words.len() == 1 && next.starts_with(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    let line = words.join(" ");
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

fn is_likely_name(text: &str) -> bool {
    let is_month = |word: &str| date::is_month(word.trim_matches('.'));
    let is_capitalized = |word: &str| {
        let mut letters = word.chars().filter(|c| c.is_alphabetic());
        letters.next().is_some_and(|first| !first.is_lowercase())
    };
    let is_word = |word: &str| is_capitalized(word) || is_one_of(PARTICLES, word);
    let is_known = |word: &str| is_one_of(NO_NAMES, word);
    let words: Vec<&str> = text.split(' ').collect();
    words.len() <= MAX_LIKELY_NAME_WORDS
        && text.chars().count() <= MAX_LIKELY_NAME_CHARS
        && words.iter().all(|word| is_word(word) && !is_known(word) && !is_month(word))
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
            ("View all posts", vec![]),
            ("by the numbers", vec![]),
        ] {
            assert_eq!(likely_names(line), want, "{line}");
        }
    }
}
