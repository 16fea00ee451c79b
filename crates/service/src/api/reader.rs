//! `GET /r/{url}`: reads a page with one request, for a shell, a notebook or a prompt.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::OutboxMessage;
use fetchwell_engine::ports::inbox::options::Extracted;
use fetchwell_engine::web::PREFER_MARKDOWN;
use http::header::{ACCEPT, AGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, Uri};
use utoipa::OpenApi;

use super::fields::{DEFAULT_RETAILER, FetchRequest};
use super::identity::Identity;
use super::json::Json;
use super::problems::{CallerProblems, SenderProblems, StoreProblems};
use super::respond::json;
use super::{Api, ApiResult, PathName, prefer, values};
use crate::problem::{FieldError, PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::server::until_sent;
use crate::views::messages::OutboxView;

/// The path before the URL.
const PREFIX: &str = "/r/";

/// How old a stored page may be, if the request does not say.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);

/// How long to wait for the page, if the request does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// A fetched page can never act on our origin, whatever a browser makes of it.
const INERT: &str = "sandbox; default-src 'none'";

/// The part of the OpenAPI document about reading. Its path has no slashes in its parameter, as OpenAPI demands.
#[derive(OpenApi)]
#[openapi(paths(read))]
pub(super) struct ReaderDocument;

/// Read a page as Markdown
///
/// The page's URL follows `/r/` as it is, with its query: `/r/https://example.com/a?b=c`; without a scheme it is
/// https. The response is Markdown, unless `Accept` prefers `text/plain` or `application/json`. A page that was
/// fetched for you within the last hour is returned from the store, with its age in the header `Age`;
/// `Cache-Control: max-age=60` accepts pages of the last minute only, and `no-cache` always fetches the page. The
/// response waits up to 30 seconds for the page; `Prefer: wait=60` changes that.
#[utoipa::path(
    get,
    path = "/r/{url}",
    tag = "Messages",
    params(
        ("url" = String, Path, description = "the URL of the page; it need not be encoded", example = "https://example.com/page"),
        ("Accept" = Option<String>, Header, description = "text/markdown (default), text/plain or application/json"),
        ("Cache-Control" = Option<String>, Header, description = "max-age=N returns a stored page only if it is at most N seconds old (default 3600); no-cache always fetches the page", example = "max-age=60"),
        ("Prefer" = Option<String>, Header, description = "wait=N waits up to N seconds for the page, at most 60 (default 30)", example = "wait=60"),
    ),
    responses(
        (status = 200, description = "the page: as Markdown, as text, or as JSON with the fields of a result", content(
            (String = "text/markdown"), (String = "text/plain"), (OutboxView = "application/json")
        ), headers(("Age" = Option<u64>, description = "seconds since the page was stored, if it was not fetched for this request"))),
        (status = 406, description = "Accept allows none of the formats", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 422, description = "the URL is invalid or refused", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 502, description = "there is no page: `result` is the status of the result, and `detail` the reason", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 504, description = "the page was not fetched in time; the message in `message_id` is still queued", body = ProblemBody, content_type = PROBLEM_JSON,
            headers(("Retry-After" = u64, description = "seconds to wait"))
        ),
        CallerProblems, SenderProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn read(
    State(api): State<Arc<Api>>,
    identity: Identity,
    name: PathName,
    request: Request,
) -> ApiResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    let headers = request.headers();
    let format =
        Format::wanted(headers).ok_or_else(|| Problem::new(ProblemKind::NOT_ACCEPTABLE))?;
    let message = api.message_to_read(&url_in(request.uri(), name))?;
    let max_age = Some(max_age(headers)).filter(|age| !age.is_zero());
    let message = FetchRequest { max_age, ..message };
    let wait = prefer::wait(headers).unwrap_or(DEFAULT_WAIT);
    let page = api.read_page(&identity, message, wait).await?;
    let response = format.write(page.outbox)?;
    let response = match page.age {
        Some(age) => ([(AGE, age.as_secs().to_string())], response).into_response(),
        None => response,
    };
    Ok(until_sent(response, page.share))
}

impl Api {
    /// The message that asks for the Markdown of a page.
    pub(super) fn message_to_read(&self, url: &str) -> Result<FetchRequest, Problem> {
        let text = Json::Text(Cow::Borrowed(url));
        let (url, site) = values::web_url(&text, &self.on.guard)
            .map_err(|fault| Problem::invalid(vec![FieldError::in_parameter("url", fault)]))?;
        Ok(FetchRequest {
            url,
            site,
            retailer: DEFAULT_RETAILER.to_owned(),
            correlation_id: None,
            callback_url: None,
            max_age: None,
            deadline: self.rules.default_deadline,
            headers: vec![("accept".to_owned(), PREFER_MARKDOWN.to_owned())],
            extract: true,
            links: false,
            document: None,
        })
    }
}

/// The URL in the path and its query. It is not decoded, unless the client encoded it as a whole.
fn url_in(uri: &Uri, decoded: PathName) -> String {
    let whole = uri.path_and_query().map_or("", |path| path.as_str());
    let given = whole.strip_prefix(PREFIX).unwrap_or_default();
    let begins_with =
        |start: &str| given.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    if begins_with("http%3A") || begins_with("https%3A") {
        let path = decoded.map(|Path(path)| path).unwrap_or_default();
        return uri.query().map_or(path.clone(), |query| format!("{path}?{query}"));
    }
    // Some proxies merge slashes.
    for scheme in ["http:/", "https:/"] {
        let rest = given.get(scheme.len()..).filter(|_| begins_with(scheme));
        if let Some(rest) = rest {
            return format!("{scheme}/{}", rest.strip_prefix('/').unwrap_or(rest));
        }
    }
    // Another scheme is kept, for the error message.
    if given.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '.', '?'])) {
        return given.to_owned();
    }
    format!("https://{given}")
}

