//! The arguments of calls. Their errors are written so that a model can correct the call.

use std::time::Duration;

use fetchwell_policy::url::MAX_URL_BYTES;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::site_map::{DEFAULT_MAX_AGE, MAX_SEARCH_BYTES, MapRequest, Sitemaps};

/// The maximum number of pages of one call.
pub(super) const MAX_URLS: usize = 10;

/// The maximum length of the page text in an answer, in characters, and the default.
pub(super) const MAX_LENGTH: usize = 100_000;
pub(super) const DEFAULT_LENGTH: usize = 20_000;

/// How old a cached page may be, by default.
pub(super) const DEFAULT_MAX_AGE_SECONDS: u64 = 3_600;

/// The maximum number of links in an answer, and the default.
pub(super) const MAX_LINKS: usize = 500;
pub(super) const DEFAULT_LINKS: usize = 100;

/// The maximum number of captures in an answer, and the default.
pub(super) const MAX_CAPTURES: usize = 100;
const DEFAULT_CAPTURES: usize = 20;

const MAX_CRAWL_BYTES: usize = 64;
const TIMESTAMP_DIGITS: usize = 14;

/// Why the arguments cannot be used.
pub(super) type BadArguments = String;

/// Reads the arguments of a tool. Unknown ones are errors, so that a model notices a misspelled name.
pub(super) fn read<T: DeserializeOwned>(given: Option<JsonObject>) -> Result<T, BadArguments> {
    serde_json::from_value(Value::Object(given.unwrap_or_default()))
        .map_err(|fault| fault.to_string())
}

/// The part of a page that a call requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) max_length: usize,
}

