//! The routing table.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::header::CONTENT_TYPE;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::error;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::compression::AcceptedEncodings;
use super::{
    Api, batches, callers, cancel, crawls, docs, firecrawl, mcp, message_body, messages,
    notifications, openapi, outbox, oversight, public, reader, send_batch, sent, sites, submit,
    webhooks,
};
use crate::problem::{Problem, ProblemKind};

/// All routes: those of the API, and the dashboard's `pages`.
pub(crate) fn router(api: &Arc<Api>, pages: Router<Arc<Api>>, listens_on: SocketAddr) -> Router {
    let (router, document) = documented().split_for_parts();
    let page = docs::Page::of(&document, listens_on);
    let document = Bytes::from(document.to_json().unwrap_or_default());
    router
        // Documented apart: OpenAPI has no parameters with slashes.
        .route("/r/{*url}", get(reader::read))
        // Its messages are those of another protocol.
        .route("/mcp", post(mcp::post).layer(Extension(mcp::Endpoint::new(api))))
        .route("/openapi.json", get(openapi_json).layer(Extension(document)))
        // Documented by Firecrawl.
        .merge(firecrawl::routes())
        .merge(pages)
        .route("/docs", get(docs_page).layer(Extension(page)))
        .fallback(async || Problem::new(ProblemKind::NOT_FOUND))
        .method_not_allowed_fallback(async || Problem::new(ProblemKind::METHOD_NOT_ALLOWED))
        .layer(CatchPanicLayer::custom(after_a_panic))
        .layer(middleware::from_fn_with_state(api.clone(), count_and_compress))
        .with_state(api.clone())
}

/// The routes that the OpenAPI document describes.
pub(super) fn documented() -> OpenApiRouter<Arc<Api>> {
    let mut document = openapi::document();
    document.merge(reader::ReaderDocument::openapi());
    notifications::describe_webhooks(&mut document);
    OpenApiRouter::with_openapi(document)
        .routes(routes!(submit::fetch))
        .routes(routes!(send_batch::send_batch))
        .routes(routes!(messages::message, cancel::cancel))
        .routes(routes!(message_body::body))
        .routes(routes!(sent::messages))
        .routes(routes!(batches::batches))
        .routes(routes!(batches::batch, batches::cancel_batch))
        .routes(routes!(batches::batch_results))
        .routes(routes!(crawls::start_crawl))
        .routes(routes!(crawls::crawls))
        .routes(routes!(crawls::crawl, crawls::cancel_crawl))
        .routes(routes!(crawls::crawl_results))
        .routes(routes!(outbox::outbox))
        .routes(routes!(public::livez))
        .routes(routes!(public::readyz))
        .routes(routes!(public::metrics))
        .merge(webhooks::routes())
        .merge(callers::routes())
        .merge(oversight::routes())
        .merge(sites::routes())
}

async fn openapi_json(Extension(document): Extension<Bytes>) -> Response {
    ([(CONTENT_TYPE, "application/json")], document).into_response()
}

async fn docs_page(Extension(page): Extension<docs::Page>, request: Request) -> Response {
    let (reader, _) = request.into_parts();
    page.read_by(&reader)
}

/// One layer for both, because every layer of the router costs each request a microsecond.
async fn count_and_compress(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let accepted = AcceptedEncodings::of(&request);
    let response = next.run(request).await;
    let route = route.as_deref().unwrap_or("unknown");
    api.on.metrics.answered(route, &method, response.status().as_u16());
    api.compression.apply(response, accepted).await
}

/// Logs the message of a panic, which the caller must not see.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the panic over")]
fn after_a_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    error!("a request handler panicked: {text}");
    Problem::new(ProblemKind::INTERNAL).into_response()
}
