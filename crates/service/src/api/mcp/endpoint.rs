//! `POST /mcp`: the tools over streamable HTTP.
//!
//! There are no sessions: the response to each request is one JSON object, nothing is kept between requests, and any
//! instance of the service can handle any request.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use super::origin;
use super::server::{HeldAnswers, ToolServer};
use crate::api::identity::Identity;
use crate::api::{Api, ApiResult, body};
use crate::problem::{Problem, ProblemKind};
use crate::server::until_sent;

/// A call has at most ten URLs of 8 KiB.
const MAX_BODY_BYTES: u64 = 256 << 10;

/// The maximum number of concurrent calls of all clients.
const MAX_CALLS: usize = 256;

/// JSON-RPC's code for a body that is not a message.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// Answers the requests of all clients.
#[derive(Clone)]
pub(in crate::api) struct Endpoint(StreamableHttpService<ToolServer, NeverSessionManager>);

impl Endpoint {
    pub(in crate::api) fn new(api: &Arc<Api>) -> Endpoint {
        let server = ToolServer::for_requests(api.clone(), MAX_CALLS);
        // `origin` checks the host instead, against our own settings.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY_BYTES as usize)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        Endpoint(StreamableHttpService::new(move || Ok(server.clone()), sessions, config))
    }
}

pub(in crate::api) async fn post(
    State(api): State<Arc<Api>>,
    Extension(endpoint): Extension<Endpoint>,
    request: Request,
) -> ApiResult {
    let (mut parts, body) = request.into_parts();
    origin::check(&parts, &api.rules.mcp_allowed_hosts)?;
    let identity = Identity::from_request_parts(&mut parts, &api).await?;
    api.charge(&identity.caller, 1)?;
    if !accepts_both(&parts.headers) {
        return Err(Problem::new(ProblemKind::NOT_ACCEPTABLE)
            .saying("Send Accept: application/json, text/event-stream, as MCP requires."));
    }
    let whole = body::read(&api.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
    if let Err(fault) = serde_json::from_slice::<ClientJsonRpcMessage>(&whole.bytes) {
        return Ok(not_a_message(&fault));
    }
    // rmcp must not see the token.
    parts.headers.remove(AUTHORIZATION);
    let held = HeldAnswers::default();
    parts.extensions.insert(identity);
    parts.extensions.insert(held.clone());
    let request = Request::from_parts(parts, Body::from(whole.bytes.clone()));
    let response = endpoint.0.handle(request).await.map(Body::new);
    Ok(until_sent(response, (held, whole)))
}

/// Whether a client accepts both media types in which the protocol allows a server to respond.
fn accepts_both(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    ["application/json", "text/event-stream"]
        .iter()
        .all(|kind| accepted.iter().any(|accepted| accepted.starts_with(kind)))
}

fn not_a_message(fault: &serde_json::Error) -> Response {
    let (code, message) = if fault.is_data() {
        (INVALID_REQUEST, "the body is not a JSON-RPC message of MCP")
    } else {
        (PARSE_ERROR, "the body is not JSON")
    };
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let content_type = [(CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, content_type, error.to_string()).into_response()
}
