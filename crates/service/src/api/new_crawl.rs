//! A posted crawl, read field by field, so that all faults are reported at once, each with its location.

use std::time::Duration;

use fetchwell_engine::ports::crawls::CrawlSpec;
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_policy::address::AddressGuard;
use fetchwell_policy::crawl::{SITEMAP_DEPTH, ScopeKind, Sitemaps, UrlPattern};
use utoipa::ToSchema;

use super::fields::{DEFAULT_RETAILER, MAX_FAULTS, Reader, pointer};
use super::json::Json;
use super::times;
use super::values::{self, FieldProblem};
use crate::problem::FieldError;
use crate::views::schemas::{
    CrawlScope, CrawlSitemaps, LinkPattern, MaxTime, SentHeaders, StartUrl,
};

/// The maximum number of start pages.
const MAX_STARTS: usize = 100;
/// The maximum number of patterns of one kind.
const MAX_PATTERNS: usize = 100;
/// The maximum number of pages, if the request does not say.
const DEFAULT_LIMIT: u64 = 10_000;
/// How long a crawl may take, if the request does not say.
pub(super) const DEFAULT_MAX_TIME: Duration = Duration::from_secs(24 * 3_600);
/// How long a crawl may take.
const LONGEST_TIME: Duration = Duration::from_secs(7 * 24 * 3_600);
/// A sanity limit.
const MAX_DEPTH: u64 = 1_000_000;
/// A sanity limit.
const MAX_PER_SITE: u64 = 1_000_000_000_000;

const KNOWN: [&str; 16] = [
    "urls",
    "scope",
    "include",
    "exclude",
    "depth",
    "limit",
    "limit_per_site",
    "max_time",
    "sitemaps",
    "downloads",
    "retailer",
    "correlation_id",
    "callback_url",
    "headers",
    "extract",
    "links",
];

/// What to crawl.
#[derive(ToSchema)]
#[schema(as = NewCrawl)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for its schema: a crawl is read field by field")]
pub(super) struct NewCrawlBody {
    /// The start pages: 1 to 100 URLs. They are always fetched, unless robots.txt disallows them.
    #[schema(min_items = 1, max_items = 100, example = json!(["https://docs.example/"]))]
    urls: Vec<StartUrl>,
    /// How far to go: only the start pages; their folders; their hosts (the default); these hosts without `www.`, with
    /// all subdomains; every site.
    scope: Option<CrawlScope>,
    /// Follow only links that match one of these patterns. `*` matches any text. A pattern is compared with path and
    /// query, or with the whole URL if it contains `://`.
    #[schema(max_items = 100, example = json!(["/blog/*"]))]
    include: Option<Vec<LinkPattern>>,
    /// Do not follow links that match one of these patterns.
    #[schema(max_items = 100)]
    exclude: Option<Vec<LinkPattern>>,
    /// The maximum number of links from a start page (default: no limit).
    #[schema(maximum = 1_000_000)]
    depth: Option<u32>,
    /// The maximum number of pages (default: 10,000). Pages that robots.txt disallows do not count. The service has a
    /// limit of its own: `retriever.max_crawl_pages`.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    limit: Option<u64>,
    /// The maximum number of pages per site (default: no limit).
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64)]
    limit_per_site: Option<u64>,
    /// How long the crawl may take: whole seconds, or text such as "2h"; at most 7 days (default: 24 hours). Pages that
    /// wait then are not fetched. A few pages per site that were already scheduled are still fetched.
    #[schema(example = "2h")]
    max_time: Option<MaxTime>,
    /// Whether to read sitemaps: `auto` (the default) follows links, too; `only` follows no links; `off` reads none.
    sitemaps: Option<CrawlSitemaps>,
    /// Whether to also fetch links to archives, images, documents and other files that are not pages.
    downloads: Option<bool>,
    /// The retailer: 1 to 32 characters from a-z, 0-9, _ and -; `default` if there is none. Its limit holds for the
    /// crawl, too.
    #[schema(example = "admhr", pattern = "^[a-z0-9_-]{1,32}$")]
    retailer: Option<String>,
    /// The correlation id of all results: 1 to 256 characters, none of them a control character. The id of the crawl if
    /// there is none.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    correlation_id: Option<String>,
    /// The URL to which the end of the crawl is delivered as a signed webhook: `crawl.completed`.
    #[schema(format = "uri", min_length = 1, max_length = 8192)]
    callback_url: Option<String>,
    /// Headers to send along with each page: accept, accept-language, if-modified-since, if-none-match, referer.
    headers: Option<SentHeaders>,
    /// Whether to add the article of each page to its result.
    extract: Option<bool>,
    /// Whether to add the URLs that each page links to.
    links: Option<bool>,
}

