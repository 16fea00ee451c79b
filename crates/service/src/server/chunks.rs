//! Splits an HTTP/2 response into small chunks, so that unread responses count against the connection limits.
//!
//! hyper buffers whatever a body yields until the client reads it, and that memory would not be counted. With small
//! chunks most of the body stays here, and its request keeps its place until the last chunk is taken.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::usage::UnderWay;

/// The size of a chunk.
pub(super) const CHUNK_BYTES: usize = 4 << 10;

/// Splits a response into chunks. The request counts as in progress until the last one is taken.
pub(super) fn in_chunks(response: Response, under_way: UnderWay) -> Response {
    response.map(|body| Body::new(Chunks { body, rest: Bytes::new(), under_way }))
}

struct Chunks {
    body: Body,
    /// Data that was read from the body but not yet passed on.
    rest: Bytes,
    under_way: UnderWay,
}

impl Chunks {
    fn next_chunk(&mut self) -> Frame<Bytes> {
        self.under_way.gave_chunk();
        let length = self.rest.len().min(CHUNK_BYTES);
        // A copy, since a slice would keep the whole response in memory.
        Frame::data(Bytes::copy_from_slice(&self.rest.split_to(length)))
    }
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.under_way.chunk_taken();
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_chunk())));
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_chunk()
            }
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use futures::FutureExt;

    use super::super::usage::{Look, Usage};
    use super::*;

    #[test]
    fn an_answer_goes_in_chunks_and_is_under_way_until_the_last_one_is_taken() {
        let usage = Arc::new(Usage::default());
        let whole: Vec<u8> = (0..CHUNK_BYTES * 2 + 7).map(|n| (n % 251) as u8).collect();
        let answer = in_chunks(Response::new(whole.clone().into()), usage.begin());
        let mut body = answer.into_body();
        let mut taken = Vec::new();
        while taken.len() < whole.len() {
            let left = (whole.len() - taken.len()) as u64;
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left), false));
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).now_or_never();
            let frame = frame.flatten().unwrap().unwrap();
            let chunk = frame.into_data().unwrap_or_else(|_| panic!("no data"));
            assert!(chunk.len() <= CHUNK_BYTES && chunk.is_unique());
            taken.extend_from_slice(&chunk);
            assert!(usage.is_under_way());
        }
        assert!(taken == whole && body.is_end_stream());
        // Nothing moves any more, and the last chunk was not seen to leave.
        assert_eq!((usage.look(), usage.look()), (Look::InUse, Look::Unread));
        drop(body);
        assert!(!usage.is_under_way());
    }
}
