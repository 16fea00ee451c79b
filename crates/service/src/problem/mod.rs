//! Errors as RFC 9457 problems, the only error type of the API.

mod kind;

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::{FetchResult, MessageId, OutboxMessage};
use fetchwell_policy::units::quantity;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use kind::ProblemKind;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The prefix of every `type`.
const KIND_PREFIX: &str = "/docs#problem-";

/// When to ask again for a page that was not fetched in time.
const NOT_IN_TIME_RETRY_SECONDS: u64 = 5;

/// An error response. The body is boxed to keep `Result`s small.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    retry_after_seconds: Option<u64>,
    /// Whether this server stops before it can do what was requested.
    is_stopping: bool,
    body: Box<ProblemBody>,
}

/// A problem as defined by RFC 9457.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Names the kind of problem: `/docs#problem-NAME`.
    #[serde(rename = "type")]
    #[schema(example = "/docs#problem-invalid-field")]
    kind: String,
    /// The kind in a few words.
    title: &'static str,
    /// The status code.
    #[schema(example = 422)]
    status: u16,
    /// What went wrong, and how to fix it.
    detail: String,
    /// The URL of the message that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The correlation id of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    /// The id of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    /// The status of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The errors in parts of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FieldError>,
    /// The oldest cursor after which no results are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<String>,
}

/// An error in a part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// The invalid part of the body, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/url")]
    pub(crate) pointer: Option<String>,
    /// The invalid parameter of the path or the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<String>,
    /// The invalid header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<&'static str>,
    /// What is wrong, and what it should be.
    pub(crate) detail: String,
    /// In a batch: the index of the message, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<usize>,
    /// In a batch: the URL of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// In a batch: the correlation id of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
}

impl FieldError {
    /// The error with the name of its part: `formats.0 is unknown`.
    fn text(&self) -> String {
        let pointer = self.pointer.as_deref().map(|pointer| {
            pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
        });
        let part = pointer.or_else(|| self.parameter.clone());
        let part = part.or_else(|| self.header.map(str::to_owned)).filter(|part| !part.is_empty());
        format!("{} {}", part.as_deref().unwrap_or("the body"), self.detail)
    }

    /// An error in a part of the body.
    pub(crate) fn at(pointer: impl Into<String>, detail: impl Into<String>) -> FieldError {
        let pointer = Some(pointer.into());
        FieldError { pointer, detail: detail.into(), ..FieldError::default() }
    }

    /// An error in a parameter of the path or the query.
    pub(crate) fn in_parameter(
        parameter: impl Into<String>,
        detail: impl Into<String>,
    ) -> FieldError {
        let parameter = Some(parameter.into());
        FieldError { parameter, detail: detail.into(), ..FieldError::default() }
    }

    /// An error in a header.
    pub(crate) fn in_header(header: &'static str, detail: impl Into<String>) -> FieldError {
        FieldError { header: Some(header), detail: detail.into(), ..FieldError::default() }
    }
}

impl Problem {
    /// A problem of this kind, with the default `detail`.
    pub(crate) fn new(kind: ProblemKind) -> Problem {
        let body = ProblemBody {
            kind: format!("{KIND_PREFIX}{}", kind.name),
            title: kind.title,
            status: kind.status.as_u16(),
            detail: kind.mend.to_owned(),
            ..ProblemBody::default()
        };
        Problem { kind, retry_after_seconds: None, is_stopping: false, body: Box::new(body) }
    }

    /// A problem that lists the invalid parts of the request.
    pub(crate) fn invalid(errors: Vec<FieldError>) -> Problem {
        let mut problem = Problem::new(ProblemKind::INVALID_FIELD);
        problem.body.errors = errors;
        problem
    }

    /// The problem for a cursor that is not in the outbox.
    pub(crate) fn gone(oldest: i64) -> Problem {
        let mut problem = Problem::new(ProblemKind::CURSOR_GONE);
        problem.body.oldest = Some(oldest.to_string());
        problem
    }

    /// The problem for a page that could not be fetched. If this program failed, it does not blame the site.
    pub(crate) fn no_page(outbox: OutboxMessage) -> Problem {
        let is_ours = outbox.result.status == FetchResult::INTERNAL_ERROR;
        let kind = if is_ours { ProblemKind::INTERNAL } else { ProblemKind::NO_PAGE };
        let mut problem = Problem::new(kind);
        if let Some(error) = outbox.result.error {
            problem.body.detail = error;
        }
        problem.body.url = Some(outbox.url);
        problem.body.message_id = Some(outbox.message.to_string());
        problem.body.result = Some(outbox.result.status);
        problem
    }

    /// The problem for a message without a body, with the reason.
    pub(crate) fn no_body(message: MessageId, reason: impl Into<String>) -> Problem {
        let mut problem = Problem::new(ProblemKind::NO_BODY).saying(reason);
        problem.body.message_id = Some(message.to_string());
        problem
    }

