//! The routing table, and the headers of every response.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

use super::access::login;
use super::fault::{PageError, PageResult};
use super::{
    Dashboard, articles, assets, callers, common_crawl, dead_letters, live, messages, overview,
    sites, system,
};

/// Headers of every response that does not set them itself. Our own forms must send their origin, so the referrer
/// policy is `same-origin`.
const ALWAYS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// All pages and actions.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(dashboard: &Arc<Dashboard>) -> Router<S> {
    Router::new()
        .route("/", get(overview::page))
        .route("/dashboard/sites", get(sites::page))
        .route("/dashboard/sites/{site}", get(sites::site))
        .route("/dashboard/messages", get(messages::page))
        .route("/dashboard/messages/{id}", get(messages::message))
        .route("/dashboard/dead-letters", get(dead_letters::page))
        .route("/dashboard/dead-letters/group", get(dead_letters::group::page))
        .route("/dashboard/articles", get(articles::page))
        .route("/dashboard/articles/{uid}", get(articles::article))
        .route("/dashboard/common-crawl", get(common_crawl::page))
        .route("/dashboard/callers", get(callers::page))
        .route("/dashboard/system", get(system::page))
        .route_layer(middleware::from_fn_with_state(dashboard.clone(), live::stream))
        .route("/dashboard/sites/{site}/{order}", post(sites::order))
        .route("/dashboard/callers/{word}", post(callers::order))
        .route("/dashboard/messages/act", post(messages::act))
        .route("/dashboard/dead-letters/revise", post(dead_letters::group::revise))
        .route("/dashboard/dead-letters/bulk", post(dead_letters::bulk::act))
        .route("/dashboard/dead-letters/export", get(dead_letters::export))
        .route("/dashboard/login", get(login::form).post(login::log_in))
        .route("/dashboard/logout", post(login::log_out))
        .route("/dashboard/theme", post(login::choose_theme))
        .route("/dashboard/assets/{name}", get(asset))
        .layer(middleware::from_fn(harden))
        .with_state(dashboard.clone())
}

/// The router for a listener that serves only the dashboard.
pub fn alone(dashboard: &Arc<Dashboard>) -> Router {
    let unknown = async || PageError::NotFound("there is no such page");
    router(dashboard).fallback(unknown).layer(middleware::from_fn(harden))
}

async fn asset(Path(name): Path<String>) -> PageResult {
    assets::asset(&name).ok_or(PageError::NotFound("there is no such file"))
}

async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