/// The rules for checking a crawl.
pub(super) struct CrawlJudge<'a> {
    pub(super) guard: &'a AddressGuard,
    /// The maximum number of pages of a crawl.
    pub(super) max_pages: u64,
}

/// A crawl that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CrawlRequest {
    pub(super) spec: CrawlSpec,
    pub(super) callback_url: Option<String>,
}

impl CrawlRequest {
    /// Reads a crawl, or reports everything that is wrong with it.
    pub(super) fn read(
        json: &Json<'_>,
        judge: &CrawlJudge<'_>,
    ) -> Result<CrawlRequest, Vec<FieldError>> {
        let Json::Object(fields) = json else {
            return Err(vec![FieldError::at("", "is not a JSON object; send {\"urls\": […]}")]);
        };
        let mut reader = Reader::of(fields, &KNOWN);
        let urls = reader.needed("urls", |value| entries(value, 1, MAX_STARTS)).unwrap_or_default();
        let urls = checked(&urls, "urls", &mut reader.faults, |value| {
            values::web_url(value, judge.guard).map(|(url, _)| url)
        });
        let scope =
            reader.optional("scope", |value| one_of(value, &ScopeKind::ALL, ScopeKind::word));
        let include = patterns(&mut reader, "include");
        let exclude = patterns(&mut reader, "exclude");
        let depth = reader.optional("depth", |value| whole(value, 0, MAX_DEPTH));
        let limit = reader.optional("limit", |value| whole(value, 1, judge.max_pages));
        let limit_per_site =
            reader.optional("limit_per_site", |value| whole(value, 1, MAX_PER_SITE));
        let max_time = reader.optional("max_time", max_time);
        let sitemaps =
            reader.optional("sitemaps", |value| one_of(value, &Sitemaps::ALL, Sitemaps::word));
        let downloads = reader.optional("downloads", values::switch).unwrap_or_default();
        let retailer = reader.optional("retailer", values::retailer);
        let correlation_id = reader.optional("correlation_id", values::correlation_id);
        let callback_url =
            reader.optional("callback_url", |value| values::web_url(value, judge.guard));
        let headers = reader.headers();
        let extract = reader.optional("extract", values::switch).unwrap_or_default();
        let links = reader.optional("links", values::switch).unwrap_or_default();
        if !reader.faults.is_empty() {
            return Err(reader.faults);
        }
        let spec = CrawlSpec {
            urls,
            scope: scope.unwrap_or(ScopeKind::Host),
            include,
            exclude,
            depth: depth.and_then(|depth| u32::try_from(depth).ok()),
            limit: limit.unwrap_or(DEFAULT_LIMIT.min(judge.max_pages)),
            limit_per_site,
            max_time: max_time.unwrap_or(DEFAULT_MAX_TIME),
            sitemaps: sitemaps.unwrap_or(Sitemaps::Auto),
            sitemap_depth: SITEMAP_DEPTH,
            downloads,
            retailer: retailer.unwrap_or_else(|| DEFAULT_RETAILER.to_owned()),
            correlation_id,
            options: Options { headers, extract, links, document: None },
        };
        Ok(CrawlRequest { spec, callback_url: callback_url.map(|(url, _)| url) })
    }
}

fn patterns(reader: &mut Reader<'_>, name: &'static str) -> Vec<String> {
    let given = reader.optional(name, |value| entries(value, 0, MAX_PATTERNS));
    checked(&given.unwrap_or_default(), name, &mut reader.faults, |value| {
        let text = values::text(value)?;
        text.parse::<UrlPattern>().map_err(|fault| fault.to_string())?;
        Ok(text.to_owned())
    })
}

/// The entries of an array, as text. Anything else is reported for its entry.
fn entries(value: &Json<'_>, least: usize, most: usize) -> Result<Vec<Entry>, FieldProblem> {
    let Json::Array(entries) = value else {
        return Err("is not an array of strings".to_owned());
    };
    if !(least..=most).contains(&entries.len()) {
        return Err(format!("must have {least} to {most} entries"));
    }
    Ok(entries.iter().map(|entry| entry.as_str().map(str::to_owned)).collect())
}

/// A text; `None` if it is something else.
type Entry = Option<String>;

/// The entries that are valid. The others are reported, each with its location.
fn checked<T>(
    entries: &[Entry],
    name: &str,
    faults: &mut Vec<FieldError>,
    check: impl Fn(&Json<'_>) -> Result<T, FieldProblem>,
) -> Vec<T> {
    let mut valid = Vec::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        let value = entry.as_deref().map_or(Json::Null, |text| Json::Text(text.into()));
        match check(&value) {
            Ok(entry) => valid.push(entry),
            Err(_) if faults.len() >= MAX_FAULTS => break,
            Err(fault) => faults.push(FieldError::at(pointer(&[name, &place.to_string()]), fault)),
        }
    }
    valid
}

