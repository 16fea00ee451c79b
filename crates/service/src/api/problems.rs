//! The problem responses that several handlers document, in groups.
//!
//! A handler names its groups in `responses(…)`, next to its own responses.

#![expect(dead_code, reason = "only for the OpenAPI document")]

use utoipa::IntoResponses;

use crate::problem::{PROBLEM_JSON, ProblemBody};

/// For every request that needs a token.
#[derive(IntoResponses)]
pub(super) enum CallerProblems {
    #[response(
        status = 401, description = "no token, or an invalid one", content_type = PROBLEM_JSON,
        headers(("WWW-Authenticate" = String, description = "Bearer"))
    )]
    Unauthorized(ProblemBody),
    #[response(
        status = 429, description = "the caller is over its limit", content_type = PROBLEM_JSON,
        headers(("Retry-After" = u64, description = "seconds to wait"))
    )]
    TooManyRequests(ProblemBody),
}

/// For requests that read or write the store.
#[derive(IntoResponses)]
#[response(
    status = 503, description = "the store is down", content_type = PROBLEM_JSON,
    headers(("Retry-After" = u64, description = "seconds to wait"))
)]
pub(super) struct StoreProblems(ProblemBody);

/// For requests that write to the store in several steps.
#[derive(IntoResponses)]
#[response(
    status = 503, description = "the store is down; completed changes remain; repeat the request for the rest",
    content_type = PROBLEM_JSON, headers(("Retry-After" = u64, description = "seconds to wait"))
)]
pub(super) struct PartlyDoneProblems(ProblemBody);

/// For requests that send messages.
#[derive(IntoResponses)]
#[response(status = 403, description = "a viewer cannot send messages", content_type = PROBLEM_JSON)]
pub(super) struct SenderProblems(ProblemBody);

/// For requests that show messages of all callers, or sites.
#[derive(IntoResponses)]
#[response(status = 403, description = "the role viewer or operator is required", content_type = PROBLEM_JSON)]
pub(super) struct ViewerProblems(ProblemBody);

/// For requests that act on messages of all callers, or on sites.
#[derive(IntoResponses)]
#[response(status = 403, description = "the role operator is required", content_type = PROBLEM_JSON)]
pub(super) struct OperatorProblems(ProblemBody);

/// For paths that name a message.
#[derive(IntoResponses)]
#[response(status = 404, description = "no such message", content_type = PROBLEM_JSON)]
pub(super) struct MessageProblems(ProblemBody);

/// For requests that cancel a message.
#[derive(IntoResponses)]
#[response(status = 409, description = "the message is being fetched right now", content_type = PROBLEM_JSON)]
pub(super) struct InFlightProblems(ProblemBody);

/// For paths that name a caller, and possibly its token.
#[derive(IntoResponses)]
#[response(status = 404, description = "no such caller or token", content_type = PROBLEM_JSON)]
pub(super) struct NamedCallerProblems(ProblemBody);

/// For paths that name a delivery.
#[derive(IntoResponses)]
#[response(status = 404, description = "no such delivery", content_type = PROBLEM_JSON)]
pub(super) struct DeliveryProblems(ProblemBody);

/// For requests that may conflict with what is stored.
#[derive(IntoResponses)]
#[response(status = 409, description = "it conflicts with what is stored", content_type = PROBLEM_JSON)]
pub(super) struct ConflictProblems(ProblemBody);

/// For paths that name a batch.
#[derive(IntoResponses)]
#[response(status = 404, description = "no such batch", content_type = PROBLEM_JSON)]
pub(super) struct BatchProblems(ProblemBody);

/// For paths that name a crawl.
#[derive(IntoResponses)]
pub(super) enum CrawlProblems {
    #[response(status = 404, description = "no such crawl", content_type = PROBLEM_JSON)]
    NotFound(ProblemBody),
    #[response(status = 501, description = "the store cannot hold crawls", content_type = PROBLEM_JSON)]
    NotSupported(ProblemBody),
}

/// For other requests about crawls.
#[derive(IntoResponses)]
#[response(status = 501, description = "the store cannot hold crawls", content_type = PROBLEM_JSON)]
pub(super) struct NoCrawlProblems(ProblemBody);

/// For paths that name a site.
#[derive(IntoResponses)]
#[response(status = 404, description = "this is not the name of a site", content_type = PROBLEM_JSON)]
pub(super) struct SiteProblems(ProblemBody);

/// For requests with a body of any size.
#[derive(IntoResponses)]
pub(super) enum BodyProblems {
    #[response(status = 400, description = "the body is not JSON", content_type = PROBLEM_JSON)]
    NotJson(ProblemBody),
    #[response(status = 408, description = "the body took too long to arrive", content_type = PROBLEM_JSON)]
    TooSlow(ProblemBody),
    #[response(status = 415, description = "the body is not application/json", content_type = PROBLEM_JSON)]
    WrongContentType(ProblemBody),
}

/// For requests with a body of at most 64 KiB.
#[derive(IntoResponses)]
#[response(status = 413, description = "the body is over 64 KiB", content_type = PROBLEM_JSON)]
pub(super) struct SizeProblems(ProblemBody);

/// For requests with a body whose fields are checked.
#[derive(IntoResponses)]
#[response(status = 422, description = "a field is missing or invalid", content_type = PROBLEM_JSON)]
pub(super) struct InvalidFieldProblems(ProblemBody);

/// For requests with query parameters.
#[derive(IntoResponses)]
#[response(status = 422, description = "a parameter is unknown or invalid", content_type = PROBLEM_JSON)]
pub(super) struct QueryProblems(ProblemBody);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_documents_each_of_its_problems() {
        let content = json!({
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}},
        });
        let of_callers = serde_json::to_value(CallerProblems::responses()).unwrap();
        let statuses: Vec<&String> = of_callers.as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["401", "429"]);
        for (status, description, header) in [
            ("401", "no token, or an invalid one", "WWW-Authenticate"),
            ("429", "the caller is over its limit", "Retry-After"),
        ] {
            let response = &of_callers[status];
            assert_eq!(response["description"], description);
            assert_eq!(response["content"], content, "{status}");
            assert!(response["headers"][header].is_object(), "{status}");
        }
        let of_messages = serde_json::to_value(MessageProblems::responses()).unwrap();
        let expected = json!({"404": {"description": "no such message", "content": content}});
        assert_eq!(of_messages, expected);
    }
}
