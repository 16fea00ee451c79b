//! A result as a document of Firecrawl.

use std::time::Duration;

use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::document::{DocumentFormat, ExtractedDocument};
use fetchwell_engine::ports::inbox::options::Extracted;
use fetchwell_engine::ports::inbox::{FetchResult, OutboxMessage};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;

use crate::problem::Problem;

/// Why there are no formats. `/scrape` fetches such a page again.
const NO_FORMATS: &str = "the result has no formats: the message was sent to another endpoint, or an instance of an \
                          earlier release fetched it; scrape the URL again";

/// A page in the requested formats.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<String>>,
    metadata: Metadata,
}

/// What is known about the page.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    og_site_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    og_image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_time: Option<String>,
    /// The requested URL.
    #[serde(rename = "sourceURL")]
    source_url: String,
    /// The URL of the page, after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Why there is no page, although the site answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The id of the message.
    scrape_id: String,
    /// `hit` for a stored page, else `miss`.
    cache_state: &'static str,
    /// When a stored page was fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_at: Option<String>,
}

impl Document {
    /// The document of a result, or the reason why there is none: the site did not respond, or not with text. `age` is
    /// the age of a stored page.
    pub(super) fn of(outbox: OutboxMessage, age: Option<Duration>) -> Result<Document, Problem> {
        if !has_document(&outbox.result) {
            return Err(Problem::no_page(outbox));
        }
        let OutboxMessage { message, url: source_url, result, .. } = outbox;
        let extracted: Option<Extracted> =
            result.extracted.and_then(|json| serde_json::from_str(&json).ok());
        let Extracted { article, links, document, .. } = extracted.unwrap_or_default();
        let has_no_formats = document.is_none() && result.content.is_some();
        let no_formats = has_no_formats.then(|| NO_FORMATS.to_owned());
        let ExtractedDocument { formats, html, language, image } = document.unwrap_or_default();
        let details: Option<FetchDetails> =
            result.details.and_then(|json| serde_json::from_str(&json).ok());
        let is_stored = age.is_some() || result.cached_age.is_some();
        let fetched_at = details.as_ref().and_then(|details| details.fetched_at);
        let wants = |format| formats.contains(&format);
        let mut metadata = Metadata {
            language,
            og_image: image,
            source_url,
            url: details.map(|details| details.final_url),
            status_code: result.http_status,
            content_type: result.content_type,
            error: result.error.or(no_formats),
            scrape_id: message.to_string(),
            cache_state: if is_stored { "hit" } else { "miss" },
            cached_at: fetched_at.filter(|_| is_stored).map(rfc3339),
            ..Metadata::default()
        };
        let raw_html = result.content.as_ref().filter(|_| wants(DocumentFormat::RawHtml)).cloned();
        let markdown = match article {
            Some(article) => {
                metadata.title = Some(article.title).filter(|title| !title.is_empty());
                metadata.description = article.description;
                metadata.author = article.author;
                metadata.og_site_name = article.site_name;
                metadata.published_time = article.published;
                Some(article.markdown)
            }
            // Text that is not HTML is returned as it is.
            None => result.content,
        };
        Ok(Document {
            markdown: markdown.filter(|_| wants(DocumentFormat::Markdown)),
            html,
            raw_html,
            links: links.filter(|_| wants(DocumentFormat::Links)),
            metadata,
        })
    }
}

/// Whether the site responded with a page, or with a status that says why there is none. The store selects the other
/// results of a batch: `MessageBatches::unanswered`.
fn has_document(result: &FetchResult) -> bool {
    let is_page = result.is_success() && result.content.is_some();
    is_page || result.http_status.is_some_and(|status| status == 304 || status >= 400)
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::MessageId;
    use fetchwell_policy::time::Time;
    use serde_json::{Value, json};

    use super::*;

    fn document(result: FetchResult, age: Option<Duration>) -> Option<Value> {
        let outbox = OutboxMessage {
            cursor: 1,
            message: MessageId([1; 16]),
            url: "http://a.test/".to_owned(),
            retailer: "shop".to_owned(),
            correlation_id: "c".to_owned(),
            created_at: Time::EPOCH,
            result,
        };
        Document::of(outbox, age).ok().map(|document| json!(document))
    }

    fn page(extracted: &Value) -> FetchResult {
        FetchResult {
            status: "success".to_owned(),
            content: Some("<p>Raw".to_owned()),
            content_type: Some("text/html".to_owned()),
            http_status: Some(200),
            extracted: Some(extracted.to_string()),
            details: Some(r#"{"final_url":"http://a.test/2","fetched_at":0}"#.to_owned()),
            ..FetchResult::default()
        }
    }

    #[test]
    fn a_document_has_the_formats_that_were_asked_for() {
        let article = json!({"title": "A", "text": "B", "markdown": "# A", "description": "D", "links": ["http://b.test/"]});
        for (formats, has) in [
            (json!(["markdown"]), &["markdown"][..]),
            (json!(["rawHtml", "links"]), &["rawHtml", "links"]),
            (json!(["html"]), &["html"]),
            (json!([]), &[]),
        ] {
            let mut extracted = article.clone();
            extracted["document"] = json!({"formats": formats, "language": "en"});
            if has.contains(&"html") {
                extracted["document"]["html"] = "<p>Raw</p>".into();
            }
            let document = document(page(&extracted), None).unwrap();
            let names = document.as_object().unwrap().keys().map(String::as_str);
            let mut names: Vec<_> = names.collect();
            names.sort_unstable();
            let mut expected = [has, &["metadata"]].concat();
            expected.sort_unstable();
            assert_eq!(names, expected);
            let metadata = &document["metadata"];
            assert_eq!(metadata["title"], "A");
            assert!(metadata.get("error").is_none(), "{metadata}");
            assert_eq!(
                (&metadata["sourceURL"], &metadata["url"]),
                (&json!("http://a.test/"), &json!("http://a.test/2"))
            );
            assert_eq!(
                (&metadata["statusCode"], &metadata["cacheState"]),
                (&json!(200), &json!("miss"))
            );
        }
        let stored = document(page(&json!({})), Some(Duration::ZERO)).unwrap();
        assert_eq!(stored["metadata"]["cacheState"], "hit");
        assert_eq!(stored["metadata"]["cachedAt"], "1970-01-01T00:00:00Z");
        assert_eq!(stored["metadata"]["error"], NO_FORMATS);
    }

    #[test]
    fn a_text_that_is_not_html_is_its_own_markdown() {
        let text = page(&json!({"document": {"formats": ["markdown", "html"]}}));
        let document = document(text, None).unwrap();
        assert_eq!(document["markdown"], "<p>Raw");
        assert!(document.get("html").is_none());
    }

    #[test]
    fn a_status_of_the_site_is_a_document_and_other_failures_are_none() {
        let failed = |status: &str, http_status| FetchResult {
            status: status.to_owned(),
            http_status,
            error: Some("why".to_owned()),
            ..FetchResult::default()
        };
        let missing = document(failed("http_error", Some(404)), None).unwrap();
        assert_eq!(missing["metadata"]["statusCode"], 404);
        assert_eq!(missing["metadata"]["error"], "why");
        assert!(missing.get("markdown").is_none());
        for (status, http_status) in [
            ("refused_by_robots", None),
            ("network_error", None),
            // A page that is too large, and one that is not text.
            ("http_error", Some(200)),
            ("success", Some(200)),
        ] {
            assert!(document(failed(status, http_status), None).is_none(), "{status}");
        }
    }
}
