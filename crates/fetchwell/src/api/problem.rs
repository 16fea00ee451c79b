//! Errors as RFC 9457 problems: the one error of the API.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) const CONTENT_TYPE_OF_PROBLEMS: &str = "application/problem+json";

/// What kind of problem it is. Its name is stable: programs branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    MalformedJson,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    SlowRequest,
    CursorGone,
    TooLarge,
    UnsupportedMediaType,
    InvalidField,
    KeyReused,
    TooManyRequests,
    Internal,
    StoreUnavailable,
}

impl Kind {
    /// All of them, by status.
    pub(crate) const ALL: [Kind; 14] = [
        Kind::MalformedJson,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::SlowRequest,
        Kind::CursorGone,
        Kind::TooLarge,
        Kind::UnsupportedMediaType,
        Kind::InvalidField,
        Kind::KeyReused,
        Kind::TooManyRequests,
        Kind::Internal,
        Kind::StoreUnavailable,
    ];

    /// The last part of its type: `/docs#problem-NAME`.
    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    /// Its status.
    pub(crate) fn status(self) -> StatusCode {
        self.row().1
    }

    /// In a few words.
    pub(crate) fn title(self) -> &'static str {
        self.row().2
    }

    /// What to do about it, where there is no more to say.
    pub(crate) fn mend(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Kind::MalformedJson => (
                "malformed-json",
                S::BAD_REQUEST,
                "The body is not JSON",
                "Send one JSON object, in UTF-8.",
            ),
            Kind::Unauthorized => (
                "unauthorized",
                S::UNAUTHORIZED,
                "A valid token is needed",
                "Send the header Authorization: Bearer TOKEN with a token that was not revoked; \
                 `fetchwell callers add NAME` makes one.",
            ),
            Kind::Forbidden => (
                "forbidden",
                S::FORBIDDEN,
                "The caller's role does not allow this",
                "A viewer may read, and send nothing; use the token of a caller or an operator.",
            ),
            Kind::NotFound => (
                "not-found",
                S::NOT_FOUND,
                "There is no such thing",
                "Check the path; a message is found by the caller that sent it, until its retention ends.",
            ),
            Kind::MethodNotAllowed => (
                "method-not-allowed",
                S::METHOD_NOT_ALLOWED,
                "The method is not allowed here",
                "Use one of the methods in the header Allow.",
            ),
            Kind::SlowRequest => (
                "slow-request",
                S::REQUEST_TIMEOUT,
                "The request took too long to come",
                "Send the whole body within 30 seconds.",
            ),
            Kind::CursorGone => (
                "cursor-gone",
                S::GONE,
                "What follows this cursor was taken out",
                "Go on after the cursor in `oldest`: all that is left comes after it.",
            ),
            Kind::TooLarge => (
                "too-large",
                S::PAYLOAD_TOO_LARGE,
                "The body is too large",
                "Send less at once; /fetch/batch takes more than /fetch.",
            ),
            Kind::UnsupportedMediaType => (
                "unsupported-media-type",
                S::UNSUPPORTED_MEDIA_TYPE,
                "The body is not of a type that is read here",
                "Send Content-Type: application/json, without a Content-Encoding.",
            ),
            Kind::InvalidField => (
                "invalid-field",
                S::UNPROCESSABLE_ENTITY,
                "Something in the request is missing or invalid",
                "Each entry of `errors` says what, and what it should be.",
            ),
            Kind::KeyReused => (
                "key-reused",
                S::UNPROCESSABLE_ENTITY,
                "The Idempotency-Key was used for something else",
                "Use a new key for a new request; the same key needs the same body, byte for byte.",
            ),
            Kind::TooManyRequests => (
                "too-many-requests",
                S::TOO_MANY_REQUESTS,
                "The caller is over its own limit",
                "Wait as long as the header Retry-After says.",
            ),
            Kind::Internal => (
                "internal",
                S::INTERNAL_SERVER_ERROR,
                "Something inside failed",
                "Send it again; with an Idempotency-Key nothing is accepted twice.",
            ),
            Kind::StoreUnavailable => (
                "store-unavailable",
                S::SERVICE_UNAVAILABLE,
                "The store can't be reached",
                "Send it again after the time in the header Retry-After; with an Idempotency-Key \
                 nothing is accepted twice.",
            ),
        }
    }
}

