//! Kernel timestamps of received bytes: however busy this process is, a request that arrived in time is recorded as in
//! time.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// When the last bytes of a connection arrived.
#[derive(Clone)]
pub(crate) struct LastBytes(Arc<Mutex<Instant>>);

impl LastBytes {
    pub(crate) fn at(&self) -> Instant {
        *self.0.lock()
    }

    fn set(&self, at: Instant) {
        *self.0.lock() = at;
    }
}

/// A connection whose received bytes are timestamped.
pub(crate) struct Stamped {
    stream: TcpStream,
    last_bytes: LastBytes,
}

impl Stamped {
    pub(crate) fn new(stream: TcpStream) -> Stamped {
        // Without timestamps, the time of reading is used.
        setsockopt(&stream, sockopt::ReceiveTimestampns, &true).ok();
        Stamped { stream, last_bytes: LastBytes(Arc::new(Mutex::new(Instant::now()))) }
    }

    pub(crate) fn last_bytes(&self) -> LastBytes {
        self.last_bytes.clone()
    }

    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stamp = cmsg_space!(TimeSpec);
        let mut slices = [IoSliceMut::new(buffer)];
        let fd = self.stream.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut slices, Some(&mut stamp), MsgFlags::empty())?;
        let age = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => age(Duration::from(stamp)),
            _ => None,
        });
        let now = Instant::now();
        self.last_bytes.set(age.and_then(|age| now.checked_sub(age)).unwrap_or(now));
        Ok(message.bytes)
    }
}

/// The age of a timestamp, given as the time since the epoch.
fn age(stamp: Duration) -> Option<Duration> {
    #[expect(clippy::disallowed_methods, reason = "the kernel stamps by the wall clock")]
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + stamp).ok()
}

impl AsyncRead for Stamped {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match self.stream.try_io(Interest::READABLE, || self.receive(room)) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn bytes_that_are_read_late_have_arrived_when_they_arrived() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "it plays the client")]
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut stamped = Stamped::new(listener.accept().await.unwrap().0);
        let mut is_stamped = async || {
            client.write_all(b"x").await.unwrap();
            let written = Instant::now();
            sleep(Duration::from_millis(50)).await;
            assert_eq!(stamped.read_u8().await.unwrap(), b'x');
            stamped.last_bytes().at() <= written + Duration::from_millis(25)
        };
        // The kernel switches its stamps on a little after the first socket of the machine asked for them.
        let mut switched_on = false;
        for _ in 0..20 {
            switched_on = switched_on || is_stamped().await;
        }
        assert!(switched_on);
        for _ in 0..2 {
            assert!(is_stamped().await);
        }
        drop(client);
        assert_eq!(stamped.read(&mut [0]).await.unwrap(), 0);
    }
}
