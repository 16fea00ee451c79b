//! How many URLs of one kind a site may have, so that a crawl does not end in a trap.
//!
//! Calendars, filters and faulty links create endless URLs. Each rule here puts a URL into a bucket with others of its
//! kind and limits how many a crawl follows; further ones are cut off, with the reason. Only the budgets of the crawl
//! limit URLs to which no rule applies.

use sha2::{Digest, Sha256};

use crate::url::{Site, WebUrl};

/// Longer URLs come from faulty links, or carry the state of a visitor.
const MAX_URL_BYTES: usize = 2_000;
/// Paths with more segments come from faulty links.
const MAX_SEGMENTS: usize = 24;
/// How often in a row a sequence of segments may occur in a path.
const MAX_REPEATS: usize = 2;
/// How often a segment may occur anywhere in a path.
const MAX_OCCURRENCES: usize = 4;
/// Pages of one calendar: more than a year of days.
const MAX_CALENDAR_PAGES: u64 = 500;
/// Filter combinations of one list.
const MAX_FILTERED_PAGES: u64 = 300;
/// Pages of one list.
const MAX_LIST_PAGES: u64 = 1_000;
/// URLs that differ only in numbers.
const MAX_NUMBERED_PAGES: u64 = 10_000;
/// Pages of one site with the same content.
const MAX_SAME_CONTENT: u64 = 20;
/// Hosts of one domain.
const MAX_HOSTS: u64 = 1_000;
/// Sitemaps that one site lists, in all its indexes.
const MAX_SITEMAPS: u64 = 10_000;
/// A page that has more parameters than this is a filtered list, whatever their names are.
const MAX_PARAMETERS: usize = 4;

/// Why a link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutReason {
    /// It leads deeper than the crawl goes.
    Depth,
    /// It leads to a file that is not a page.
    Download,
    /// The URL is very long.
    LongUrl,
    /// The path is very deep, or repeats itself.
    RepeatedPath,
    /// The calendar has many pages.
    Calendar,
    /// The list has many filter combinations.
    Filters,
    /// The list has many pages.
    List,
    /// There are many URLs that differ only in numbers.
    Numbers,
    /// It is on a page with the same content as many pages of the site.
    SameContent,
    /// The domain has many hosts.
    Hosts,
    /// The site or the crawl has many sitemaps.
    Sitemaps,
    /// A sitemap says that the page has not changed.
    Unchanged,
    /// The crawl knows many more pages than it may fetch.
    KnownPages,
}

impl CutReason {
    /// All reasons, in the order of the summary.
    pub const ALL: [CutReason; 13] = [
        CutReason::Depth,
        CutReason::Download,
        CutReason::LongUrl,
        CutReason::RepeatedPath,
        CutReason::Calendar,
        CutReason::Filters,
        CutReason::List,
        CutReason::Numbers,
        CutReason::SameContent,
        CutReason::Hosts,
        CutReason::Sitemaps,
        CutReason::Unchanged,
        CutReason::KnownPages,
    ];

    /// The name that stores use.
    pub fn word(self) -> &'static str {
        match self {
            CutReason::Depth => "depth",
            CutReason::Download => "download",
            CutReason::LongUrl => "long_url",
            CutReason::RepeatedPath => "repeated_path",
            CutReason::Calendar => "calendar",
            CutReason::Filters => "filters",
            CutReason::List => "list",
            CutReason::Numbers => "numbers",
            CutReason::SameContent => "same_content",
            CutReason::Hosts => "hosts",
            CutReason::Sitemaps => "sitemaps",
            CutReason::Unchanged => "unchanged",
            CutReason::KnownPages => "known_pages",
        }
    }

    /// The reason with this name.
    pub fn named(word: &str) -> Option<CutReason> {
        CutReason::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// How the summary describes it.
    pub fn in_words(self) -> String {
        match self {
            CutReason::Depth => "deeper than --depth".to_owned(),
            CutReason::Download => "not pages (--downloads follows them)".to_owned(),
            CutReason::LongUrl => format!("URLs of more than {MAX_URL_BYTES} bytes"),
            CutReason::RepeatedPath => "paths that repeat folders or are too deep".to_owned(),
            CutReason::Calendar => format!("a calendar with more than {MAX_CALENDAR_PAGES} pages"),
            CutReason::Filters => {
                format!("a list with more than {MAX_FILTERED_PAGES} combinations of filters")
            }
            CutReason::List => format!("a list with more than {MAX_LIST_PAGES} pages"),
            CutReason::Numbers => {
                format!("more than {MAX_NUMBERED_PAGES} URLs that differ only in numbers")
            }
            CutReason::SameContent => {
                format!("links on pages with the same content as {MAX_SAME_CONTENT} others")
            }
            CutReason::Hosts => format!("a domain with more than {MAX_HOSTS} hosts"),
            CutReason::Sitemaps => format!("sitemaps beyond the first {MAX_SITEMAPS} of a site"),
            CutReason::Unchanged => "unchanged since the time given by --since".to_owned(),
            CutReason::KnownPages => {
                "the crawl already knows ten times as many pages as its limit".to_owned()
            }
        }
    }
}