    /// The problem for a page that was not fetched within this time.
    pub(crate) fn not_in_time(message: MessageId, waited: Duration) -> Problem {
        let waited = quantity(waited.as_secs(), "second", "seconds");
        let detail =
            format!("The page was not fetched within {waited}. {}", ProblemKind::NOT_IN_TIME.mend);
        let mut problem = Problem::new(ProblemKind::NOT_IN_TIME).saying(detail);
        problem.body.message_id = Some(message.to_string());
        problem.retry_after(NOT_IN_TIME_RETRY_SECONDS)
    }

    /// The same if the wait ended early because this server is stopping.
    pub(crate) fn stopped_waiting(message: MessageId) -> Problem {
        let detail = format!("This server is stopping. {}", ProblemKind::NOT_IN_TIME.mend);
        let problem = Problem::not_in_time(message, Duration::ZERO).saying(detail);
        Problem { is_stopping: true, ..problem }
    }

    /// Whether the cause is that this server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Whether a page was not fetched within the time that the request may wait.
    pub(crate) fn is_not_in_time(&self) -> bool {
        self.kind.name == ProblemKind::NOT_IN_TIME.name
    }

    /// The invalid parts of the request.
    #[cfg(test)]
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.body.errors
    }

    /// The name of the kind.
    pub(crate) fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The status code.
    pub(crate) fn status(&self) -> StatusCode {
        self.kind.status
    }

    /// What went wrong, in one text: the invalid parts of the request with their names, or the `detail`.
    pub(crate) fn text(&self) -> String {
        match self.body.errors.as_slice() {
            [] => self.body.detail.clone(),
            errors => errors.iter().map(FieldError::text).collect::<Vec<_>>().join("; "),
        }
    }

    /// What went wrong, and how to fix it.
    pub(crate) fn detail(&self) -> &str {
        &self.body.detail
    }

    /// The status of the result, if the problem is about one.
    pub(crate) fn result(&self) -> Option<&str> {
        self.body.result.as_deref()
    }

    /// The id of the message that the problem is about.
    pub(crate) fn message_id(&self) -> Option<&str> {
        self.body.message_id.as_deref()
    }

    /// When the request may be repeated.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// Replaces the `detail`.
    pub(crate) fn saying(mut self, detail: impl Into<String>) -> Problem {
        self.body.detail = detail.into();
        self
    }

    /// Adds the message that the problem is about.
    pub(crate) fn about(mut self, url: Option<String>, correlation_id: Option<String>) -> Problem {
        (self.body.url, self.body.correlation_id) = (url, correlation_id);
        self
    }

    /// The body alone, for a problem that is part of a response.
    pub(crate) fn into_body(self) -> ProblemBody {
        *self.body
    }

    /// Adds the header Retry-After.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.kind.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.kind.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::time::Time;

    use super::*;

    #[test]
    fn a_fault_of_ours_is_not_blamed_on_the_site() {
        for (result, status) in [("http_error", 502), (FetchResult::INTERNAL_ERROR, 500)] {
            let outbox = OutboxMessage {
                cursor: 1,
                message: MessageId([1; 16]),
                url: "http://a.test/".to_owned(),
                retailer: "shop".to_owned(),
                correlation_id: "c".to_owned(),
                created_at: Time::EPOCH,
                result: FetchResult { status: result.to_owned(), ..FetchResult::default() },
            };
            assert_eq!(Problem::no_page(outbox).into_response().status().as_u16(), status);
        }
    }

    #[test]
    fn the_text_names_all_invalid_parts() {
        let problem = Problem::invalid(vec![
            FieldError::at("/formats/0", "is unknown"),
            FieldError::in_parameter("limit", "must be 1"),
            FieldError::at("", "is not an object"),
        ]);
        let text = "formats.0 is unknown; limit must be 1; the body is not an object";
        assert_eq!(problem.text(), text);
        let slow = Problem::new(ProblemKind::TOO_MANY_REQUESTS);
        assert_eq!(slow.text(), ProblemKind::TOO_MANY_REQUESTS.mend);
    }

    #[test]
    fn a_problem_is_one_of_rfc_9457() {
        let problem = Problem::invalid(vec![FieldError::at("/url", "is missing")])
            .about(Some("http://a.test/".to_owned()), None);
        let json = serde_json::to_value(&problem.body).unwrap();
        let expected = serde_json::json!({
            "type": "/docs#problem-invalid-field",
            "title": ProblemKind::INVALID_FIELD.title,
            "status": 422,
            "detail": ProblemKind::INVALID_FIELD.mend,
            "url": "http://a.test/",
            "errors": [{"pointer": "/url", "detail": "is missing"}],
        });
        assert_eq!(json, expected);
        let response = Problem::new(ProblemKind::TOO_MANY_REQUESTS).retry_after(3).into_response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (429, &HeaderValue::from(3))
        );
    }
}
