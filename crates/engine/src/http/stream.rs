//! The stream of a connection: it yields to other tasks, and writes a request head in time, or not at all.
//!
//! There are a few steps between the permission to write a head and its first byte on the wire. A process that is
//! stopped there and resumes seconds later would write the head although its slot has passed and another request was
//! sent meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::breach::causes;
use crate::web::PermitTime;

/// A head that is later than this is reported, so that the next head keeps its distance.
const ON_TIME: Duration = Duration::from_millis(2);

/// How much is read before other tasks get a turn. A server that sends without pause would otherwise keep a thread busy
/// for as long as its bytes can be parsed, which takes seconds if they are all tiny responses.
const TURN_BYTES: usize = 16 << 10;

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
        if given.at.elapsed() > given.in_time {
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
    causes(error).any(|cause| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.and_then(|inner| inner.downcast_ref::<Overslept>()).is_some()
    })
}

/// Limits how much is read per turn, and writes request heads only in time.
pub(super) struct PoliteStream<S> {
    stream: S,
    read_in_turn_bytes: usize,
    departure: Departure,
}

impl<S> PoliteStream<S> {
    pub(super) fn new(stream: S, departure: Departure) -> PoliteStream<S> {
        PoliteStream { stream, read_in_turn_bytes: 0, departure }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PoliteStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_in_turn_bytes >= TURN_BYTES {
            self.read_in_turn_bytes = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_pending() {
            self.read_in_turn_bytes = 0;
        }
        ready!(polled)?;
        self.read_in_turn_bytes += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PoliteStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let PoliteStream { stream, departure, .. } = &mut *self;
        departure.depart(|| Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let PoliteStream { stream, departure, .. } = &mut *self;
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    const IN_TIME: Duration = Duration::from_millis(100);

    fn now() -> Option<PermitTime> {
        Some(PermitTime { at: Instant::now(), decided_before: Duration::ZERO, in_time: IN_TIME })
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_head_is_told_of_and_a_timely_one_is_not() {
        let departure = Departure::default();
        let mut stream = PoliteStream::new(tokio::io::sink(), departure.clone());
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
        let mut stream = PoliteStream::new(Slow, departure.clone());
        departure.by(now());
        stream.write_all(b"head").await.unwrap();
        assert!(departure.was_late().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_was_held_up_stays_here_and_a_body_may_take_its_time() {
        let (near, mut far) = tokio::io::duplex(64);
        let departure = Departure::default();
        let mut stream = PoliteStream::new(near, departure.clone());
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

    /// On a single thread, a task that reads an endless stream without yielding would starve all others.
    #[tokio::test(flavor = "current_thread")]
    async fn others_run_while_a_stream_without_end_is_read() {
        static TURNS: AtomicUsize = AtomicUsize::new(0);
        let other = tokio::spawn(async {
            loop {
                TURNS.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut endless = PoliteStream::new(tokio::io::repeat(b'x'), Departure::default());
        let mut piece = vec![0; 1_024];
        for _ in 0..10 * TURN_BYTES / piece.len() {
            tokio::task::coop::unconstrained(endless.read_exact(&mut piece)).await.unwrap();
        }
        other.abort();
        assert!(TURNS.load(Ordering::Relaxed) >= 8, "{TURNS:?}");
    }
}
