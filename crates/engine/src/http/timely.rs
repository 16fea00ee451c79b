//! Writes a request head in time, or not at all.
//!
//! There are a few steps between the permission to write a head and its first byte on the wire. A process that is
//! stopped there and resumes seconds later would write the head although its slot has passed and another request was
//! sent meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::web::PermitTime;

/// A head that is later than this is not written: the steps take this long only if the process was held up.
const IN_TIME: Duration = Duration::from_millis(100);
/// A head that is later than this is reported, so that the next head keeps its distance.
const ON_TIME: Duration = Duration::from_millis(2);

/// The permission for the next head on a connection, which limits when it may be written.
#[derive(Clone, Default)]
pub(super) struct Departure(Arc<Platform>);

#[derive(Default)]
struct Platform {
    given: Mutex<Option<PermitTime>>,
    late: Notify,
}

/// Why a head was not written.
#[derive(Debug, Error)]
#[error("the process was held up, and the slot has passed")]
pub(super) struct Overslept;

impl Departure {
    /// Sets the permission for the next head; `None` if its time does not matter.
    pub(super) fn by(&self, permit_time: Option<PermitTime>) {
        self.replace(permit_time);
    }

    /// Waits until a head was written late.
    pub(super) async fn was_late(&self) {
        self.0.late.notified().await;
    }

    fn replace(&self, given: Option<PermitTime>) -> Option<PermitTime> {
        std::mem::replace(&mut *self.0.given.lock(), given)
    }

    /// Writes if it is not too late. Only the first write, which is the head, is checked.
    fn depart<T>(&self, write: impl FnOnce() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Some(given) = self.replace(None) else { return write() };
        if given.at.elapsed() > IN_TIME {
            return Poll::Ready(Err(io::Error::other(Overslept)));
        }
        let written = write();
        if written.is_pending() {
            self.replace(Some(given));
        } else if given.at.elapsed() + given.decided_before > ON_TIME {
            // Measured after the write, because the process may be held up during it.
            self.0.late.notify_one();
        }
        written
    }
}

/// Whether an error was caused by [`Overslept`].
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

/// A stream that writes request heads only in time.
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

    fn now() -> Option<PermitTime> {
        Some(PermitTime { at: Instant::now(), decided_before: Duration::ZERO })
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
