//! The endpoints of Firecrawl, so that its clients work with this service: `/v2/…`, and `/v1/…` for older clients.
//!
//! They only translate: a scrape reads a page as `GET /r/{url}` does, a batch scrape is a batch, and a map is a
//! [`site_map`](super::site_map).
//!
//! | file | |
//! |---|---|
//! | `fields`, `options`, `other_options` | request parsing; what an option means here, or why it is rejected |
//! | `scrape`, `batch_scrape`, `batch_status`, `map` | the handlers |
//! | `document` | a result as a document |
//! | `error` | errors in the format that the clients expect |
//! | `request` | version, caller and public URL of a request |

mod batch_scrape;
mod batch_status;
mod document;
mod error;
mod fields;
mod map;
mod options;
mod other_options;
mod request;
mod scrape;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{any, get, post};

use super::Api;
use error::FirecrawlError;

type FirecrawlResult = Result<Response, FirecrawlError>;

/// The routes of both versions.
pub(super) fn routes() -> Router<Arc<Api>> {
    let mut router = Router::new();
    for version in ["/v1", "/v2"] {
        let at = |path: &str| format!("{version}{path}");
        let wrong = error::method_not_allowed;
        router = router
            .route(&at("/scrape"), post(scrape::scrape).fallback(wrong))
            .route(&at("/batch/scrape"), post(batch_scrape::send).fallback(wrong))
            .route(
                &at("/batch/scrape/{id}"),
                get(batch_status::status).delete(batch_status::cancel).fallback(wrong),
            )
            .route(
                &at("/batch/scrape/{id}/errors"),
                // The JavaScript client of /v1 sends DELETE.
                get(batch_status::errors).delete(batch_status::errors).fallback(wrong),
            )
            .route(&at("/map"), post(map::map).fallback(wrong))
            .route(version, any(error::no_such_endpoint))
            .route(&at("/{*rest}"), any(error::no_such_endpoint));
    }
    // The JavaScript client of /v1 requests the status of a batch here.
    router.route("/v1/crawl/{id}", get(batch_status::status).fallback(error::no_such_endpoint))
}