/// A limit on the number of known pages in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The same for all pages that share the limit.
    pub bucket: i64,
    /// The maximum number of pages. With 0, none is followed.
    pub most: u64,
    /// Why further pages are not followed.
    pub reason: CutReason,
}

impl Bound {
    /// The bound of a link that is never followed.
    pub fn never(reason: CutReason) -> Bound {
        Bound { bucket: 0, most: 0, reason }
    }

    fn new(most: u64, reason: CutReason, site: &str, kind: &str) -> Bound {
        let mut hash = Sha256::new();
        for part in [reason.word(), site, kind] {
            hash.update(part);
            hash.update("\n");
        }
        let mut bucket = [0; 8];
        bucket.copy_from_slice(&hash.finalize()[..8]);
        Bound { bucket: i64::from_le_bytes(bucket), most, reason }
    }
}

/// The bounds that apply to a link because of its URL.
pub fn bounds(url: &WebUrl) -> Vec<Bound> {
    if url.as_str().len() > MAX_URL_BYTES {
        return vec![Bound::never(CutReason::LongUrl)];
    }
    let written = Written::of(url);
    if repeats(&written.segments) {
        return vec![Bound::never(CutReason::RepeatedPath)];
    }
    let site = url.site();
    let bound = |most, reason, kind: &str| Bound::new(most, reason, site.as_str(), kind);
    let mut bounds = Vec::new();
    if written.is_of_calendar() {
        bounds.push(bound(MAX_CALENDAR_PAGES, CutReason::Calendar, &written.without_numbers()));
    }
    if written.is_filtered() {
        bounds.push(bound(MAX_FILTERED_PAGES, CutReason::Filters, written.path));
    }
    if let Some(list) = written.list() {
        bounds.push(bound(MAX_LIST_PAGES, CutReason::List, &list));
    }
    if url.path_and_query().bytes().any(|byte| byte.is_ascii_digit()) {
        bounds.push(bound(MAX_NUMBERED_PAGES, CutReason::Numbers, &written.without_numbers()));
    }
    bounds
}

/// The bound that applies to a page because of its content. Numbers are ignored: the pages that a site shows for
/// missing ones often differ in nothing else.
pub fn content_bound(site: &Site, body: &[u8]) -> Bound {
    let mut hash = Sha256::new();
    body.split(u8::is_ascii_digit)
        .filter(|part| !part.is_empty())
        .for_each(|part| hash.update(part));
    let kind = crate::digest::hex(&hash.finalize());
    Bound::new(MAX_SAME_CONTENT, CutReason::SameContent, site.as_str(), &kind)
}

/// The bound on the number of sites in the domain of this one.
pub fn site_bound(url: &WebUrl) -> Option<Bound> {
    if url.host_ip().is_some() {
        return None;
    }
    Some(Bound::new(MAX_HOSTS, CutReason::Hosts, "", likely_domain(url.host())))
}

/// The bound on the number of sitemaps that a site lists.
pub fn sitemap_bound(lister: &Site) -> Bound {
    Bound::new(MAX_SITEMAPS, CutReason::Sitemaps, lister.as_str(), "")
}

/// The bound on the number of sitemaps of a crawl, those of all sites together.
pub fn crawl_sitemap_bound(most: u64) -> Bound {
    Bound::new(most, CutReason::Sitemaps, "", "all sites")
}

/// The last two labels of a host, or the last three where the second-last one is short, as in `example.co.uk`. A guess
/// is enough for a bound this generous.
fn likely_domain(host: &str) -> &str {
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    let (Some(last), Some(second)) = (dots.next(), dots.next()) else { return host };
    let is_short = last - second <= 4;
    let start = if is_short { dots.next().map_or(0, |third| third + 1) } else { second + 1 };
    host.get(start..).unwrap_or(host)
}

