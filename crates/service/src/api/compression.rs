//! Compresses large JSON responses, if the client accepts that.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use tokio::sync::Semaphore;
use tower::{ServiceExt, service_fn};
use tower_http::CompressionLevel;

use crate::server::until_sent;

/// Below this, compression saves less than a packet.
const MIN_BYTES: u64 = 1 << 10;

/// A compressor holds up to a few MiB until its response is sent. Without a free one, a response is sent as it is.
const MAX_COMPRESSORS: usize = 16;

/// Compresses responses with gzip or Zstandard, as the client prefers. Event streams are never compressed: their events
/// must not wait in a compressor.
pub(super) struct Compression {
    compressors: Arc<Semaphore>,
}

/// The `Accept-Encoding` headers of a request.
pub(super) struct AcceptedEncodings(Vec<HeaderValue>);

impl AcceptedEncodings {
    pub(super) fn of(request: &Request) -> AcceptedEncodings {
        let values = request.headers().get_all(ACCEPT_ENCODING);
        AcceptedEncodings(values.iter().cloned().collect())
    }
}

impl Default for Compression {
    fn default() -> Compression {
        Compression { compressors: Arc::new(Semaphore::new(MAX_COMPRESSORS)) }
    }
}

impl Compression {
    /// Compresses a response if it is large JSON and the client accepts that.
    pub(super) async fn apply(&self, response: Response, accepted: AcceptedEncodings) -> Response {
        if accepted.0.is_empty() || !is_large_json(&response) {
            return response;
        }
        match self.compressors.clone().try_acquire_owned() {
            Ok(compressor) => compress(until_sent(response, compressor), accepted).await,
            Err(_) => response,
        }
    }
}

async fn compress(response: Response, accepted: AcceptedEncodings) -> Response {
    let mut request = http::Request::new(());
    let headers = accepted.0.into_iter().map(|value| (ACCEPT_ENCODING, value));
    *request.headers_mut() = HeaderMap::from_iter(headers);
    // The service is called only once.
    let mut response = Some(response);
    let service = service_fn(move |_| {
        std::future::ready(Ok::<_, Infallible>(response.take().unwrap_or_default()))
    });
    let compression =
        tower_http::compression::Compression::new(service).quality(CompressionLevel::Fastest);
    match compression.oneshot(request).await {
        Ok(compressed) => compressed.map(body::Body::new),
        Err(never) => match never {},
    }
}

fn is_large_json(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    let bytes = body::HttpBody::size_hint(response.body()).exact();
    content_type.is_some_and(|value| value == "application/json")
        && bytes.is_some_and(|bytes| bytes >= MIN_BYTES)
}
