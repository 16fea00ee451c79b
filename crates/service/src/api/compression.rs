//! Compresses large JSON responses, if the client accepts that.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Router, body};
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use tokio::sync::Semaphore;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

use crate::server::until_sent;

/// Below this, compression saves less than a packet.
const MIN_BYTES: u64 = 1 << 10;

/// A compressor holds up to a few MiB until its response is sent. Without a free one, a response is sent as it is.
const MAX_COMPRESSORS: usize = 16;

/// Marks a response that is to be compressed.
#[derive(Clone, Copy)]
struct Marked;

/// Compresses the responses of these routes with gzip or Zstandard, as the client prefers. Event streams are
/// never compressed: their events must not wait in a compressor.
pub(super) fn compressed<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    let compressors = Arc::new(Semaphore::new(MAX_COMPRESSORS));
    let layer = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(IsMarked);
    router.layer(middleware::from_fn_with_state(compressors, mark)).layer(layer)
}

async fn mark(State(compressors): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let accepts_any = request.headers().contains_key(ACCEPT_ENCODING);
    let response = next.run(request).await;
    if !accepts_any || !is_large_json(&response) {
        return response;
    }
    let Ok(compressor) = compressors.try_acquire_owned() else { return response };
    let mut response = until_sent(response, compressor);
    response.extensions_mut().insert(Marked);
    response
}

fn is_large_json(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    let bytes = body::HttpBody::size_hint(response.body()).exact();
    content_type.is_some_and(|value| value == "application/json")
        && bytes.is_some_and(|bytes| bytes >= MIN_BYTES)
}

#[derive(Clone, Copy)]
struct IsMarked;

impl Predicate for IsMarked {
    fn should_compress<B: body::HttpBody>(&self, response: &http::Response<B>) -> bool {
        response.extensions().get::<Marked>().is_some()
    }
}
