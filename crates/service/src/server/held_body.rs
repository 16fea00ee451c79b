//! Something that is held until an answer is sent, or nobody wants it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// The same answer, which drops `held` at its end.
pub(crate) fn until_sent(response: Response, held: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(HeldBody { body, _held: held }))
}

struct HeldBody<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