impl Part {
    fn new(start: Option<usize>, max_length: Option<usize>) -> Result<Part, BadArguments> {
        let max_length = within("max_length", max_length, DEFAULT_LENGTH, MAX_LENGTH)?;
        Ok(Part { start: start.unwrap_or_default(), max_length })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchArguments {
    url: Option<String>,
    urls: Option<Vec<String>>,
    max_length: Option<usize>,
    start_index: Option<usize>,
    max_age: Option<u64>,
}

impl FetchArguments {
    /// The pages, each once, in the order given.
    pub(super) fn pages(&self) -> Result<Vec<&str>, BadArguments> {
        let given: Vec<&str> = match (&self.url, &self.urls) {
            (Some(url), None) => vec![url],
            (None, Some(urls)) => urls.iter().map(String::as_str).collect(),
            (None, None) => return Err("`url` is missing".to_owned()),
            (Some(_), Some(_)) => return Err("give either `url` or `urls`, not both".to_owned()),
        };
        if !(1..=MAX_URLS).contains(&given.len()) {
            return Err(format!(
                "`urls` must have 1 to {MAX_URLS} URLs; split the list into several calls"
            ));
        }
        let mut pages: Vec<&str> = Vec::with_capacity(given.len());
        for url in given {
            check_url(url)?;
            if !pages.contains(&url) {
                pages.push(url);
            }
        }
        if self.start_index.is_some_and(|start| start > 0) && pages.len() > 1 {
            return Err(
                "`start_index` works with one page only; pass that page in `url`".to_owned()
            );
        }
        Ok(pages)
    }

    /// The part of each page: several pages share the length.
    pub(super) fn part(&self, pages: usize) -> Result<Part, BadArguments> {
        let part = Part::new(self.start_index, self.max_length)?;
        Ok(Part { max_length: (part.max_length / pages.max(1)).max(1), ..part })
    }

    /// How old a cached page may be; `None` to always fetch the page.
    pub(super) fn max_age(&self) -> Option<Duration> {
        let seconds = self.max_age.unwrap_or(DEFAULT_MAX_AGE_SECONDS);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapArguments {
    pub(super) url: String,
    pub(super) search: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_subdomains: bool,
    #[serde(default)]
    sitemaps: Sitemaps,
}

impl MapArguments {
    pub(super) fn checked(self) -> Result<MapArguments, BadArguments> {
        check_url(&self.url)?;
        if self.search.as_ref().is_some_and(|words| words.len() > MAX_SEARCH_BYTES) {
            return Err(format!("`search` must have at most {MAX_SEARCH_BYTES} bytes"));
        }
        let limit = Some(within("limit", self.limit, DEFAULT_LINKS, MAX_LINKS)?);
        Ok(MapArguments { limit, ..self })
    }

    pub(super) fn request(self, wait: Duration) -> MapRequest {
        MapRequest {
            url: self.url,
            search: self.search,
            limit: self.limit.unwrap_or(DEFAULT_LINKS),
            include_subdomains: self.include_subdomains,
            sitemaps: self.sitemaps,
            leave_out_queries: false,
            max_age: DEFAULT_MAX_AGE,
            wait,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainArguments {
    pub(super) url: String,
}

impl ExplainArguments {
    pub(super) fn checked(self) -> Result<ExplainArguments, BadArguments> {
        check_url(&self.url).map(|()| self)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveArguments {
    pub(super) url: String,
    #[serde(default)]
    pub(super) read: bool,
    pub(super) timestamp: Option<String>,
    pub(super) crawl: Option<String>,
    limit: Option<usize>,
    max_length: Option<usize>,
    start_index: Option<usize>,
}

impl ArchiveArguments {
    pub(super) fn checked(self) -> Result<ArchiveArguments, BadArguments> {
        check_url(&self.url)?;
        let is_time = |time: &String| {
            (1..=TIMESTAMP_DIGITS).contains(&time.len())
                && time.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !self.timestamp.as_ref().is_none_or(is_time) {
            return Err("`timestamp` must be YYYYMMDDhhmmss or a prefix of it".to_owned());
        }
        let is_crawl = |crawl: &String| {
            (1..=MAX_CRAWL_BYTES).contains(&crawl.len())
                && crawl.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !self.crawl.as_ref().is_none_or(is_crawl) {
            return Err("`crawl` must be the name of a crawl, such as CC-MAIN-2024-30".to_owned());
        }
        if self.read && self.url.contains('*') {
            let fix = "leave out `read` to list the captures of many pages";
            return Err(format!("only one page can be read at a time; {fix}"));
        }
        Ok(self)
    }

    pub(super) fn limit(&self) -> Result<usize, BadArguments> {
        within("limit", self.limit, DEFAULT_CAPTURES, MAX_CAPTURES)
    }

    pub(super) fn part(&self) -> Result<Part, BadArguments> {
        Part::new(self.start_index, self.max_length)
    }
}

fn check_url(url: &str) -> Result<(), BadArguments> {
    match url.len() {
        0 => Err("the URL is empty".to_owned()),
        1..=MAX_URL_BYTES => Ok(()),
        _ => Err(format!("the URL has more than {MAX_URL_BYTES} bytes")),
    }
}

fn within(
    name: &str,
    given: Option<usize>,
    default: usize,
    most: usize,
) -> Result<usize, BadArguments> {
    match given {
        None => Ok(default),
        Some(number) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(format!("`{name}` must be from 1 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(arguments: &Value) -> Option<JsonObject> {
        arguments.as_object().cloned()
    }

    fn fetch(arguments: &Value) -> Result<(Vec<String>, Part), BadArguments> {
        let arguments: FetchArguments = read(given(arguments))?;
        let pages = arguments.pages()?.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let part = arguments.part(pages.len())?;
        Ok((pages, part))
    }

    #[test]
    fn several_pages_share_the_length() {
        let (pages, part) = fetch(&json!({"url": "http://a.test/", "start_index": 7})).unwrap();
        assert_eq!(pages, ["http://a.test/"]);
        assert_eq!(part, Part { start: 7, max_length: DEFAULT_LENGTH });
        let urls = ["http://a.test/", "http://b.test/", "http://a.test/"];
        let (pages, part) = fetch(&json!({"urls": urls, "max_length": 100})).unwrap();
        assert_eq!(pages, urls[..2]);
        assert_eq!(part, Part { start: 0, max_length: 50 });
    }

    #[test]
    fn invalid_arguments_are_explained() {
        let many = vec!["http://a.test/"; MAX_URLS + 1];
        for (arguments, part_of_reason) in [
            (json!({}), "`url` is missing"),
            (json!({"url": "http://a.test/", "urls": ["http://b.test/"]}), "not both"),
            (json!({"urls": []}), "1 to 10 URLs"),
            (json!({"urls": many}), "1 to 10 URLs"),
            (json!({"url": ""}), "empty"),
            (json!({"url": "x".repeat(MAX_URL_BYTES + 1)}), "more than 8192 bytes"),
            (json!({"url": 1}), "expected a string"),
            (json!({"link": "http://a.test/"}), "unknown field `link`"),
            (json!({"url": "http://a.test/", "max_length": 0}), "`max_length` must be from 1 to"),
            (
                json!({"url": "http://a.test/", "max_length": 100_001}),
                "`max_length` must be from 1 to",
            ),
            (json!({"url": "http://a.test/", "start_index": -1}), "-1"),
            (
                json!({"urls": ["http://a.test/", "http://b.test/"], "start_index": 1}),
                "one page only",
            ),
        ] {
            let reason = fetch(&arguments).unwrap_err();
            assert!(reason.contains(part_of_reason), "{arguments}: {reason}");
        }
        for arguments in [
            json!({"url": "http://a.test/", "timestamp": "2024-01"}),
            json!({"url": "http://a.test/", "timestamp": ""}),
            json!({"url": "http://a.test/", "crawl": "../x"}),
            json!({"url": "*.a.test", "read": true}),
        ] {
            let read: ArchiveArguments = read(given(&arguments)).unwrap();
            assert!(read.checked().is_err(), "{arguments}");
        }
    }

    #[test]
    fn zero_always_fetches_the_page() {
        let max_age = |arguments: &Value| {
            let arguments: FetchArguments = read(given(arguments)).unwrap();
            arguments.max_age().map(|age| age.as_secs())
        };
        assert_eq!(max_age(&json!({})), Some(DEFAULT_MAX_AGE_SECONDS));
        assert_eq!(max_age(&json!({"max_age": 60})), Some(60));
        assert_eq!(max_age(&json!({"max_age": 0})), None);
    }
}
