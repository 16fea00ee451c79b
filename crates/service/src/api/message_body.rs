//! `GET /messages/{id}/body`: the body of a response, as it was received.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::{MessageBody, MessageId};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa::ToSchema;

use super::identity::Identity;
use super::messages::message_id;
use super::parameters::refuse_any;
use super::problems::{CallerProblems, QueryProblems, StoreProblems};
use super::reader::inert;
use super::{Api, ApiResult, PathName};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::server::until_sent;
use crate::views::messages::body_content_type;

/// The media types that a browser may display. All others are sent as attachments.
const SHOWN: [&str; 3] = ["text/plain", "text/markdown", "application/json"];

/// Any bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only for the OpenAPI document")]
struct BodyBytes(Vec<u8>);

/// Get the body of a response
///
/// Returns the bytes that the site sent, after decompression, with the Content-Type of the response
/// (`application/octet-stream` if it had none). This includes bodies that are not text, and those of error pages; `body`
/// of a result says whether there is one. A browser may show plain text, Markdown and JSON; everything else is sent
/// as an attachment, and nothing can run in it. Bodies are kept for 24 hours (`retriever.body_retention`) if they are not
/// larger than 10 MiB (`retriever.body_max_size`); the oldest bodies of a caller are deleted earlier when all of them are
/// larger than 1 GiB (`retriever.body_quota`). A body that is equal to `content` is kept as long as the result.
#[utoipa::path(
    get,
    path = "/messages/{id}/body",
    operation_id = "message_body",
    tag = "Messages",
    params(("id" = String, Path, description = "the message_id that /fetch returned", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the body, with its own Content-Type", content((inline(BodyBytes) = "*/*")),
            headers(("Content-Disposition" = Option<String>, description = "attachment, unless it is plain text, Markdown or JSON"))),
        (status = 404, description = "no such message, or it has no body: `type` and `detail` say which and why", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn body(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    refuse_any(query.as_deref())?;
    let id = message_id(id)?;
    let mut share = api.memory.take(api.rules.max_page_bytes).await?;
    let found = api.stored(api.on.inbox.body(id, identity.sees()).await)?;
    let reason = match found {
        None => return Err(Problem::new(ProblemKind::NOT_FOUND)),
        Some(MessageBody::Found { content_type, bytes }) => {
            share.shrink_to(bytes.len() as u64);
            return Ok(until_sent(response(content_type.as_deref(), bytes), share));
        }
        Some(MessageBody::NoResult) => {
            "The message has no result yet. GET /messages/{id}?wait=60 waits for it.".to_owned()
        }
        Some(MessageBody::Deleted) => "The body was deleted, either because \
            retriever.body_retention has passed or because newer bodies needed its space in \
            retriever.body_quota. Send the message again to fetch the page again."
            .to_owned(),
        Some(MessageBody::Absent) => {
            share.shrink_to(0);
            api.why_absent(id, &identity).await?
        }
    };
    Err(Problem::no_body(id, reason))
}

impl Api {
    /// Why a message has no body.
    async fn why_absent(&self, id: MessageId, identity: &Identity) -> Result<String, Problem> {
        let held = self.message(id, identity.sees()).await?;
        let outbox = held.and_then(|held| held.message.outbox);
        let result = outbox.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))?.result;
        let details = result.details.as_deref().and_then(|json| serde_json::from_str(json).ok());
        Ok(match details {
            Some(FetchDetails { unkept_body_bytes: Some(bytes), .. }) => format!(
                "The body was not kept: it has {bytes} bytes, which is more than \
                 retriever.body_max_size or retriever.body_quota allows."
            ),
            Some(FetchDetails { headers: None, .. }) => {
                let error = result.error.unwrap_or(result.status);
                format!("There was no complete response: {error}.")
            }
            Some(_) if result.http_status == Some(304) => {
                "The page has not changed (304), so the response has no body.".to_owned()
            }
            Some(_) | None => "The response had no body, or the result was stored by an earlier \
                               version of Fetchwell, which kept no bodies."
                .to_owned(),
        })
    }
}

fn response(content_type: Option<&str>, bytes: Vec<u8>) -> Response {
    let content_type = body_content_type(content_type);
    let response = ([(CONTENT_TYPE, content_type)], bytes).into_response();
    let response = match may_be_shown(content_type) {
        true => response,
        false => ([(CONTENT_DISPOSITION, "attachment")], response).into_response(),
    };
    inert(response)
}

/// Whether a browser may show a body of this type. Where a header names several types, browsers take the last one.
fn may_be_shown(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    !content_type.contains(',') && SHOWN.iter().any(|shown| essence.eq_ignore_ascii_case(shown))
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_SECURITY_POLICY, HeaderName};

    use super::*;

    fn header(response: &Response, name: HeaderName) -> Option<&str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn only_plain_text_markdown_and_json_may_be_shown() {
        for (content_type, is_shown) in [
            ("text/plain", true),
            ("Text/Plain; charset=windows-1252", true),
            ("text/markdown; charset=utf-8", true),
            ("application/json", true),
            ("application/ld+json", false),
            ("text/html", false),
            ("image/svg+xml", false),
            ("text/xml", false),
            ("text/plain-ish", false),
            ("text/plain, text/html", false),
            ("text/plain; a=b, text/html", false),
            ("", false),
            ("nonsense", false),
        ] {
            let response = response(Some(content_type), b"<script>".to_vec());
            let disposition = header(&response, CONTENT_DISPOSITION);
            let expected = if is_shown { None } else { Some("attachment") };
            assert_eq!(disposition, expected, "{content_type}");
            let policy = header(&response, CONTENT_SECURITY_POLICY);
            assert_eq!(policy, Some("sandbox; default-src 'none'"));
        }
    }

    #[test]
    fn a_body_has_the_type_of_its_response() {
        for (stored, sent) in [
            (Some("text/html; charset=ISO-8859-1"), "text/html; charset=ISO-8859-1"),
            (Some("image/png"), "image/png"),
            (Some(" "), "application/octet-stream"),
            (Some("a\nb"), "application/octet-stream"),
            (None, "application/octet-stream"),
        ] {
            let response = response(stored, Vec::new());
            assert_eq!(header(&response, CONTENT_TYPE), Some(sent), "{stored:?}");
        }
    }
}
