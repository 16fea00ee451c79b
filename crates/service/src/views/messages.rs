//! Messages and results as callers see them.

use std::collections::BTreeMap;

use fetchwell_engine::ports::inbox::details::{CrawlPlace, FetchDetails, Redirect};
use fetchwell_engine::ports::inbox::options::{Extracted, ExtractedArticle};
use fetchwell_engine::ports::inbox::{
    KeptBody, Message, MessageId, MessageStatus, OutboxMessage, ResultBody,
};
use fetchwell_policy::rfc3339::rfc3339;
use http::HeaderValue;
use serde::Serialize;
use utoipa::ToSchema;

use super::schemas::{MessageStatus as StatusWord, ResultStatus};

/// A message, with its result if there is one.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageView {
    /// The id of the message.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub id: String,
    /// The same as `id`.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub message_id: String,
    /// The exact text that was posted.
    pub url: String,
    /// The retailer.
    pub retailer: String,
    /// The correlation id.
    pub correlation_id: String,
    /// The caller that sent it.
    pub caller_id: String,
    /// `queued`, `processing`, `completed` or `failed`.
    #[schema(value_type = StatusWord)]
    pub status: &'static str,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// Its result; null until there is one.
    #[schema(required)]
    pub outbox: Option<OutboxView>,
}

/// The result of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OutboxMessage)]
pub struct OutboxView {
    /// The id of the result.
    #[schema(example = "out_018bcfe56800ffffffffffffffffffff", pattern = "^out_[0-9a-f]{32}$")]
    pub id: String,
    /// Its position among the results of the caller; pass it as `after` to read the next ones.
    #[schema(example = "42", pattern = "^[0-9]+$")]
    pub cursor: String,
    /// The id of the message.
    pub inbox_message_id: String,
    /// The exact text that was posted.
    pub url: String,
    /// The retailer.
    pub retailer: String,
    /// The correlation id.
    pub correlation_id: String,
    /// `success`, `http_error`, `timeout`, `network_error`, `rate_limited`, `refused_by_robots`, `refused`,
    /// `internal_error` or `cancelled`; for pages of a crawl also `noindex` (the page asks not to be indexed) or
    /// `redirected` (it redirects to a page that is in another result of the crawl).
    #[schema(value_type = ResultStatus)]
    pub status: String,
    /// The page as text; null if there is none, or if it is not text.
    #[schema(required)]
    pub content: Option<String>,
    /// The Content-Type of the response.
    #[schema(required)]
    pub content_type: Option<String>,
    /// The body of the response, which GET /messages/{id}/body returns; null if there was none, if it was not kept, or
    /// if it has been deleted since.
    #[schema(required)]
    pub body: Option<BodyView>,
    /// The HTTP status of the last response.
    #[schema(required)]
    pub http_status: Option<u16>,
    /// What went wrong, or why a page has no content.
    #[schema(required)]
    pub error: Option<String>,
    /// The URL of the last request, after redirects; null if there was none, and in results of earlier versions.
    #[schema(required)]
    pub final_url: Option<String>,
    /// The redirects that led there, in order; empty if there were none.
    #[schema(required)]
    pub redirects: Option<Vec<RedirectView>>,
    /// When the last request ended; null if none was sent.
    #[schema(required, format = DateTime)]
    pub fetched_at: Option<String>,
    /// The ETag of the response. Send it as If-None-Match to get a 304 while the page stays the same.
    #[schema(required)]
    pub etag: Option<String>,
    /// The Last-Modified of the response.
    #[schema(required)]
    pub last_modified: Option<String>,
    /// Headers of the response by name: age, cache-control, content-disposition, content-language, content-length,
    /// content-type, date, etag, expires, last-modified, link, location, retry-after, server, vary and x-robots-tag,
    /// as far as it has them. A header over 4 KiB is left out.
    #[schema(required)]
    pub headers: Option<BTreeMap<String, String>>,
    /// Whether this is a stored page that answered a message with `max_age`.
    #[schema(required)]
    pub from_cache: Option<bool>,
    /// If so, the age of the page when it answered.
    #[schema(required)]
    pub age_seconds: Option<u64>,
    /// When the result was stored.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// The headline, if the message has `"extract": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// The text of the article, if the message has `"extract": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub text: Option<String>,
    /// The text as Markdown, if the message has `"extract": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub markdown: Option<String>,
    /// The authors, separated by commas, if the message has `"extract": true`; null if the page names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub author: Option<Option<String>>,
    /// The authors, one name per element, if the message has `"extract": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub authors: Option<Vec<String>>,
    /// When the article was published, if the message has `"extract": true`: a time as in RFC 3339 if the page states
    /// one with its zone, else a date such as `2024-05-17`; null if the page states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub published: Option<Option<String>>,
    /// The name of the site, if the message has `"extract": true`; null if the page states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub site_name: Option<Option<String>>,
    /// The page's own summary, if the message has `"extract": true`; null if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    /// The absolute URL that the page declares as its canonical one, if the message has `"extract": true`; null if it
    /// declares none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub canonical_url: Option<Option<String>>,
    /// The absolute URLs that the page links to, each once and in the order of the page, if the message has
    /// `"links": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub links: Option<Vec<String>>,
    /// The place of the page in its crawl, if a crawl found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub crawl: Option<CrawlPlaceView>,
}

/// The place of a page in its crawl.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CrawlPlace)]
pub struct CrawlPlaceView {
    /// The id of the crawl.
    #[schema(example = "crawl_018bcfe56800ffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$")]
    pub id: String,
    /// The number of links from a start page to this page. Pages from a sitemap have depth 1.
    pub depth: u32,
    /// The page or sitemap on which its URL was first found; null for a start page.
    #[schema(required)]
    pub parent: Option<String>,
    /// The number of links on the page, followed or not.
    pub links_found: u64,
}

