//! Reads a request body within limits on size and time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::StreamExt;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use serde_json::error::Category;

use super::json::Json;
use super::memory::{Held, Memory};
use crate::problem::{Problem, ProblemKind};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The rest of a refused body is read and discarded up to this size, so that a client that is still sending gets to
/// read the response.
const LINGER_BYTES: usize = 16 << 20;
const LINGER: Duration = Duration::from_secs(2);

/// A body, with the memory that is reserved for it.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    _share: Held,
}

/// Reads the body if its content type is JSON and it has at most `most_bytes`.
pub(super) async fn read(
    memory: &Memory,
    headers: &HeaderMap,
    body: Body,
    most_bytes: u64,
) -> Result<Whole, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_too_large = announced.is_some_and(|bytes: u64| bytes > most_bytes);
    let refused = check_type(headers).err().or_else(|| is_too_large.then(|| too_large(most_bytes)));
    // Twice the size: the text and the parsed JSON are both in memory.
    let share = match refused {
        Some(problem) => Err(problem),
        None => memory.take(2 * announced.unwrap_or(most_bytes)).await,
    };
    let _share = match share {
        Ok(share) => share,
        Err(problem) => {
            // A client that sent `Expect: 100-continue` has not sent its body yet, and reading would request it.
            if !headers.contains_key(EXPECT) {
                tokio::spawn(linger(body));
            }
            return Err(problem);
        }
    };
    let reading = tokio::time::timeout(BODY_TIMEOUT, collect(body, most_bytes));
    let bytes = reading.await.unwrap_or_else(|_| Err(Problem::new(ProblemKind::SLOW_REQUEST)))?;
    Ok(Whole { bytes, _share })
}

/// Parses a body as JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Json<'_>, Problem> {
    serde_json::from_slice(bytes).map_err(|fault| {
        let line = fault.line();
        let column = fault.column();
        let what = match fault.classify() {
            Category::Eof => "unexpected end",
            Category::Data => "duplicate key",
            Category::Syntax | Category::Io => "syntax error",
        };
        Problem::new(ProblemKind::MALFORMED_JSON)
            .saying(format!("The body is not JSON: {what} at line {line}, column {column}."))
    })
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let text =
        |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"));
    let essence = text(CONTENT_TYPE).unwrap_or_default().split(';').next().unwrap_or_default();
    let is_json = essence.trim().eq_ignore_ascii_case("application/json");
    let is_plain =
        text(CONTENT_ENCODING).is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
    if !is_json || !is_plain {
        return Err(Problem::new(ProblemKind::UNSUPPORTED_MEDIA_TYPE));
    }
    Ok(())
}

async fn collect(body: Body, most_bytes: u64) -> Result<Bytes, Problem> {
    let mut pieces = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| {
            Problem::new(ProblemKind::MALFORMED_JSON)
                .saying("The body is incomplete; send it again.")
        })?;
        if (whole.len() + piece.len()) as u64 > most_bytes {
            tokio::spawn(linger(Body::from_stream(pieces)));
            return Err(too_large(most_bytes));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

fn too_large(most_bytes: u64) -> Problem {
    let detail =
        format!("The body has more than {most_bytes} bytes. {}", ProblemKind::TOO_LARGE.mend);
    Problem::new(ProblemKind::TOO_LARGE).saying(detail)
}

async fn linger(body: Body) {
    let drain = async {
        let mut pieces = body.into_data_stream();
        let mut bytes = 0;
        while let Some(Ok(piece)) = pieces.next().await {
            bytes += piece.len();
            if bytes > LINGER_BYTES {
                break;
            }
        }
    };
    // A client that takes longer is cut off.
    drop(tokio::time::timeout(LINGER, drain).await);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    async fn reading(content_type: &str, body: Body, most_bytes: u64) -> Result<Bytes, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        read(&Memory::default(), &headers, body, most_bytes).await.map(|whole| whole.bytes)
    }

    #[tokio::test]
    async fn a_body_is_json_and_no_larger_than_allowed() {
        let json = "application/json; charset=utf-8";
        assert_eq!(reading(json, "{}".into(), 2).await.unwrap(), "{}");
        for (content_type, body, status) in
            [(json, "{ }", 413), ("text/json", "{}", 415), ("application/jsonx", "{}", 415)]
        {
            let response = reading(content_type, body.into(), 2).await.unwrap_err();
            let response = axum::response::IntoResponse::into_response(response);
            assert_eq!(response.status().as_u16(), status, "{content_type} {body}");
        }
    }

    /// Otherwise the connection would be reset, and the client could not read that it should try again later.
    #[tokio::test(start_paused = true)]
    async fn a_body_without_memory_for_it_is_read_and_discarded() {
        let memory = Memory::default();
        let _all = memory.take(u64::MAX).await.unwrap();
        let pieces = Arc::new(AtomicUsize::new(0));
        let count = pieces.clone();
        let body = futures::stream::iter(0..10).map(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, "application/json".parse().unwrap())]);
        let refused = read(&memory, &headers, Body::from_stream(body), 10).await;
        assert_eq!(refused.err().map(|problem| problem.status().as_u16()), Some(503));
        tokio::time::sleep(LINGER).await;
        assert_eq!(pieces.load(Ordering::Relaxed), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let silence =
            Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let problem = reading("application/json", silence, 2).await.unwrap_err();
        assert_eq!(axum::response::IntoResponse::into_response(problem).status().as_u16(), 408);
    }
}
