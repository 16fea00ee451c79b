//! A connection that yields to other tasks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read before other tasks get a turn. A server that sends without pause would otherwise keep a thread busy
/// for as long as its bytes can be parsed, which takes seconds if they are all tiny responses.
const TURN_BYTES: usize = 16 << 10;

/// Limits how much is read per turn. Writes are not limited.
pub(super) struct Fair<S> {
    stream: S,
    read_in_turn_bytes: usize,
}

impl<S> Fair<S> {
    pub(super) fn new(stream: S) -> Fair<S> {
        Fair { stream, read_in_turn_bytes: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Fair<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Fair<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt;

    use super::*;

    /// On one thread, whoever reads without pause and without turns is all that runs.
    #[tokio::test(flavor = "current_thread")]
    async fn others_run_while_a_stream_without_end_is_read() {
        static TURNS: AtomicUsize = AtomicUsize::new(0);
        let other = tokio::spawn(async {
            loop {
                TURNS.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut endless = Fair::new(tokio::io::repeat(b'x'));
        let mut piece = vec![0; 1_024];
        for _ in 0..10 * TURN_BYTES / piece.len() {
            tokio::task::coop::unconstrained(endless.read_exact(&mut piece)).await.unwrap();
        }
        other.abort();
        assert!(TURNS.load(Ordering::Relaxed) >= 8, "{TURNS:?}");
    }
}
