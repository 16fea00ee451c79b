//! The kinds of problems, each with its name, its status and how to fix it.

use http::StatusCode;

/// The kind of a problem. Its name is stable, since programs branch on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProblemKind {
    /// The last part of its type: `/docs#problem-NAME`.
    pub(crate) name: &'static str,
    pub(crate) status: StatusCode,
    /// The `title` of the problem.
    pub(crate) title: &'static str,
    /// How to fix it; the default `detail` of the problem.
    pub(crate) mend: &'static str,
}

impl ProblemKind {
    /// All kinds, sorted by status.
    pub(crate) const ALL: [ProblemKind; 26] = [
        ProblemKind::MALFORMED_JSON,
        ProblemKind::BAD_HOST,
        ProblemKind::UNAUTHORIZED,
        ProblemKind::FORBIDDEN,
        ProblemKind::FOREIGN_ORIGIN,
        ProblemKind::NOT_FOUND,
        ProblemKind::NO_BODY,
        ProblemKind::METHOD_NOT_ALLOWED,
        ProblemKind::NOT_ACCEPTABLE,
        ProblemKind::SLOW_REQUEST,
        ProblemKind::IN_FLIGHT,
        ProblemKind::CONFLICT,
        ProblemKind::CURSOR_GONE,
        ProblemKind::TOO_LARGE,
        ProblemKind::UNSUPPORTED_MEDIA_TYPE,
        ProblemKind::INVALID_FIELD,
        ProblemKind::KEY_REUSED,
        ProblemKind::TOO_MANY_REQUESTS,
        ProblemKind::TOO_MANY_CONNECTIONS,
        ProblemKind::TOO_MANY_CRAWLS,
        ProblemKind::INTERNAL,
        ProblemKind::NOT_SUPPORTED,
        ProblemKind::NO_PAGE,
        ProblemKind::STORE_UNAVAILABLE,
        ProblemKind::BUSY,
        ProblemKind::NOT_IN_TIME,
    ];

    pub(crate) const MALFORMED_JSON: ProblemKind = ProblemKind {
        name: "malformed-json",
        status: StatusCode::BAD_REQUEST,
        title: "The body is not JSON",
        mend: "Send one JSON object, in UTF-8, without duplicate keys.",
    };

    pub(crate) const BAD_HOST: ProblemKind = ProblemKind {
        name: "bad-host",
        status: StatusCode::BAD_REQUEST,
        title: "The Host header does not name this server",
        mend: "Send one header Host with the name or address of this server.",
    };

    pub(crate) const UNAUTHORIZED: ProblemKind = ProblemKind {
        name: "unauthorized",
        status: StatusCode::UNAUTHORIZED,
        title: "A valid token is required",
        mend: "Send the header Authorization: Bearer TOKEN with a token that was not revoked; \
               `fetchwell callers add NAME` creates one.",
    };

    pub(crate) const FORBIDDEN: ProblemKind = ProblemKind {
        name: "forbidden",
        status: StatusCode::FORBIDDEN,
        title: "The caller's role does not allow this",
        mend: "A viewer may only read; use the token of a caller or an operator.",
    };

    pub(crate) const FOREIGN_ORIGIN: ProblemKind = ProblemKind {
        name: "foreign-origin",
        status: StatusCode::FORBIDDEN,
        title: "The request comes from a web page of another origin",
        mend: "Send no Origin header, or the origin of this server; web pages of other origins may not use this path.",
    };

    pub(crate) const NOT_FOUND: ProblemKind = ProblemKind {
        name: "not-found",
        status: StatusCode::NOT_FOUND,
        title: "Not found",
        mend: "Check the path; only the caller that sent a message, a batch or a crawl can read it, \
               until its retention ends.",
    };

    pub(crate) const NO_BODY: ProblemKind = ProblemKind {
        name: "no-body",
        status: StatusCode::NOT_FOUND,
        title: "This message has no body",
        mend: "Read `detail`, which says why. The field `body` of a result says whether there is a body.",
    };

    pub(crate) const METHOD_NOT_ALLOWED: ProblemKind = ProblemKind {
        name: "method-not-allowed",
        status: StatusCode::METHOD_NOT_ALLOWED,
        title: "The method is not allowed here",
        mend: "Use one of the methods in the header Allow.",
    };

    pub(crate) const NOT_ACCEPTABLE: ProblemKind = ProblemKind {
        name: "not-acceptable",
        status: StatusCode::NOT_ACCEPTABLE,
        title: "Accept allows none of the formats",
        mend: "Accept text/markdown, text/plain or application/json, or send no header Accept.",
    };

    pub(crate) const SLOW_REQUEST: ProblemKind = ProblemKind {
        name: "slow-request",
        status: StatusCode::REQUEST_TIMEOUT,
        title: "The request took too long to arrive",
        mend: "Send the whole body within 30 seconds.",
    };

    pub(crate) const IN_FLIGHT: ProblemKind = ProblemKind {
        name: "in-flight",
        status: StatusCode::CONFLICT,
        title: "The message is being fetched right now",
        mend: "Wait for its result, or cancel it again later: if this attempt fails, the message waits for the next one.",
    };

