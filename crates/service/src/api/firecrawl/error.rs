//! Errors in the shape of Firecrawl: `{"success": false, "error": "…", "code": "…"}`.
//!
//! Its clients give some status codes a special meaning: 403 is a page that cannot be fetched, 408 a page that was not
//! fetched in time. They retry after a 502, which would send requests to a failing site again and again.

use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::FetchResult;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode, Uri};
use serde::Serialize;

use crate::api::respond::json;
use crate::problem::{Problem, ProblemKind};

/// The `code` of a page that was not fetched in time, as the clients know it.
const TIMEOUT: &str = "SCRAPE_TIMEOUT";

/// The `code` of a page that cannot be returned as a document.
const NOT_TEXT: &str = "not-text";

/// An error response.
#[derive(Debug)]
pub(super) struct FirecrawlError {
    status: StatusCode,
    code: String,
    error: String,
    retry_after_seconds: Option<u64>,
}

#[derive(Serialize)]
struct Body<'a> {
    success: bool,
    error: &'a str,
    code: &'a str,
}

impl From<Problem> for FirecrawlError {
    fn from(problem: Problem) -> FirecrawlError {
        let kind = problem.name();
        let (status, code) = if kind == ProblemKind::KEY_REUSED.name {
            (StatusCode::CONFLICT, kind.to_owned())
        } else {
            match problem.status() {
                StatusCode::UNPROCESSABLE_ENTITY => (StatusCode::BAD_REQUEST, kind.to_owned()),
                StatusCode::GATEWAY_TIMEOUT => (StatusCode::REQUEST_TIMEOUT, TIMEOUT.to_owned()),
                StatusCode::BAD_GATEWAY => of_result(problem.result().unwrap_or_default()),
                status => (status, kind.to_owned()),
            }
        };
        let retry_after_seconds = problem.retry_after_seconds();
        let mut error = problem.text();
        // The text may refer to it, and this format has no field for it.
        error.extend(problem.message_id().map(|id| format!(" (message_id: {id})")));
        FirecrawlError { status, code, error, retry_after_seconds }
    }
}

/// The error for a page that could not be fetched, by the status of its result.
fn of_result(result: &str) -> (StatusCode, String) {
    match result {
        "timeout" => (StatusCode::REQUEST_TIMEOUT, TIMEOUT.to_owned()),
        FetchResult::CANCELLED => (StatusCode::CONFLICT, result.to_owned()),
        FetchResult::REFUSED_BY_ROBOTS | FetchResult::SUCCESS | "refused" => {
            (StatusCode::FORBIDDEN, code_of(result).to_owned())
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, result.to_owned()),
    }
}

/// The `code` for the status of a result without a document. With `success`, the page was fetched, but is not text.
pub(super) fn code_of(result: &str) -> &str {
    if result == FetchResult::SUCCESS { NOT_TEXT } else { result }
}

impl IntoResponse for FirecrawlError {
    fn into_response(self) -> Response {
        let body = Body { success: false, error: &self.error, code: &self.code };
        let mut response = json(&body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// The response to a known path with another method.
pub(super) async fn method_not_allowed() -> FirecrawlError {
    Problem::new(ProblemKind::METHOD_NOT_ALLOWED).into()
}

/// The response to endpoints of Firecrawl that this service does not implement.
pub(super) async fn no_such_endpoint(uri: Uri) -> FirecrawlError {
    let path: String = uri.path().chars().take(100).collect();
    let name = path.split('/').nth(2).unwrap_or_default();
    let what = match name {
        "crawl" => {
            "the service does not crawl sites; list the pages of a site with /v2/map and send them to \
             /v2/batch/scrape, or use the command `fetchwell crawl`"
        }
        "search" => "Fetchwell does not search the web",
        "extract" | "agent" | "deep-research" | "llmstxt" => "Fetchwell uses no language model",
        "browser" | "interact" => "Fetchwell has no browser",
        _ => "the available endpoints are /v2/scrape, /v2/batch/scrape and /v2/map",
    };
    FirecrawlError {
        status: StatusCode::NOT_IMPLEMENTED,
        code: "not-implemented".to_owned(),
        error: format!("{path} is not implemented: {what}."),
        retry_after_seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::ports::inbox::{MessageId, OutboxMessage};
    use fetchwell_policy::time::Time;

    use super::*;
    use crate::problem::FieldError;

    fn of(problem: Problem) -> (u16, String) {
        let error = FirecrawlError::from(problem);
        (error.status.as_u16(), error.code)
    }

    #[test]
    fn problems_get_the_status_that_the_clients_know() {
        let invalid = Problem::invalid(vec![FieldError::at("/url", "is missing")]);
        assert_eq!(FirecrawlError::from(invalid.clone()).error, "url is missing");
        let late = Problem::not_in_time(MessageId([1; 16]), Duration::ZERO);
        let named = format!(" (message_id: {})", MessageId([1; 16]));
        assert!(FirecrawlError::from(late).error.ends_with(&named));
        for (problem, status, code) in [
            (invalid, 400, "invalid-field"),
            (Problem::new(ProblemKind::MALFORMED_JSON), 400, "malformed-json"),
            (Problem::new(ProblemKind::KEY_REUSED), 409, "key-reused"),
            (Problem::new(ProblemKind::UNAUTHORIZED), 401, "unauthorized"),
            (Problem::new(ProblemKind::TOO_MANY_REQUESTS), 429, "too-many-requests"),
            (Problem::new(ProblemKind::STORE_UNAVAILABLE), 503, "store-unavailable"),
            (Problem::not_in_time(MessageId([1; 16]), Duration::ZERO), 408, TIMEOUT),
        ] {
            assert_eq!(of(problem), (status, code.to_owned()));
        }
    }

    #[test]
    fn a_page_that_cannot_be_fetched_is_never_a_502() {
        for (result, status, code) in [
            ("refused_by_robots", 403, "refused_by_robots"),
            ("refused", 403, "refused"),
            ("success", 403, "not-text"),
            ("timeout", 408, TIMEOUT),
            ("cancelled", 409, "cancelled"),
            ("network_error", 500, "network_error"),
            ("http_error", 500, "http_error"),
            ("internal_error", 500, "internal"),
        ] {
            let result = FetchResult { status: result.to_owned(), ..FetchResult::default() };
            let outbox = OutboxMessage {
                cursor: 1,
                message: MessageId([1; 16]),
                url: "http://a.test/".to_owned(),
                retailer: "shop".to_owned(),
                correlation_id: "c".to_owned(),
                created_at: Time::EPOCH,
                result,
            };
            assert_eq!(of(Problem::no_page(outbox)), (status, code.to_owned()));
        }
    }
}
