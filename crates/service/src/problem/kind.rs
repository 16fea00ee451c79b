//! The kinds of problems, each with its name, its status and how to fix it.

use http::StatusCode;

/// The kind of a problem. Its name is stable, since programs branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    MalformedJson,
    BadHost,
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
    TooManyConnections,
    Internal,
    StoreUnavailable,
    Busy,
}

impl ProblemKind {
    /// All kinds, sorted by status.
    pub(crate) const ALL: [ProblemKind; 17] = [
        ProblemKind::MalformedJson,
        ProblemKind::BadHost,
        ProblemKind::Unauthorized,
        ProblemKind::Forbidden,
        ProblemKind::NotFound,
        ProblemKind::MethodNotAllowed,
        ProblemKind::SlowRequest,
        ProblemKind::CursorGone,
        ProblemKind::TooLarge,
        ProblemKind::UnsupportedMediaType,
        ProblemKind::InvalidField,
        ProblemKind::KeyReused,
        ProblemKind::TooManyRequests,
        ProblemKind::TooManyConnections,
        ProblemKind::Internal,
        ProblemKind::StoreUnavailable,
        ProblemKind::Busy,
    ];

    /// The last part of its type: `/docs#problem-NAME`.
    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    pub(crate) fn status(self) -> StatusCode {
        self.row().1
    }

    /// The `title` of the problem.
    pub(crate) fn title(self) -> &'static str {
        self.row().2
    }

    /// How to fix it; the default `detail` of the problem.
    pub(crate) fn mend(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            ProblemKind::MalformedJson => (
                "malformed-json",
                S::BAD_REQUEST,
                "The body is not JSON",
                "Send one JSON object, in UTF-8, without duplicate keys.",
            ),
            ProblemKind::BadHost => (
                "bad-host",
                S::BAD_REQUEST,
                "The request does not name exactly one host",
                "Send one header Host with the name or address of this server.",
            ),
            ProblemKind::Unauthorized => (
                "unauthorized",
                S::UNAUTHORIZED,
                "A valid token is required",
                "Send the header Authorization: Bearer TOKEN with a token that was not revoked; \
                 `fetchwell callers add NAME` creates one.",
            ),
            ProblemKind::Forbidden => (
                "forbidden",
                S::FORBIDDEN,
                "The caller's role does not allow this",
                "A viewer may only read; use the token of a caller or an operator.",
            ),
            ProblemKind::NotFound => (
                "not-found",
                S::NOT_FOUND,
                "Not found",
                "Check the path; only the caller that sent a message can read it, until its \
                 retention ends.",
            ),
            ProblemKind::MethodNotAllowed => (
                "method-not-allowed",
                S::METHOD_NOT_ALLOWED,
                "The method is not allowed here",
                "Use one of the methods in the header Allow.",
            ),
            ProblemKind::SlowRequest => (
                "slow-request",
                S::REQUEST_TIMEOUT,
                "The request took too long to arrive",
                "Send the whole body within 30 seconds.",
            ),
            ProblemKind::CursorGone => (
                "cursor-gone",
                S::GONE,
                "This cursor is not in the outbox",
                "Continue with the cursor in `oldest`; it returns every result that the outbox still has. Either \
                 results after your cursor were deleted when their retention ended, or your cursor is ahead of the \
                 outbox because the store was replaced or restored from a backup.",
            ),
            ProblemKind::TooLarge => (
                "too-large",
                S::PAYLOAD_TOO_LARGE,
                "The body is too large",
                "Send less at once; /fetch/batch takes more than /fetch.",
            ),
            ProblemKind::UnsupportedMediaType => (
                "unsupported-media-type",
                S::UNSUPPORTED_MEDIA_TYPE,
                "The media type of the body is not supported",
                "Send Content-Type: application/json, without a Content-Encoding.",
            ),
            ProblemKind::InvalidField => (
                "invalid-field",
                S::UNPROCESSABLE_ENTITY,
                "Something in the request is missing or invalid",
                "Each entry of `errors` says what is wrong, and what it should be.",
            ),
            ProblemKind::KeyReused => (
                "key-reused",
                S::UNPROCESSABLE_ENTITY,
                "The Idempotency-Key was used for another request",
                "Use a new key for a new request; the same key needs the same body, byte for byte.",
            ),
            ProblemKind::TooManyRequests => (
                "too-many-requests",
                S::TOO_MANY_REQUESTS,
                "The caller is over its own limit",
                "Wait as long as the header Retry-After says.",
            ),
            ProblemKind::TooManyConnections => (
                "too-many-connections",
                S::TOO_MANY_REQUESTS,
                "One address has too many connections",
                "Open fewer connections at once and reuse them. If the address is a proxy in front of this server, \
                 add it to `api.trusted_proxies`.",
            ),
            ProblemKind::Internal => (
                "internal",
                S::INTERNAL_SERVER_ERROR,
                "Internal error",
                "Send the request again; with an Idempotency-Key nothing is accepted twice.",
            ),
            ProblemKind::Busy => (
                "busy",
                S::SERVICE_UNAVAILABLE,
                "The server has no memory or connection left for this request",
                "Send the request again after the time in the header Retry-After; send fewer large \
                 requests at once.",
            ),
            ProblemKind::StoreUnavailable => (
                "store-unavailable",
                S::SERVICE_UNAVAILABLE,
                "The store cannot be reached",
                "Send the request again after the time in the header Retry-After; with an \
                 Idempotency-Key nothing is accepted twice.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_of_their_own() {
        let mut names: Vec<_> = ProblemKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ProblemKind::ALL.len());
        assert!(ProblemKind::ALL.is_sorted_by_key(|kind| kind.status()));
    }

    #[test]
    fn the_page_of_errors_lists_them() {
        let listed = fetchwell_testkit::documented::table("Problems of the API");
        let listed: Vec<_> = listed.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        let statuses = ProblemKind::ALL.map(|kind| kind.status().as_u16().to_string());
        let known: Vec<_> = ProblemKind::ALL
            .iter()
            .zip(&statuses)
            .map(|(kind, s)| (kind.name(), s.as_str()))
            .collect();
        assert_eq!(listed, known);
    }
}
