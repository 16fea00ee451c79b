//! The options of a scrape.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::inbox::document::{
    BadSelector, DocumentFormat, DocumentOptions, ElementSelector,
};
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::web::PREFER_MARKDOWN;
use fetchwell_policy::url::Site;

use super::fields::{Fields, milliseconds};
use super::request::Version;
use crate::api::fields::{DEFAULT_RETAILER, FetchRequest, headers};
use crate::api::json::Json;
use crate::api::values;

/// How long to wait for a page: the default and the limits.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const LEAST_TIMEOUT_MS: u64 = 1_000;
const MOST_TIMEOUT_MS: u64 = 300_000;

/// How old a stored page may be by default in version 2. In version 1, each page is fetched by default.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(2 * 24 * 3_600);
const MOST_MAX_AGE_MS: u64 = 365 * 24 * 3_600 * 1_000;

const MAX_SELECTORS: usize = 50;
const MAX_FORMATS: usize = 20;

/// The options of a scrape that change what is fetched or returned.
pub(super) struct ScrapeOptions {
    pub(super) document: Arc<DocumentOptions>,
    pub(super) timeout: Duration,
    max_age: Option<Duration>,
    headers: Vec<(String, String)>,
}

impl ScrapeOptions {
    pub(super) fn take(fields: &mut Fields<'_>, version: Version) -> ScrapeOptions {
        let formats = fields.take_list("formats", MAX_FORMATS, format);
        let only_main = fields.take("onlyMainContent", values::switch).unwrap_or(true);
        let include = fields.take_list("includeTags", MAX_SELECTORS, selector).unwrap_or_default();
        let exclude = fields.take_list("excludeTags", MAX_SELECTORS, selector).unwrap_or_default();
        let max_age = fields.take("maxAge", milliseconds(0, MOST_MAX_AGE_MS));
        let default_max_age = (version == Version::V2).then_some(DEFAULT_MAX_AGE);
        let timeout = fields.take("timeout", timeout());
        let mut faults = Vec::new();
        let headers = fields.get("headers").map(|given| headers(given, &mut faults));
        fields.faults(faults);
        let mut formats = formats.unwrap_or_else(|| vec![DocumentFormat::Markdown]);
        let mut seen = Vec::new();
        formats.retain(|format| {
            !seen.contains(format) && {
                seen.push(*format);
                true
            }
        });
        let document = DocumentOptions { formats, whole_page: !only_main, include, exclude };
        ScrapeOptions {
            document: Arc::new(document),
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            max_age: max_age.or(default_max_age).filter(|age| !age.is_zero()),
            headers: headers.unwrap_or_default(),
        }
    }

    /// What is stored of the options with each message.
    pub(super) fn stored_bytes(&self) -> usize {
        let document = Some(DocumentOptions::clone(&self.document));
        let options = Options { headers: self.sent_headers(), document, ..Options::default() };
        options.to_payload().len()
    }

    fn sent_headers(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        if self.takes_markdown() && headers.iter().all(|(name, _)| name != "accept") {
            headers.push(("accept".to_owned(), PREFER_MARKDOWN.to_owned()));
            headers.sort();
        }
        headers
    }

    /// The message for a page.
    pub(super) fn message(&self, url: String, site: Site, deadline: Duration) -> FetchRequest {
        FetchRequest {
            url,
            site,
            retailer: DEFAULT_RETAILER.to_owned(),
            correlation_id: None,
            callback_url: None,
            max_age: self.max_age,
            deadline,
            headers: self.sent_headers(),
            extract: false,
            links: false,
            document: Some(self.document.clone()),
        }
    }

    /// Whether Markdown from the site itself satisfies the request.
    fn takes_markdown(&self) -> bool {
        let DocumentOptions { formats, whole_page, include, exclude } = &*self.document;
        *formats == [DocumentFormat::Markdown]
            && !whole_page
            && include.is_empty()
            && exclude.is_empty()
    }
}

/// Reads the time to wait for a page or a map.
pub(super) fn timeout() -> impl Fn(&Json<'_>) -> Result<Duration, String> {
    milliseconds(LEAST_TIMEOUT_MS, MOST_TIMEOUT_MS)
}

