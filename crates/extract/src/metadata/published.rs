//! Finds the publication date of the article, from the best of many sources.

use jiff::fmt::temporal::Pieces;
use url::Url;

use super::date::{self, Order};
use super::frame::without_frame;
use super::sources::Sources;
use super::title::plain;
use crate::fold::one_line;
use crate::page::{Element, Node, NodeKind, Page, Tag};

/// Keys of `meta` elements, best first.
const PUBLISHED_KEYS: &str = "
    article:published_time og:article:published_time datepublished og:published_time
    parsely-pub-date sailthru.date pubdate publishdate publish-date publish_date publication_date
    citation_publication_date citation_online_date article.published published-date published_time
    dc.date.issued dcterms.created dcterms.issued dc.date.created dcterms.date dc.date date
    datecreated og:pubdate";

/// A longer `time` element is not a date.
const MAX_TIME_BYTES: usize = 500;

/// Words right before a date that is not that of the publication: of an update, of a member of a forum, of the last
/// reply.
const OTHER_LABELS: [&str; 15] = [
    "updat",
    "modif",
    "reviewed",
    "edited",
    "revis",
    "last post",
    "last reply",
    "last activity",
    "joined",
    "registered",
    "member since",
    "founded",
    "aktualisiert",
    "mis à jour",
    "actualizado",
];

/// How far before the date such a word may be.
const MAX_LABEL_BYTES: usize = 30;

/// A longer heading is not compared with the title, and further headings are not, either.
const MAX_HEADING_BYTES: usize = 500;
const MAX_HEADINGS: usize = 200;

/// How much text may be between the headline and a date beside it.
const BESIDE_HEADLINE_BYTES: usize = 400;

/// How much text after the headline may contain the date line.
const DATE_LINE_BYTES: usize = 1_500;

/// The same for the line above the headline. Further up is usually today's date.
const OVERLINE_BYTES: usize = 100;

/// A longer piece of text is prose, and a date in it is that of an event.
const MAX_DATE_LINE_CHARS: usize = 120;

/// RFC 3339 if the page states the time and its zone, else `YYYY-MM-DD`.
pub(super) fn published(sources: &Sources<'_, '_>) -> Option<String> {
    let order = match sources.lang {
        Some(lang) if lang.starts_with("en") && !lang.eq_ignore_ascii_case("en-gb") => {
            Order::MonthFirst
        }
        None => Order::MonthFirst,
        Some(_) => Order::DayFirst,
    };
    let stated = |value: &str| stated(value, order);
    let Sources { page, metas, json_ld, url, title, .. } = sources;
    let in_address = in_address(url);
    let headline = headline(page, title);
    let shown = ShownDates::near(page, headline, order);
    let is_in_address = |stated: &str| in_address.as_deref() == stated.get(..10);
    json_ld
        .values("datePublished")
        .find_map(|value| stated(&value))
        .or_else(|| metas.all(PUBLISHED_KEYS).find_map(stated))
        // Around midnight, the dates of the site and of its visitors differ: the site's date in the URL counts.
        .map(|stated| {
            in_address.clone().filter(|date| is_next_day(&stated, date)).unwrap_or(stated)
        })
        // Some sites state the day of their last edit or move as that of the publication. They show the original one.
        .map(|stated| match &shown.beside_headline {
            Some(date) if *date < stated && !is_in_address(&stated) => {
                if stated.starts_with(date) {
                    stated
                } else {
                    date.clone()
                }
            }
            _ => stated,
        })
        .or_else(|| in_elements(page, headline, order))
        .or(in_address)
        .or(shown.original)
        .or(shown.other)
        .or_else(|| first_time(page, order))
        .or_else(|| json_ld.values("dateCreated").find_map(|value| stated(&value)))
        .or_else(|| json_ld.values("uploadDate").find_map(|value| stated(&value)))
        .or_else(|| json_ld.values("dateModified").find_map(|value| stated(&value)))
        .or_else(|| metas.matching(|key| key.ends_with(".date")).find_map(stated))
        .or_else(|| {
            metas
                .matching(|key| key.contains("modified") || key.contains("updated"))
                .find_map(stated)
        })
}