/// How old a stored page may be, by `Cache-Control` (RFC 9111, 5.2.1). Zero means that the page is fetched.
fn max_age(headers: &HeaderMap) -> Duration {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives = lines.flat_map(|line| line.split(',')).map(str::trim);
    let age_of = |directive: &str| {
        if directive.eq_ignore_ascii_case("no-cache") || directive.eq_ignore_ascii_case("no-store")
        {
            return Some(Duration::ZERO);
        }
        let (name, seconds) = directive.split_once('=')?;
        let is_max_age = name.eq_ignore_ascii_case("max-age");
        is_max_age.then(|| seconds.parse().ok().map(Duration::from_secs)).flatten()
    };
    directives.filter_map(age_of).min().unwrap_or(DEFAULT_MAX_AGE)
}

/// What a page is returned as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Markdown,
    Text,
    Json,
}

impl Format {
    /// The best first.
    const ALL: [Format; 3] = [Format::Markdown, Format::Text, Format::Json];

    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Format::Markdown => ("text", "markdown"),
            Format::Text => ("text", "plain"),
            Format::Json => ("application", "json"),
        }
    }

    /// The format that `Accept` prefers (RFC 9110, 12.5.1); `None` if it allows none.
    fn wanted(headers: &HeaderMap) -> Option<Format> {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<Range<'_>> =
            lines.flat_map(|line| line.split(',')).filter_map(Range::read).collect();
        if ranges.is_empty() {
            return Some(Format::Markdown);
        }
        let quality = |format: Format| {
            let fitting = ranges.iter().filter_map(|range| range.fits(format));
            fitting.max_by_key(|(precision, _)| *precision).map_or(0, |(_, quality)| quality)
        };
        let allowed = Format::ALL.into_iter().filter(|format| quality(*format) > 0);
        // The first of equals: `max_by_key` would return the last.
        allowed.reduce(|best, next| if quality(next) > quality(best) { next } else { best })
    }

    /// The response with the page, or the reason why there is none.
    fn write(self, outbox: OutboxMessage) -> ApiResult {
        let result = &outbox.result;
        if !result.is_success() || (result.content.is_none() && result.extracted.is_none()) {
            return Err(Problem::no_page(outbox));
        }
        if self == Format::Json {
            return Ok(inert(json(&OutboxView::from(outbox))));
        }
        let extracted: Option<Extracted> =
            result.extracted.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let article = extracted.and_then(|extracted| extracted.article);
        let (media_type, text) = match (self, article) {
            (Format::Markdown, Some(article)) => ("text/markdown", article.markdown),
            (_, Some(article)) => ("text/plain", article.text),
            // A text that is not HTML has no article. Markdown is what was asked for.
            (format, None) => {
                let stated = outbox.result.content_type.as_deref().unwrap_or_default();
                let is_markdown = stated.to_ascii_lowercase().starts_with("text/markdown");
                let media_type = match format {
                    Format::Markdown if is_markdown => "text/markdown",
                    _ => "text/plain",
                };
                (media_type, outbox.result.content.unwrap_or_default())
            }
        };
        let content_type = [(CONTENT_TYPE, format!("{media_type}; charset=utf-8"))];
        Ok(inert((content_type, text).into_response()))
    }
}