/// A format is a name, or an object with a type.
fn format(value: &Json<'_>) -> Result<DocumentFormat, String> {
    let kind = value.as_object().and_then(|format| format.get("type")).unwrap_or(value);
    match kind.as_str() {
        Some("markdown") => Ok(DocumentFormat::Markdown),
        Some("html") => Ok(DocumentFormat::Html),
        Some("rawHtml") => Ok(DocumentFormat::RawHtml),
        Some("links") => Ok(DocumentFormat::Links),
        Some(name) => {
            let name: String = name.chars().take(50).collect();
            Err(format!(
                "is \"{name}\", which is not supported; the formats are markdown, html, rawHtml and links"
            ))
        }
        None => Err("is not a format: markdown, html, rawHtml or links".to_owned()),
    }
}

fn selector(value: &Json<'_>) -> Result<ElementSelector, String> {
    let text = value.as_str().ok_or("is not a string")?;
    text.trim().parse().map_err(|fault: BadSelector| {
        let text: String = text.chars().take(100).collect();
        format!("({text}) {fault}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::other_options::OTHER_OPTIONS;
    use super::*;

    fn read(version: Version, body: &Value) -> Result<ScrapeOptions, String> {
        let text = body.to_string();
        let json: Json<'_> = serde_json::from_str(&text).unwrap();
        let mut fields = Fields::of(&json).map_err(|problem| problem.text())?;
        let options = ScrapeOptions::take(&mut fields, version);
        fields.finish(&OTHER_OPTIONS).map_err(|problem| problem.text())?;
        Ok(options)
    }

    #[test]
    fn defaults_are_those_of_the_version() {
        for (version, max_age) in [(Version::V1, None), (Version::V2, Some(DEFAULT_MAX_AGE))] {
            let options = read(version, &json!({"headers": null})).unwrap();
            assert_eq!(options.document.formats, [DocumentFormat::Markdown]);
            assert!(!options.document.whole_page);
            assert_eq!((options.max_age, options.timeout), (max_age, DEFAULT_TIMEOUT));
        }
    }

    #[test]
    fn options_are_read_as_they_were_meant() {
        let options = read(
            Version::V2,
            &json!({
                "formats": ["links", {"type": "html"}, "links"], "onlyMainContent": false, "maxAge": 0, "timeout": 5000.0,
                "includeTags": ["main"], "excludeTags": [" .ad "], "headers": {"Accept-Language": "de"},
            }),
        );
        let options = options.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(options.document.formats, [DocumentFormat::Links, DocumentFormat::Html]);
        assert_eq!((options.max_age, options.timeout), (None, Duration::from_secs(5)));
        assert_eq!(options.document.exclude[0].to_string(), ".ad");
        assert!(options.document.whole_page && options.headers[0].0 == "accept-language");
        let plain = read(Version::V2, &json!({})).unwrap_or_else(|fault| panic!("{fault}"));
        let site = Site::parse("a.test").unwrap();
        let message = |options: &ScrapeOptions| {
            options.message("http://a.test/".to_owned(), site.clone(), Duration::from_secs(1))
        };
        assert_eq!(message(&plain).headers[0].1, PREFER_MARKDOWN);
        assert_eq!(message(&options).headers, options.headers);
    }

    #[test]
    fn errors_name_the_option() {
        for (body, said) in [
            (json!({"formats": ["markdown", "screenshot"]}), "formats.1 is \"screenshot\""),
            (json!({"formats": [{"type": "json", "prompt": "x"}]}), "formats.0 is \"json\""),
            (json!({"formats": "markdown"}), "formats is not a JSON array"),
            (json!({"timeout": 999}), "timeout must be a number of milliseconds"),
            (json!({"timeout": "1000"}), "timeout must be"),
            (json!({"maxAge": -1}), "maxAge must be"),
            (
                json!({"includeTags": ["div > p"]}),
                "includeTags.0 (div > p) is not a supported selector",
            ),
            (json!({"excludeTags": vec!["a"; 51]}), "excludeTags has more than 50"),
            (json!({"headers": {"Cookie": "a=b"}}), "headers.Cookie is not allowed"),
            (json!({"onlyMainContent": 1}), "onlyMainContent must be true or false"),
            (
                json!({"actions": [{"type": "click"}]}),
                "actions is not supported: Fetchwell has no browser",
            ),
            (json!({"waitFor": 500, "mobile": true}), "mobile is not supported"),
            (json!({"colour": "blue"}), "colour is not a known option"),
        ] {
            let fault = read(Version::V2, &body).err().unwrap_or_default();
            assert!(fault.contains(said), "{body}: {fault}");
        }
    }
}