    pub(crate) const CONFLICT: ProblemKind = ProblemKind {
        name: "conflict",
        status: StatusCode::CONFLICT,
        title: "The request conflicts with what is stored",
        mend: "The detail says what is in the way; change the request, or remove that first.",
    };

    pub(crate) const CURSOR_GONE: ProblemKind = ProblemKind {
        name: "cursor-gone",
        status: StatusCode::GONE,
        title: "This cursor is not in the outbox",
        mend: "Continue with the cursor in `oldest`; it returns every result that the outbox still has. Either \
               results after your cursor were deleted when their retention ended, or your cursor is ahead of the \
               outbox because the store was replaced or restored from a backup.",
    };

    pub(crate) const TOO_LARGE: ProblemKind = ProblemKind {
        name: "too-large",
        status: StatusCode::PAYLOAD_TOO_LARGE,
        title: "The body is too large",
        mend: "Send less at once; /fetch/batch takes more than /fetch.",
    };

    pub(crate) const UNSUPPORTED_MEDIA_TYPE: ProblemKind = ProblemKind {
        name: "unsupported-media-type",
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        title: "The media type of the body is not supported",
        mend: "Send Content-Type: application/json, without a Content-Encoding.",
    };

    pub(crate) const INVALID_FIELD: ProblemKind = ProblemKind {
        name: "invalid-field",
        status: StatusCode::UNPROCESSABLE_ENTITY,
        title: "Something in the request is missing or invalid",
        mend: "Each entry of `errors` says what is wrong, and what it should be.",
    };

    pub(crate) const KEY_REUSED: ProblemKind = ProblemKind {
        name: "key-reused",
        status: StatusCode::UNPROCESSABLE_ENTITY,
        title: "The Idempotency-Key was used for another request",
        mend: "Use a new key for a new request; the same key needs the same body, byte for byte.",
    };

    pub(crate) const TOO_MANY_REQUESTS: ProblemKind = ProblemKind {
        name: "too-many-requests",
        status: StatusCode::TOO_MANY_REQUESTS,
        title: "The caller is over its own limit",
        mend: "Wait as long as the header Retry-After says.",
    };

    pub(crate) const TOO_MANY_CONNECTIONS: ProblemKind = ProblemKind {
        name: "too-many-connections",
        status: StatusCode::TOO_MANY_REQUESTS,
        title: "One address has too many connections",
        mend: "Open fewer connections at once and reuse them. If the address is a proxy in front of this server, \
               add it to `api.trusted_proxies`.",
    };

    pub(crate) const TOO_MANY_CRAWLS: ProblemKind = ProblemKind {
        name: "too-many-crawls",
        status: StatusCode::TOO_MANY_REQUESTS,
        title: "The caller has too many unfinished crawls",
        mend: "Wait until one of them ends, or cancel one with DELETE /crawl/{id}. `retriever.max_crawls` sets the \
               limit.",
    };

    pub(crate) const INTERNAL: ProblemKind = ProblemKind {
        name: "internal",
        status: StatusCode::INTERNAL_SERVER_ERROR,
        title: "Internal error",
        mend: "Send the request again; with an Idempotency-Key nothing is accepted twice.",
    };

    pub(crate) const NOT_SUPPORTED: ProblemKind = ProblemKind {
        name: "not-supported",
        status: StatusCode::NOT_IMPLEMENTED,
        title: "Not supported by this store",
        mend: "PostgreSQL cannot store crawls. Start the service with --store sqlite:PATH, or use the command \
               `fetchwell crawl`.",
    };

    pub(crate) const NO_PAGE: ProblemKind = ProblemKind {
        name: "no-page",
        status: StatusCode::BAD_GATEWAY,
        title: "The page could not be fetched",
        mend: "Read `result`, which is the status of the result, and `detail`, which says why.",
    };

    pub(crate) const STORE_UNAVAILABLE: ProblemKind = ProblemKind {
        name: "store-unavailable",
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: "The store cannot be reached",
        mend: "Send the request again after the time in the header Retry-After; with an \
               Idempotency-Key nothing is accepted twice.",
    };

    pub(crate) const BUSY: ProblemKind = ProblemKind {
        name: "busy",
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: "The server has no memory or connection left for this request",
        mend: "Send the request again after the time in the header Retry-After; send fewer large \
               requests at once.",
    };

    pub(crate) const NOT_IN_TIME: ProblemKind = ProblemKind {
        name: "not-in-time",
        status: StatusCode::GATEWAY_TIMEOUT,
        title: "The page was not fetched in time",
        mend: "It is still queued: send the same request again, or read the message in `message_id`.",
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_of_their_own() {
        let mut names: Vec<_> = ProblemKind::ALL.iter().map(|kind| kind.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ProblemKind::ALL.len());
        assert!(ProblemKind::ALL.is_sorted_by_key(|kind| kind.status));
    }

    #[test]
    fn the_page_of_errors_lists_them() {
        let listed = fetchwell_testkit::documented::table("Problems of the API");
        let listed: Vec<_> = listed.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        let statuses = ProblemKind::ALL.map(|kind| kind.status.as_u16().to_string());
        let known: Vec<_> = ProblemKind::ALL
            .iter()
            .zip(&statuses)
            .map(|(kind, s)| (kind.name, s.as_str()))
            .collect();
        assert_eq!(listed, known);
    }
}
