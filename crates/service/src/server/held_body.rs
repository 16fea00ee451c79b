//! A response body that holds a value until it is sent or dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// Keeps `held` until the response is sent or dropped. hyper drops a body as soon as it has taken its last data, and
/// keeps that data until the client reads it. So the data holds the value, too.
pub(crate) fn until_sent(response: Response, held: impl Send + Sync + 'static) -> Response {
    response.map(|body| Body::new(HeldBody { body, held: Arc::new(held) }))
}

struct HeldBody<T> {
    body: Body,
    held: Arc<T>,
}

/// Data of a response, with what it holds.
struct HeldData<T> {
    data: Bytes,
    _held: Arc<T>,
}

impl<T> AsRef<[u8]> for HeldData<T> {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl<T: Send + Sync + 'static> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let hold = |data| Bytes::from_owner(HeldData { data, _held: self.held.clone() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(hold))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::FutureExt;

    use super::*;

    #[test]
    fn what_is_held_is_held_until_the_last_data_is_gone() {
        let held = Arc::new(());
        let mut body = until_sent(Response::new("page".into()), held.clone()).into_body();
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).now_or_never();
        let data = frame.flatten().unwrap().unwrap().into_data();
        let data = data.unwrap_or_else(|_| panic!("no data"));
        assert!(data == "page" && body.is_end_stream());
        drop(body);
        let end = data.slice(3..);
        drop(data);
        assert_eq!(Arc::strong_count(&held), 2, "the client has not read all of it");
        drop(end);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