/// A range of media types in `Accept`, with its quality in thousandths.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: u32,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Range<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let quality = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value: f32 = value.trim().parse().ok()?;
            let thousandths = (value.clamp(0.0, 1.0) * 1_000.0) as u32;
            name.trim().eq_ignore_ascii_case("q").then_some(thousandths)
        });
        Some(Range { kind, subtype, quality: quality.unwrap_or(1_000) })
    }

    /// How precisely it names the format, and its quality; `None` if it does not include the format.
    fn fits(&self, format: Format) -> Option<(u8, u32)> {
        let (kind, subtype) = format.media_type();
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        let precision = match (self.kind, self.subtype) {
            ("*", "*") => 0,
            (_, "*") if is_kind => 1,
            (_, own) if is_kind && own.eq_ignore_ascii_case(subtype) => 2,
            _ => return None,
        };
        Some((precision, self.quality))
    }
}

/// Keeps a page from acting on our origin.
pub(super) fn inert(response: Response) -> Response {
    ([(CONTENT_SECURITY_POLICY, INERT)], response).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_what_follows_the_prefix() {
        for (path, url) in [
            ("/r/https://a.test/b?c=d%20e&f", "https://a.test/b?c=d%20e&f"),
            ("/r/http://a.test:8080/", "http://a.test:8080/"),
            ("/r/a.test/b", "https://a.test/b"),
            ("/r/https:/a.test/b", "https://a.test/b"),
            ("/r/HTTP:/a.test/b", "http://a.test/b"),
            ("/r/https://a.test/%2F?u=http://b.test", "https://a.test/%2F?u=http://b.test"),
            ("/r/ftp://a.test/", "ftp://a.test/"),
            ("/r/a.test/?u=http://b.test", "https://a.test/?u=http://b.test"),
        ] {
            let name = Ok(Path("decoded".to_owned()));
            assert_eq!(url_in(&path.parse().unwrap(), name), url, "{path}");
        }
        let encoded = "/r/https%3A%2F%2Fa.test%2Fb%3Fc?d=e".parse().unwrap();
        let name = Ok(Path("https://a.test/b?c".to_owned()));
        assert_eq!(url_in(&encoded, name), "https://a.test/b?c?d=e");
    }

    #[test]
    fn the_format_is_the_one_that_accept_prefers() {
        for (accept, expected) in [
            ("*/*", Some(Format::Markdown)),
            ("text/*", Some(Format::Markdown)),
            ("text/plain", Some(Format::Text)),
            ("Application/JSON", Some(Format::Json)),
            ("text/plain;q=0.5, application/json", Some(Format::Json)),
            ("text/markdown;q=0.1, */*", Some(Format::Text)),
            ("text/markdown;q=0, text/*", Some(Format::Text)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Some(Format::Markdown)),
            ("text/html", None),
            ("*/*;q=0", None),
            ("nonsense", Some(Format::Markdown)),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(Format::wanted(&headers), expected, "{accept}");
        }
        assert_eq!(Format::wanted(&HeaderMap::new()), Some(Format::Markdown));
    }

    #[test]
    fn the_strictest_directive_says_how_old_a_page_may_be() {
        for (value, seconds) in [
            ("max-age=60", 60),
            ("Max-Age=0", 0),
            ("no-cache", 0),
            ("max-age=60, no-cache", 0),
            ("max-age=60, max-age=30", 30),
            ("max-age=x", 3_600),
            ("no-transform", 3_600),
        ] {
            let headers = HeaderMap::from_iter([(CACHE_CONTROL, value.parse().unwrap())]);
            assert_eq!(max_age(&headers).as_secs(), seconds, "{value}");
        }
    }
}
