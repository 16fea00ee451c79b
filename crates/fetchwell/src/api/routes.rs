//! Which path leads where, and what every answer has.

use std::any::Any;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::error;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Kind, Problem};
use super::{Api, docs, messages, openapi, outbox, oversight, public, sites, submit};

/// What is set on every answer that does not say otherwise itself.
const ALWAYS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (CACHE_CONTROL, "no-store"),
];

/// Everything that can be asked for.
pub(crate) fn router(api: &Arc<Api>) -> Router {
    let (router, document) = OpenApiRouter::with_openapi(openapi::document())
        .routes(routes!(submit::fetch))
        .routes(routes!(submit::batch))
        .routes(routes!(messages::message))
        .routes(routes!(outbox::outbox))
        .routes(routes!(public::livez))
        .routes(routes!(public::readyz))
        .routes(routes!(public::metrics))
        .merge(oversight::routes())
        .merge(sites::routes())
        .split_for_parts();
    let page = docs::Page::of(&document);
    let document: Arc<str> = document.to_json().unwrap_or_default().into();
    router
        .route("/", get(public::front_page))
        .route("/openapi.json", get(openapi_json))
        .route("/docs", get(docs_page))
        .layer(Extension(page))
        .layer(Extension(document))
        .fallback(async || Problem::new(Kind::NotFound))
        .method_not_allowed_fallback(async || Problem::new(Kind::MethodNotAllowed))
        .layer(CatchPanicLayer::custom(after_a_panic))
        .layer(middleware::from_fn_with_state(api.clone(), count_and_harden))
        .with_state(api.clone())
}

/// An answer in JSON.
pub(super) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(fault) => {
            error!("an answer could not be written as JSON: {fault}");
            Problem::new(Kind::Internal).into_response()
        }
    }
}

async fn openapi_json(Extension(document): Extension<Arc<str>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

async fn docs_page(Extension(page): Extension<docs::Page>) -> Response {
    let policy = [(CONTENT_SECURITY_POLICY, page.policy.to_string())];
    (policy, Html(page.html.to_string())).into_response()
}

async fn count_and_harden(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    let route = route.as_deref().unwrap_or("unknown");
    api.metrics.answered(route, &method, response.status().as_u16());
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// What a panic says is for the log, and nothing of it for the caller.
#[expect(clippy::needless_pass_by_value, reason = "the layer hands the panic over")]
fn after_a_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
    error!("a request made the program panic: {text}");
    Problem::new(Kind::Internal).into_response()
}