fn one_of<T: Copy>(
    value: &Json<'_>,
    all: &[T],
    word: fn(T) -> &'static str,
) -> Result<T, FieldProblem> {
    let found = value.as_str().and_then(|text| all.iter().find(|one| word(**one) == text));
    found.copied().ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
        format!("must be one of {}", words.join(", "))
    })
}

fn whole(value: &Json<'_>, least: u64, most: u64) -> Result<u64, FieldProblem> {
    let number = match value {
        Json::Number(number) => number.as_u64(),
        _ => None,
    };
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

fn max_time(value: &Json<'_>) -> Result<Duration, FieldProblem> {
    let time =
        times::duration(value).ok_or("is neither whole seconds nor a duration such as \"2h\"")?;
    if time.is_zero() || time > LONGEST_TIME {
        return Err("must be more than 0 and at most 7 days".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(changes: &Value) -> Result<CrawlRequest, Vec<String>> {
        let mut json = json!({"urls": ["https://a.test/"]});
        for (name, value) in changes.as_object().unwrap() {
            json[name] = value.clone();
        }
        let guard = AddressGuard::default();
        let text = json.to_string();
        let json = serde_json::from_str(&text).unwrap();
        let judge = CrawlJudge { guard: &guard, max_pages: 50_000 };
        CrawlRequest::read(&json, &judge).map_err(|faults| {
            faults.into_iter().map(|fault| fault.pointer.unwrap_or_default()).collect()
        })
    }

    #[test]
    fn a_crawl_is_read_as_it_was_meant() {
        let spec = read(&json!({})).unwrap().spec;
        assert_eq!((spec.scope, spec.sitemaps), (ScopeKind::Host, Sitemaps::Auto));
        assert_eq!((spec.limit, spec.max_time, spec.depth), (10_000, DEFAULT_MAX_TIME, None));
        let full = read(&json!({
            "urls": ["http://a.test/", "http://b.test/x"], "scope": "domain", "include": ["/x*"],
            "exclude": ["*.pdf", "http://a.test/y"], "depth": 0, "limit": 50_000,
            "limit_per_site": 7, "max_time": "2h", "sitemaps": "only", "downloads": true,
            "retailer": "shop", "correlation_id": "c", "callback_url": "http://c.test/",
            "headers": {"Accept": "*/*"}, "extract": true, "links": true,
        }))
        .unwrap();
        let spec = full.spec;
        assert_eq!(full.callback_url.as_deref(), Some("http://c.test/"));
        assert_eq!((spec.scope, spec.sitemaps), (ScopeKind::Domain, Sitemaps::Only));
        assert_eq!((spec.depth, spec.limit_per_site), (Some(0), Some(7)));
        assert_eq!((spec.urls.len(), spec.include.len(), spec.exclude.len()), (2, 1, 2));
        assert!(spec.downloads && spec.options.extract && spec.options.links);
        assert_eq!(spec.max_time, Duration::from_secs(7_200));
        let stored = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<CrawlSpec>(&stored).unwrap(), spec);
    }

    #[test]
    fn each_fault_is_told_with_its_place() {
        for (changes, pointer) in [
            (json!({"urls": null}), "/urls"),
            (json!({"urls": []}), "/urls"),
            (json!({"urls": "http://a.test/"}), "/urls"),
            (json!({"urls": vec!["http://a.test/"; 101]}), "/urls"),
            (json!({"urls": ["http://a.test/", "ftp://a.test/"]}), "/urls/1"),
            (json!({"urls": ["http://127.0.0.1/"]}), "/urls/0"),
            (json!({"urls": [1]}), "/urls/0"),
            (json!({"scope": "world"}), "/scope"),
            (json!({"include": ["blog/*"]}), "/include/0"),
            (json!({"exclude": "x"}), "/exclude"),
            (json!({"exclude": vec!["/"; 101]}), "/exclude"),
            (json!({"depth": -1}), "/depth"),
            (json!({"limit": 0}), "/limit"),
            (json!({"limit": 50_001}), "/limit"),
            (json!({"limit": "10"}), "/limit"),
            (json!({"limit_per_site": 0}), "/limit_per_site"),
            (json!({"max_time": 0}), "/max_time"),
            (json!({"max_time": "8d"}), "/max_time"),
            (json!({"sitemaps": true}), "/sitemaps"),
            (json!({"downloads": 1}), "/downloads"),
            (json!({"url": "http://a.test/"}), "/url"),
        ] {
            assert_eq!(read(&changes).unwrap_err(), [pointer], "{changes}");
        }
        let many = vec!["blog"; MAX_PATTERNS];
        assert_eq!(read(&json!({"include": many})).unwrap_err().len(), MAX_FAULTS);
    }
}
