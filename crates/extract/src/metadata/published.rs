//! Finds the publication date of the article, from the best of many sources.

use jiff::fmt::temporal::Pieces;
use url::Url;

use super::date::{self, Order};
use super::sources::Sources;
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
    let Sources { page, metas, json_ld, url, .. } = sources;
    let in_address = in_address(url);
    json_ld
        .values("datePublished")
        .find_map(|value| stated(&value))
        .or_else(|| metas.all(PUBLISHED_KEYS).find_map(stated))
        // Around midnight, the dates of the site and of its visitors differ: the site's date in the URL counts.
        .map(|stated| {
            in_address.clone().filter(|date| is_next_day(&stated, date)).unwrap_or(stated)
        })
        .or_else(|| in_elements(page, order))
        .or(in_address)
        .or_else(|| near_headline(page, order))
        .or_else(|| json_ld.values("dateCreated").find_map(|value| stated(&value)))
        .or_else(|| json_ld.values("uploadDate").find_map(|value| stated(&value)))
        .or_else(|| json_ld.values("dateModified").find_map(|value| stated(&value)))
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

/// Dates in elements whose attributes say that they contain the date.
fn in_elements(page: &Page<'_>, order: Order) -> Option<String> {
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
        let value = ["datetime", "content"]
            .iter()
            .find_map(|name| stated(&element.attribute(name)?, order))
            .or_else(|| date::find(&page.short_text(index, MAX_TIME_BYTES)?, order));
        if is_stated && value.is_some() {
            return value;
        }
        first_time = first_time.or(value);
    }
    first_time
}

/// `/2024/05/17/` in the page's URL, unless it is that of a file. A web archive puts the time of the capture before the URL of the page.
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

/// The date line below the headline, else the one above it.
fn near_headline(page: &Page<'_>, order: Order) -> Option<String> {
    let is_heading = |element: &Element<'_>| element.tag == Tag::H1;
    let headline =
        page.elements().find(|(_, element)| is_heading(element)).map_or(0, |(index, _)| index);
    let mut bytes = 0;
    let before = page.nodes.get(..headline)?;
    let over = before.iter().rev().take_while(|node| {
        bytes += node_text(node).trim().len();
        bytes <= OVERLINE_BYTES
    });
    let overline = headline - over.count();
    first_date_line(page.nodes.get(headline..)?, order)
        .or_else(|| first_date_line(page.nodes.get(overline..headline)?, order))
}

/// The first short piece of text that contains a date.
fn first_date_line(nodes: &[Node<'_>], order: Order) -> Option<String> {
    let mut bytes = 0;
    let mut line = String::new();
    for node in nodes {
        match &node.kind {
            NodeKind::Element(element) if element.tag.is_block() => {
                if let Some(date) = date_line(&line, order) {
                    return Some(date);
                }
                line.clear();
            }
            // The author often follows in a `span` without a space.
            NodeKind::Element(element) if element.tag != Tag::Span => {}
            _ if line.len() > MAX_DATE_LINE_CHARS => {}
            NodeKind::Element(_) => line.push(' '),
            NodeKind::Text(text) => line.push_str(text),
        }
        bytes += node_text(node).trim().len();
        if bytes > DATE_LINE_BYTES {
            break;
        }
    }
    date_line(&line, order)
}

fn node_text<'a>(node: &Node<'a>) -> &'a str {
    match node.kind {
        NodeKind::Text(text) => text,
        NodeKind::Element(_) => "",
    }
}

fn date_line(line: &str, order: Order) -> Option<String> {
    let line = one_line(line);
    (line.chars().count() <= MAX_DATE_LINE_CHARS).then(|| date::find(&line, order))?
}