impl From<CrawlPlace> for CrawlPlaceView {
    fn from(place: CrawlPlace) -> CrawlPlaceView {
        let CrawlPlace { id, depth, parent, links_found } = place;
        CrawlPlaceView { id, depth, parent, links_found }
    }
}

/// The body of a response, without its bytes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Body)]
pub struct BodyView {
    /// Its size.
    pub bytes: u64,
    /// The Content-Type that it is returned with: that of the response, or application/octet-stream.
    pub content_type: String,
    /// When it is deleted at the latest; null if it is kept as long as the result.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
}

impl BodyView {
    fn of(message: &OutboxMessage) -> Option<BodyView> {
        let result = &message.result;
        let content_bytes = result.content.as_ref().map_or(0, String::len) as u64;
        let (bytes, expires_at) = match result.body {
            ResultBody::Content => (content_bytes, None),
            ResultBody::Kept(KeptBody { bytes, expires_at }) => (bytes, Some(rfc3339(expires_at))),
            ResultBody::Absent | ResultBody::Deleted | ResultBody::New(_) => return None,
        };
        let content_type = body_content_type(result.content_type.as_deref()).to_owned();
        Some(BodyView { bytes, content_type, expires_at })
    }
}

/// The Content-Type that a body is returned with.
pub(crate) fn body_content_type(of_response: Option<&str>) -> &str {
    let is_valid = |value: &&str| !value.trim().is_empty() && HeaderValue::from_str(value).is_ok();
    of_response.filter(is_valid).unwrap_or("application/octet-stream")
}

/// A redirect that was followed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Redirect)]
pub struct RedirectView {
    /// The URL that redirected.
    pub url: String,
    /// The HTTP status of its response.
    #[schema(example = 301)]
    pub status: u16,
}

impl From<Redirect> for RedirectView {
    fn from(redirect: Redirect) -> RedirectView {
        RedirectView { url: redirect.url, status: redirect.status }
    }
}

impl From<Message> for MessageView {
    fn from(message: Message) -> MessageView {
        MessageView {
            id: message.id.to_string(),
            message_id: message.id.to_string(),
            url: message.url,
            retailer: message.retailer,
            correlation_id: message.correlation_id,
            caller_id: message.caller,
            status: status(message.status),
            created_at: rfc3339(message.created_at),
            attempts: message.attempts,
            outbox: message.outbox.map(OutboxView::from),
        }
    }
}

impl From<OutboxMessage> for OutboxView {
    fn from(message: OutboxMessage) -> OutboxView {
        let body = BodyView::of(&message);
        let result = message.result;
        let extracted: Option<Extracted> =
            result.extracted.and_then(|json| serde_json::from_str(&json).ok());
        let Extracted { article, links, .. } = extracted.unwrap_or_default();
        let details: Option<FetchDetails> =
            result.details.and_then(|json| serde_json::from_str(&json).ok());
        let header = |name| details.as_ref()?.header(name).map(str::to_owned);
        let etag = header("etag");
        let last_modified = header("last-modified");
        let is_known = details.is_some() || result.cached_age.is_some();
        let from_cache = is_known.then_some(result.cached_age.is_some());
        let fetched_at = details.as_ref().and_then(|details| details.fetched_at).map(rfc3339);
        let (final_url, redirects, headers, crawl) = match details {
            Some(FetchDetails { final_url, redirects, headers, crawl, .. }) => {
                let redirects = redirects.into_iter().map(RedirectView::from).collect();
                (Some(final_url), Some(redirects), headers, crawl.map(CrawlPlaceView::from))
            }
            None => (None, None, None, None),
        };
        let mut view = OutboxView {
            id: outbox_id(message.message),
            cursor: message.cursor.to_string(),
            inbox_message_id: message.message.to_string(),
            url: message.url,
            retailer: message.retailer,
            correlation_id: message.correlation_id,
            status: result.status,
            content: result.content,
            content_type: result.content_type,
            body,
            http_status: result.http_status,
            error: result.error,
            final_url,
            redirects,
            fetched_at,
            etag,
            last_modified,
            headers,
            from_cache,
            age_seconds: result.cached_age.map(|age| age.as_secs()),
            created_at: rfc3339(message.created_at),
            title: None,
            text: None,
            markdown: None,
            author: None,
            authors: None,
            published: None,
            site_name: None,
            description: None,
            canonical_url: None,
            links,
            crawl,
        };
        if let Some(article) = article {
            view.show(article);
        }
        view
    }
}

impl OutboxView {
    fn show(&mut self, article: ExtractedArticle) {
        self.title = Some(article.title);
        self.text = Some(article.text);
        self.markdown = Some(article.markdown);
        self.author = Some(article.author);
        self.authors = Some(article.authors);
        self.published = Some(article.published);
        self.site_name = Some(article.site_name);
        self.description = Some(article.description);
        self.canonical_url = Some(article.canonical_url);
    }
}

/// The `status` of a message.
pub fn status(status: MessageStatus) -> &'static str {
    match status {
        MessageStatus::Queued => "queued",
        MessageStatus::Processing => "processing",
        MessageStatus::Completed => "completed",
        MessageStatus::Failed => "failed",
    }
}

/// A message has one result, so its id is that of the message with another prefix.
fn outbox_id(message: MessageId) -> String {
    message.to_string().replacen("msg_", "out_", 1)
}