fn stated(value: &str, order: Order) -> Option<String> {
    let value = one_line(value);
    let date = date::find(&value, order)?;
    Some(moment(&value).filter(|moment| moment.starts_with(&date)).unwrap_or(date))
}

/// RFC 3339, with the offset that the page states. Pages also write `+0200`, a space instead of the `T`, or no seconds.
fn moment(value: &str) -> Option<String> {
    let pieces = Pieces::parse(value).ok()?;
    let time = pieces.date().to_datetime(pieces.time()?);
    let minutes = pieces.to_numeric_offset()?.seconds() / 60;
    if minutes.abs() >= 24 * 60 {
        return None;
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.abs();
    Some(if minutes == 0 {
        format!("{time}Z")
    } else {
        format!("{time}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    })
}

/// Whether two dates are one day apart, within a month.
fn is_next_day(one: &str, other: &str) -> bool {
    let day = |date: &str| date.get(8..10)?.parse::<u32>().ok();
    let is_month_same = one.get(..8) == other.get(..8);
    is_month_same && day(one).zip(day(other)).is_some_and(|(one, other)| one.abs_diff(other) == 1)
}

/// Dates in elements whose attributes say that they contain the date. A `time` element before the headline is often the
/// current time.
fn in_elements(page: &Page<'_>, headline: usize, order: Order) -> Option<String> {
    let mut first_time = None;
    for (index, element) in page.elements() {
        let is_time = element.tag == Tag::Time;
        // All names that are looked for contain this word; most elements do not.
        if !is_time && !element.mentions("date") {
            continue;
        }
        let has_property = |name| element.mentions(name) && element.attribute_has("itemprop", name);
        let is_stated = has_property("datePublished")
            || has_property("dateCreated")
            || (is_time && element.attribute("pubdate").is_some());
        if (!is_time && !is_stated) || has_property("dateModified") {
            continue;
        }
        let value = element_date(page, index, element, order);
        if is_stated && value.is_some() {
            return value;
        }
        if index >= headline {
            first_time = first_time.or(value);
        }
    }
    first_time
}

/// The date of the first `time` element that has one.
fn first_time(page: &Page<'_>, order: Order) -> Option<String> {
    let is_time = |element: &Element<'_>| {
        element.tag == Tag::Time && !element.attribute_has("itemprop", "dateModified")
    };
    let mut times = page.elements().filter(|(_, element)| is_time(element));
    times.find_map(|(index, element)| element_date(page, index, element, order))
}

fn element_date(
    page: &Page<'_>,
    index: usize,
    element: &Element<'_>,
    order: Order,
) -> Option<String> {
    ["datetime", "content"]
        .iter()
        .find_map(|name| stated(&element.attribute(name)?, order))
        .or_else(|| date::find(&page.short_text(index, MAX_TIME_BYTES)?, order))
}

/// `/2024/05/17/` in the page's URL, unless it is that of a file. A web archive puts the time of the capture before the
/// URL of the page.
fn in_address(url: &Url) -> Option<String> {
    let path = url.path();
    if url.scheme() == "file" {
        return None;
    }
    let inner = ["/http://", "/https://", "/http:/", "/https:/"]
        .iter()
        .find_map(|start| Some(path.split_once(start)?.1));
    date::find(inner.unwrap_or(path), Order::DayFirst)
}

/// The heading that is the page's title, else the first `h1`; 0 if there is neither. Forums have their name in the
/// `h1`.
fn headline(page: &Page<'_>, title: &str) -> usize {
    let wanted = plain(title);
    let headings = |tags: &'static [Tag]| {
        let found = page.elements().filter(|(_, element)| tags.contains(&element.tag));
        found.map(|(index, _)| index).take(MAX_HEADINGS)
    };
    let is_title = |index: &usize| {
        let text = page.short_text(*index, MAX_HEADING_BYTES);
        text.is_some_and(|text| {
            plain(&text) == wanted || plain(without_frame(&one_line(&text))) == wanted
        })
    };
    headings(&[Tag::H1])
        .find(is_title)
        .or_else(|| headings(&[Tag::H2, Tag::H3]).find(is_title))
        .or_else(|| headings(&[Tag::H1]).next())
        .unwrap_or(0)
}

/// The dates that a page shows in lines near its headline.
#[derive(Default)]
struct ShownDates {
    /// The first one right below the headline that is not said to be another date.
    beside_headline: Option<String>,
    /// The first one that is not said to be another date.
    original: Option<String>,
    /// The first of all others right below the headline.
    other: Option<String>,
}

impl ShownDates {
    /// Those below the headline; if there are none, those above it.
    fn near(page: &Page<'_>, headline: usize, order: Order) -> Self {
        let below = page.nodes.get(headline..).unwrap_or_default();
        let mut found = ShownDates::default();
        found.read(below, order);
        if found.original.is_none() && found.other.is_none() {
            let mut bytes = 0;
            let before = page.nodes.get(..headline).unwrap_or_default();
            let over = before.iter().rev().take_while(|node| {
                bytes += node_text(node).trim().len();
                bytes <= OVERLINE_BYTES
            });
            let overline = headline - over.count();
            found.read(page.nodes.get(overline..headline).unwrap_or_default(), order);
            found.beside_headline = None;
        }
        found
    }

    fn read(&mut self, nodes: &[Node<'_>], order: Order) {
        let mut bytes = 0;
        let mut line = String::new();
        let mut before = String::new();
        for node in nodes {
            match &node.kind {
                NodeKind::Element(element) if element.tag.is_block() => {
                    self.add(&mut line, &mut before, bytes, order);
                }
                // The author often follows in a `span` without a space.
                NodeKind::Element(element) if element.tag != Tag::Span => {}
                _ if line.len() > MAX_DATE_LINE_CHARS => {}
                NodeKind::Element(_) => line.push(' '),
                NodeKind::Text(text) => push_words(text, &mut line),
            }
            bytes += node_text(node).trim().len();
            if bytes > DATE_LINE_BYTES || self.original.is_some() {
                break;
            }
        }
        self.add(&mut line, &mut before, bytes, order);
    }

    /// Reads a line and empties it. A label may be the line before the date.
    fn add(&mut self, line: &mut String, before: &mut String, bytes: usize, order: Order) {
        let text = one_line(line);
        line.clear();
        if text.is_empty() || text.chars().count() > MAX_DATE_LINE_CHARS {
            return;
        }
        let Some((lead, date)) = date::find_with_lead(&text, order) else {
            *before = text;
            return;
        };
        let is_other = is_label_of_other(if lead.trim().is_empty() { before } else { lead });
        if is_other {
            // Further down it belongs to something else, such as an entry of a list.
            if bytes <= BESIDE_HEADLINE_BYTES {
                self.other.get_or_insert(date);
            }
        } else if self.original.is_none() {
            self.original = Some(date.clone());
            self.beside_headline = (bytes <= BESIDE_HEADLINE_BYTES).then_some(date);
        }
        before.clear();
    }
}

/// Adds a text without the indentation of the source, which says nothing about the length of the line.
fn push_words(text: &str, line: &mut String) {
    if text.starts_with(char::is_whitespace) {
        line.push(' ');
    }
    line.push_str(text.trim());
    if text.ends_with(char::is_whitespace) {
        line.push(' ');
    }
}

/// Whether the words before a date say that it is not that of the publication.
fn is_label_of_other(lead: &str) -> bool {
    let end = lead.len().saturating_sub(MAX_LABEL_BYTES);
    let label = lead.get(lead.ceil_char_boundary(end)..).unwrap_or_default().to_lowercase();
    OTHER_LABELS.iter().any(|word| label.contains(word))
}

fn node_text<'a>(node: &Node<'a>) -> &'a str {
    match node.kind {
        NodeKind::Text(text) => text,
        NodeKind::Element(_) => "",
    }
}