/// Whether a path is very deep or repeats itself, as faulty relative links make it.
fn repeats(segments: &[&str]) -> bool {
    if segments.len() > MAX_SEGMENTS {
        return true;
    }
    let is_word = |segment: &&&str| segment.bytes().any(|byte| byte.is_ascii_alphabetic());
    let occurs = |segment: &&str| segments.iter().filter(|other| *other == segment).count();
    if segments.iter().filter(is_word).any(|segment| occurs(segment) > MAX_OCCURRENCES) {
        return true;
    }
    (1..=segments.len() / (MAX_REPEATS + 1)).any(|length| {
        segments.windows(length * (MAX_REPEATS + 1)).any(|window| {
            let mut chunks = window.chunks(length);
            let first = chunks.next().unwrap_or_default();
            first.iter().any(|segment| is_word(&segment)) && chunks.all(|chunk| chunk == first)
        })
    })
}

/// A URL in parts.
struct Written<'a> {
    path: &'a str,
    /// The non-empty ones.
    segments: Vec<&'a str>,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Words in the paths and parameters of calendars.
const CALENDAR_WORDS: &[&str] = &[
    "calendar",
    "cal",
    "kalender",
    "calendrier",
    "calendario",
    "agenda",
    "events",
    "event",
    "month",
    "year",
    "date",
    "day",
    "week",
    "schedule",
];

/// Parameters that choose how a list is filtered and sorted.
const FILTER_WORDS: &[&str] = &[
    "sort",
    "sortby",
    "sort_by",
    "order",
    "orderby",
    "order_by",
    "dir",
    "direction",
    "filter",
    "filters",
    "facet",
    "color",
    "colour",
    "size",
    "price",
    "min_price",
    "max_price",
    "brand",
    "view",
    "layout",
    "per_page",
    "perpage",
    "limit",
    "show",
    "tag",
    "tags",
];

/// Parameters that contain a page number.
const LIST_WORDS: &[&str] =
    &["page", "paged", "pg", "pageno", "page_no", "start", "offset", "skip"];