/// A problem, by RFC 9457.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Names the kind of problem: `/docs#problem-NAME`.
    #[serde(rename = "type")]
    #[schema(example = "/docs#problem-invalid-field")]
    kind: String,
    /// The kind in a few words.
    title: &'static str,
    /// The status code.
    #[schema(example = 422)]
    status: u16,
    /// What went wrong this time, and what to do about it.
    detail: String,
    /// The URL of the message that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The caller's own name for that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    /// What is wrong with single parts of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    /// The oldest cursor after which all is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<String>,
    #[serde(skip)]
    of: KindOf,
    #[serde(skip)]
    retry_after_seconds: Option<u64>,
}

/// So that `Problem` keeps its kind without a schema for it.
#[derive(Clone, Copy, Debug)]
struct KindOf(Kind);

/// What is wrong with a part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// Which part of the body, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/url")]
    pub(crate) pointer: Option<String>,
    /// Which parameter of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<&'static str>,
    /// Which header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<&'static str>,
    /// What is wrong, and what it should be.
    pub(crate) detail: String,
    /// In a batch: which message it is, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<usize>,
    /// In a batch: that message's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// In a batch: the caller's own name for that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
}

impl FieldError {
    /// Something is wrong with this part of the body.
    pub(crate) fn at(pointer: impl Into<String>, detail: impl Into<String>) -> FieldError {
        let (pointer, detail) = (Some(pointer.into()), detail.into());
        FieldError { pointer, detail, ..FieldError::default() }
    }

    /// Something is wrong with this parameter of the query.
    pub(crate) fn in_query(parameter: &'static str, detail: impl Into<String>) -> FieldError {
        let (parameter, detail) = (Some(parameter), detail.into());
        FieldError { parameter, detail, ..FieldError::default() }
    }

    /// Something is wrong with this header.
    pub(crate) fn in_header(header: &'static str, detail: impl Into<String>) -> FieldError {
        let (header, detail) = (Some(header), detail.into());
        FieldError { header, detail, ..FieldError::default() }
    }
}

impl Problem {
    /// A problem of this kind, about which there is no more to say.
    pub(crate) fn new(kind: Kind) -> Problem {
        Problem {
            kind: format!("/docs#problem-{}", kind.name()),
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: kind.mend().to_owned(),
            url: None,
            correlation_id: None,
            errors: Vec::new(),
            oldest: None,
            of: KindOf(kind),
            retry_after_seconds: None,
        }
    }

    /// These parts of the request are wrong.
    pub(crate) fn invalid(errors: Vec<FieldError>) -> Problem {
        Problem { errors, ..Problem::new(Kind::InvalidField) }
    }

    /// Results up to this cursor were taken out.
    pub(crate) fn gone(oldest: i64) -> Problem {
        Problem { oldest: Some(oldest.to_string()), ..Problem::new(Kind::CursorGone) }
    }

    /// The same in other words.
    pub(crate) fn saying(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// The same about a message.
    pub(crate) fn about(mut self, url: Option<String>, correlation_id: Option<String>) -> Problem {
        (self.url, self.correlation_id) = (url, correlation_id);
        self
    }

    /// The same with a time after which it is worth trying again.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let KindOf(kind) = self.of;
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (kind.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE_OF_PROBLEMS));
        if kind == Kind::Unauthorized {
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
    use super::*;

    #[test]
    fn kinds_have_names_of_their_own() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.is_sorted_by_key(|kind| kind.status()));
    }

    #[test]
    fn a_problem_is_one_of_rfc_9457() {
        let problem = Problem::invalid(vec![FieldError::at("/url", "is missing")])
            .about(Some("http://a.test/".to_owned()), None);
        let json = serde_json::to_value(&problem).unwrap();
        let expected = serde_json::json!({
            "type": "/docs#problem-invalid-field",
            "title": Kind::InvalidField.title(),
            "status": 422,
            "detail": Kind::InvalidField.mend(),
            "url": "http://a.test/",
            "errors": [{"pointer": "/url", "detail": "is missing"}],
        });
        assert_eq!(json, expected);
        let response = Problem::new(Kind::TooManyRequests).retry_after(3).into_response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (429, &HeaderValue::from(3))
        );
    }
}
