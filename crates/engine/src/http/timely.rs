//! A head leaves in time, or not at all.
//!
//! Between the leave to write a head and its first byte on the wire lie a few hops. A process that is
//! stopped there, and goes on seconds later, would write it although its slot has long passed and
//! somebody else has gone meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::web::Given;

/// Hops take longer than this only when something holds the process up…
const IN_TIME: Duration = Duration::from_millis(100);
/// …and what takes longer than this is worth telling: the next head is to keep its distance.
const ON_TIME: Duration = Duration::from_millis(2);

/// By when the next head must have begun to leave.
#[derive(Clone, Default)]
pub(super) struct Departure(Arc<Platform>);

#[derive(Default)]
struct Platform {
    given: Mutex<Option<Given>>,
    late: Notify,
}

/// Why a head was not written.
#[derive(Debug, Error)]
#[error("the process was held up, and the slot has passed")]
pub(super) struct Overslept;

impl Departure {
    /// The next head leaves by this leave; `None`: it does not matter when.
    pub(super) fn by(&self, leave: Option<Given>) {
        self.replace(leave);
    }

    /// Returns when a head has left late.
    pub(super) async fn was_late(&self) {
        self.0.late.notified().await;
    }

    fn replace(&self, given: Option<Given>) -> Option<Given> {
        std::mem::replace(&mut *self.0.given.lock(), given)
    }

    /// Writes in time. What is written first is the head; what follows it goes as it comes.
    fn depart<T>(&self, write: impl FnOnce() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Some(given) = self.replace(None) else { return write() };
        if given.at.elapsed() > IN_TIME {
            return Poll::Ready(Err(io::Error::other(Overslept)));
        }
        let written = write();
        if written.is_pending() {
            self.replace(Some(given));
        } else if given.at.elapsed() + given.decided_before > ON_TIME {
            // By the time after the write: it may have been held up in the middle of it.
            self.0.late.notify_one();
        }
        written
    }
}

/// Whether an error came of that.
pub(super) fn is_overslept(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let io = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if io.and_then(|cause| cause.downcast_ref::<Overslept>()).is_some() {
            return true;
        }
        source = inner.source();
    }
    false
}

/// A stream whose heads leave in time.
pub(super) struct Timely<S> {
    stream: S,
    departure: Departure,
}

impl<S> Timely<S> {
    pub(super) fn new(stream: S, departure: Departure) -> Timely<S> {
        Timely { stream, departure }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timely<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timely<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Timely { stream, departure } = &mut *self;
        departure.depart(|| Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Timely { stream, departure } = &mut *self;
        departure.depart(|| Pin::new(stream).poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    fn now() -> Option<Given> {
        Some(Given { at: Instant::now(), decided_before: Duration::ZERO })
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_head_is_told_of_and_a_timely_one_is_not() {
        let departure = Departure::default();
        let mut stream = Timely::new(tokio::io::sink(), departure.clone());
        for (wait, is_late) in [(Duration::ZERO, false), (ON_TIME * 2, true)] {
            departure.by(now());
            tokio::time::sleep(wait).await;
            stream.write_all(b"head").await.unwrap();
            assert_eq!(departure.was_late().now_or_never().is_some(), is_late, "{wait:?}");
        }
    }

    /// A stream that takes its time to write.
    struct Slow;

    impl AsyncWrite for Slow {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let advancing = tokio::time::advance(ON_TIME * 2);
            assert!(advancing.now_or_never().is_none(), "it yields once");
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_held_up_in_the_middle_of_leaving_is_late() {
        let departure = Departure::default();
        let mut stream = Timely::new(Slow, departure.clone());
        departure.by(now());
        stream.write_all(b"head").await.unwrap();
        assert!(departure.was_late().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_was_held_up_stays_here_and_a_body_may_take_its_time() {
        let (near, mut far) = tokio::io::duplex(64);
        let departure = Departure::default();
        let mut stream = Timely::new(near, departure.clone());
        departure.by(now());
        stream.write_all(b"head ").await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        stream.write_all(b"body").await.unwrap();
        departure.by(now());
        tokio::time::sleep(IN_TIME + Duration::from_millis(1)).await;
        assert!(stream.write_all(b"late").await.is_err());
        drop(stream);
        let mut arrived = String::new();
        far.read_to_string(&mut arrived).await.unwrap();
        assert_eq!(arrived, "head body");
    }
}