impl<'a> Written<'a> {
    fn of(url: &'a WebUrl) -> Written<'a> {
        let whole = url.path_and_query();
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        let segments = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let parameters = query.split('&').filter(|part| !part.is_empty());
        let parameters =
            parameters.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
        Written { path, segments, parameters }
    }

    /// Path and query with `#` in the place of each number.
    fn without_numbers(&self) -> String {
        let mut parameters = self.parameters.clone();
        parameters.sort_unstable();
        let parameters = parameters.iter().flat_map(|(name, value)| [*name, *value]);
        let mut written = String::new();
        for part in std::iter::once(self.path).chain(parameters) {
            push_without_numbers(&mut written, part);
            written.push('&');
        }
        written
    }

    /// Whether it has a date and a word that calendars use, or its path ends with a date (a month or a day of an
    /// archive).
    fn is_of_calendar(&self) -> bool {
        let ends = match self.segments.as_slice() {
            [.., year, month, day] if is_year(year) => {
                is_number_to(month, 12) && is_number_to(day, 31)
            }
            [.., year, month] if is_year(year) => is_number_to(month, 12),
            _ => false,
        };
        let has_word = |text: &str| is_one_of(CALENDAR_WORDS, text);
        let named = self.segments.iter().any(|segment| has_word(segment))
            || self.parameters.iter().any(|(name, _)| has_word(name));
        let starts_with_year = |text: &str| text.get(..4).is_some_and(is_year);
        let dated = self.segments.iter().any(|segment| starts_with_year(segment))
            || self.parameters.iter().any(|(_, value)| starts_with_year(value));
        ends || named && dated
    }

    fn is_filtered(&self) -> bool {
        let is_filter = |name: &str| {
            name.contains(['[', ']']) || name.contains("%5B") || is_one_of(FILTER_WORDS, name)
        };
        let count = self.parameters.len();
        count > MAX_PARAMETERS
            || count >= 2 && self.parameters.iter().any(|(name, _)| is_filter(name))
    }

    /// The list that it is a page of: the URL without the page number.
    fn list(&self) -> Option<String> {
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_page =
            |(name, value): &(&str, &str)| is_one_of(LIST_WORDS, name) && is_number(value);
        if self.parameters.iter().any(is_page) {
            let mut others: Vec<_> = self.parameters.iter().filter(|part| !is_page(part)).collect();
            others.sort_unstable();
            return Some(format!("{}{others:?}", self.path));
        }
        match self.segments.as_slice() {
            [list @ .., word, number] if is_one_of(LIST_WORDS, word) && is_number(number) => {
                Some(format!("{list:?}{word}"))
            }
            _ => None,
        }
    }
}

fn push_without_numbers(written: &mut String, part: &str) {
    for c in part.chars() {
        if !c.is_ascii_digit() {
            written.push(c);
        } else if !written.ends_with('#') {
            written.push('#');
        }
    }
}

fn is_one_of(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn is_year(text: &str) -> bool {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.len() == 4 && is_number && ["19", "20", "21", "22"].contains(&&text[..2])
}

fn is_number_to(text: &str, most: u32) -> bool {
    text.len() <= 2 && text.parse().is_ok_and(|number: u32| (1..=most).contains(&number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn reasons(path: &str) -> Vec<CutReason> {
        let url = WebUrl::parse(&format!("http://a.test{path}")).unwrap();
        bounds(&url).iter().map(|bound| bound.reason).collect()
    }

    #[test]
    fn traps_are_told_from_pages() {
        use CutReason::*;
        let long = format!("/{}", "x".repeat(MAX_URL_BYTES));
        let deep: String = (0..=MAX_SEGMENTS).map(|n| format!("/{n}")).collect();
        for (path, expected) in [
            ("/", vec![]),
            ("/about/team", vec![]),
            ("/search?q=x", vec![]),
            (&long, vec![LongUrl]),
            (&deep, vec![RepeatedPath]),
            ("/a/b/a/b/a/b", vec![RepeatedPath]),
            ("/a/b/a/b/a", vec![]),
            ("/x/x/x/", vec![RepeatedPath]),
            ("/x/x/y", vec![]),
            ("/1/1/1/1", vec![Numbers]),
            ("/a/1/a/2/a/3/a/4/a/5", vec![RepeatedPath]),
            ("/calendar/2024-05", vec![Calendar, Numbers]),
            ("/calendar/about", vec![]),
            ("/events?date=2031-01-01", vec![Calendar, Numbers]),
            ("/list?month=2031-01", vec![Calendar, Numbers]),
            ("/agenda?x=2031-01-01", vec![Calendar, Numbers]),
            ("/blog/2024/05/", vec![Calendar, Numbers]),
            ("/blog/2024/05/17", vec![Calendar, Numbers]),
            ("/blog/2024/05/17/title", vec![Numbers]),
            ("/blog/2024/13", vec![Numbers]),
            ("/shop?color=red&size=m", vec![Filters]),
            ("/shop?color=red", vec![]),
            ("/shop?f[a]=red&x", vec![Filters]),
            ("/shop?f%5Ba%5D=red&x", vec![Filters, Numbers]),
            ("/?option=x&view_id=y&id=1&Itemid=2", vec![Numbers]),
            ("/?a&b&c&d&e", vec![Filters]),
            ("/list?page=7", vec![List, Numbers]),
            ("/list?page=next", vec![]),
            ("/list/page/7", vec![List, Numbers]),
            ("/article/7", vec![Numbers]),
        ] {
            assert_eq!(reasons(path), expected, "{path}");
        }
    }

    /// The bound of this page for this reason.
    fn bound(path: &str, reason: CutReason) -> Bound {
        let url = WebUrl::parse(&format!("http://a.test{path}")).unwrap();
        let bounds = bounds(&url);
        let bound = bounds.into_iter().find(|bound| bound.reason == reason);
        bound.unwrap_or_else(|| panic!("{path}: no {reason:?}"))
    }

    fn bucket(path: &str, reason: CutReason) -> i64 {
        bound(path, reason).bucket
    }

    /// As docs/crawl.md says.
    #[test]
    fn each_kind_of_trap_has_its_limit() {
        use CutReason::*;
        let url = WebUrl::parse("http://a.test/").unwrap();
        let long = format!("/{}", "x".repeat(2_000));
        for (bound, most) in [
            (bound(&long, LongUrl), 0),
            (bound("/x/x/x/", RepeatedPath), 0),
            (bound("/calendar/2024-05", Calendar), 500),
            (bound("/shop?color=red&size=m", Filters), 300),
            (bound("/list?page=7", List), 1_000),
            (bound("/article/7", Numbers), 10_000),
            (content_bound(&url.site(), b"x"), 20),
            (site_bound(&url).unwrap(), 1_000),
            (sitemap_bound(&url.site()), 10_000),
        ] {
            assert_eq!(bound.most, most, "{:?}", bound.reason);
        }
    }

    #[test]
    fn urls_of_one_kind_share_a_bucket_and_no_others() {
        use CutReason::*;
        for (reason, one, other, shared) in [
            (Calendar, "/calendar/2024/05", "/calendar/2131/12", true),
            (Calendar, "/calendar/2024/05", "/agenda/2024/05", false),
            (Filters, "/shop?color=red&size=m", "/shop?size=l&sort=up", true),
            (Filters, "/shop?color=red&size=m", "/sale?color=red&size=m", false),
            (List, "/list?page=7&q=x", "/list?q=x&page=8", true),
            (List, "/list?page=7&q=x", "/list?page=7&q=y", false),
            (List, "/a/page/7", "/a/page/8", true),
            (Numbers, "/article/7", "/article/123", true),
            (Numbers, "/article/7", "/articles/7", false),
        ] {
            assert_eq!(bucket(one, reason) == bucket(other, reason), shared, "{one} {other}");
        }
    }

    #[test]
    fn pages_that_only_differ_in_numbers_have_the_same_content() {
        let site = |name: &str| Site::parse(name).unwrap();
        let bound = |name, body: &str| content_bound(&site(name), body.as_bytes());
        assert_eq!(bound("a.test", "no page 17, sorry"), bound("a.test", "no page 2, sorry"));
        assert_ne!(bound("a.test", "no page"), bound("a.test", "a page"));
        assert_ne!(bound("a.test", "no page"), bound("b.test", "no page"));
    }

    #[test]
    fn hosts_are_counted_by_domain() {
        for (host, domain) in [
            ("a.test", "a.test"),
            ("x.y.farm.example", "farm.example"),
            ("x.shop.co.uk", "shop.co.uk"),
            ("shop.co.uk", "shop.co.uk"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(likely_domain(host), domain, "{host}");
        }
        let bound = |url: &str| site_bound(&WebUrl::parse(url).unwrap());
        assert!(bound("http://127.0.0.1/").is_none());
        let farm = bound("http://a.farm.example/");
        assert!(farm.is_some());
        assert_eq!(farm, bound("https://b.farm.example:81/x"));
        assert_ne!(farm, bound("http://a.other.example/"));
    }

    #[test]
    fn every_reason_is_found_by_its_name() {
        for reason in CutReason::ALL {
            assert_eq!(CutReason::named(reason.word()), Some(reason));
            assert!(!reason.in_words().is_empty());
        }
        let words: HashSet<&str> = CutReason::ALL.into_iter().map(CutReason::word).collect();
        assert_eq!(words.len(), CutReason::ALL.len());
    }

    proptest! {
        /// Links that are relative by mistake append to the path forever.
        #[test]
        fn a_path_that_grows_is_noticed(folders in prop::collection::vec("[a-z]{1,3}", 1..5)) {
            let endless: Vec<&str> = folders.iter().map(String::as_str).cycle().take(99).collect();
            let followed = (1..=endless.len()).take_while(|length| !repeats(&endless[..*length])).count();
            prop_assert!(followed < folders.len() * (MAX_REPEATS + 1), "{folders:?}: {followed}");
        }

        #[test]
        fn a_path_of_different_folders_is_none(length in 1usize..MAX_SEGMENTS) {
            let names: Vec<String> = (0..length).map(|n| format!("f{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            prop_assert!(!repeats(&names));
        }

        /// A calendar links to the next day forever, a shop to another combination, a list to its next page.
        #[test]
        fn a_trap_is_one_bucket_however_far_it_is_followed(
            year in 1900..2300, month in 1..=12, day in 1..=31, value in "[a-z]{1,8}", number: u64,
            word in prop::sample::select(&["calendar", "events", "blog/archive"][..]),
        ) {
            use CutReason::*;
            for (reason, first, later) in [
                (Calendar, format!("/{word}/2024/05/17"), format!("/{word}/{year}/{month}/{day:02}")),
                (Calendar, format!("/{word}?date=2024-05"), format!("/{word}?date={year}-{month}")),
                (Filters, "/shop?sort=x&color=y".into(), format!("/shop?color={value}&sort={number}")),
                (List, format!("/{value}?page=2"), format!("/{value}?page={number}")),
                (List, format!("/{value}/page/2"), format!("/{value}/page/{number}")),
                (Numbers, format!("/{value}/7/x"), format!("/{value}/{number}/x")),
            ] {
                prop_assert_eq!(bound(&first, reason), bound(&later, reason), "{}", later);
            }
        }

        #[test]
        fn whatever_comes_it_has_bounds(path in "/(/|x|1|2024|page|\\?|&|=|%5B){0,40}") {
            let url = WebUrl::parse(&format!("http://a.test{path}")).unwrap();
            prop_assert!(bounds(&url).len() <= 4);
        }
    }
}
