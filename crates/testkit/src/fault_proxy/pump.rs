//! One direction of a connection, with its faults.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::faults::{Cut, Faults};

/// The largest piece that is read at once.
const PIECE_BYTES: usize = 16 << 10;
/// The maximum number of pieces in transit, which limits what a delay holds back.
const MOST_PIECES: usize = 256;
/// How often a slow direction gets bytes.
const RATE_GRAIN: Duration = Duration::from_millis(20);

struct Piece {
    read_at: Instant,
    bytes: Vec<u8>,
}

/// Moves bytes until there are no more, then passes on the end of the stream. An error says how the whole connection
/// ends.
pub(super) async fn pump(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    faults: watch::Receiver<Faults>,
) -> Result<(), Cut> {
    let (pieces, outlet) = mpsc::channel(MOST_PIECES);
    let writer = Writer { to, faults, sent_bytes: 0 };
    tokio::try_join!(take_in(from, pieces), writer.give_out(outlet))?;
    Ok(())
}

async fn take_in(mut from: impl AsyncRead + Unpin, pieces: mpsc::Sender<Piece>) -> Result<(), Cut> {
    loop {
        let mut bytes = vec![0; PIECE_BYTES];
        let count = from.read(&mut bytes).await.map_err(|_| Cut::Reset)?;
        if count == 0 {
            return Ok(());
        }
        bytes.truncate(count);
        let piece = Piece { read_at: Instant::now(), bytes };
        pieces.send(piece).await.map_err(|_| Cut::Reset)?;
    }
}

struct Writer<W> {
    to: W,
    faults: watch::Receiver<Faults>,
    /// Since the faults were set.
    sent_bytes: u64,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn give_out(mut self, mut pieces: mpsc::Receiver<Piece>) -> Result<(), Cut> {
        let faults = self.now();
        self.cut_if_due(&faults)?;
        while let Some(piece) = pieces.recv().await {
            let mut rest = &piece.bytes[..];
            while !rest.is_empty() {
                let faults = self.due(piece.read_at).await;
                self.cut_if_due(&faults)?;
                let (slice, later) = rest.split_at(self.slice_bytes(&faults).min(rest.len()));
                self.write(slice, &faults).await?;
                rest = later;
            }
        }
        self.due(Instant::now()).await; // The end is delayed like any bytes.
        self.to.shutdown().await.map_err(|_| Cut::Reset)
    }

    /// Waits until something that was read at that moment may be sent, even if the faults change meanwhile.
    async fn due(&mut self, read_at: Instant) -> Faults {
        loop {
            let faults = self.now();
            let due_at = read_at + faults.delay;
            let changed = self.faults.changed();
            if faults.is_stalled {
                // A dropped proxy changes nothing any more.
                if changed.await.is_err() {
                    std::future::pending::<()>().await;
                }
            } else if due_at <= Instant::now() {
                return faults;
            } else {
                tokio::select! {
                    () = sleep_until(due_at) => {}
                    Ok(()) = changed => {}
                }
            }
        }
    }

    fn now(&mut self) -> Faults {
        if self.faults.has_changed().unwrap_or(false) {
            self.sent_bytes = 0;
        }
        *self.faults.borrow_and_update()
    }

    fn cut_if_due(&self, faults: &Faults) -> Result<(), Cut> {
        match faults.cut_after {
            Some((bytes, cut)) if self.sent_bytes >= bytes => Err(cut),
            _ => Ok(()),
        }
    }

    fn slice_bytes(&self, faults: &Faults) -> usize {
        let by_size = faults.slice_bytes.unwrap_or(usize::MAX);
        let by_rate = faults.bytes_per_second.map_or(u64::MAX, |rate| {
            rate / (Duration::from_secs(1).as_millis() / RATE_GRAIN.as_millis()) as u64
        });
        let by_cut = faults.cut_after.map_or(u64::MAX, |(bytes, _)| bytes - self.sent_bytes);
        by_size.min(usize::try_from(by_rate.min(by_cut)).unwrap_or(usize::MAX)).max(1)
    }

    async fn write(&mut self, slice: &[u8], faults: &Faults) -> Result<(), Cut> {
        let written = async {
            self.to.write_all(slice).await?;
            self.to.flush().await
        };
        written.await.map_err(|_| Cut::Reset)?;
        self.sent_bytes += slice.len() as u64;
        self.cut_if_due(faults)?;
        if let Some(rate) = faults.bytes_per_second {
            sleep(Duration::from_secs_f64(slice.len() as f64 / rate.max(1) as f64)).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use parking_lot::Mutex;
    use tokio::io::DuplexStream;
    use tokio::task::JoinHandle;

    use super::*;

    /// A direction under test, on a paused clock.
    struct Line {
        from: DuplexStream,
        to: DuplexStream,
        faults: watch::Sender<Faults>,
        pump: JoinHandle<Result<(), Cut>>,
        began: Instant,
    }

    fn line(faults: Faults) -> Line {
        let (from, inlet) = tokio::io::duplex(1 << 20);
        let (outlet, to) = tokio::io::duplex(1 << 20);
        let (faults, current) = watch::channel(faults);
        let pump = tokio::spawn(pump(inlet, outlet, current));
        Line { from, to, faults, pump, began: Instant::now() }
    }

    impl Line {
        async fn send(&mut self, bytes: usize) {
            self.from.write_all(&vec![b'x'; bytes]).await.unwrap();
        }

        /// Waits for this many bytes; returns when the last one arrived.
        async fn receive(&mut self, bytes: usize) -> Duration {
            self.to.read_exact(&mut vec![0; bytes]).await.unwrap();
            self.began.elapsed()
        }

        /// Whether nothing arrives for this long.
        async fn is_silent_for(&mut self, time: Duration) -> bool {
            tokio::time::timeout(time, self.to.read_u8()).await.is_err()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn without_faults_bytes_and_their_end_pass_at_once() {
        let mut line = line(Faults::default());
        line.send(100_000).await;
        assert_eq!(line.receive(100_000).await, Duration::ZERO);
        drop(line.from);
        assert_eq!(line.to.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(line.pump.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_delays_and_does_not_slow_down() {
        let mut line = line(Faults::delay(3 * SECOND));
        line.send(10).await;
        sleep(SECOND).await;
        line.send(100_000).await;
        assert_eq!(line.receive(10).await.as_secs(), 3);
        assert_eq!(line.receive(100_000).await.as_secs(), 4);
        line.faults.send_replace(Faults::default());
        line.send(1).await;
        assert_eq!(line.receive(1).await.as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_that_is_taken_back_lets_go_what_it_held() {
        let mut line = line(Faults::delay(3_600 * SECOND));
        line.send(10).await;
        assert!(line.is_silent_for(10 * SECOND).await);
        line.faults.send_replace(Faults::default());
        assert_eq!(line.receive(10).await.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_holds_bytes_and_their_end_until_it_is_taken_back() {
        let mut line = line(Faults::stall());
        line.send(10).await;
        line.from.shutdown().await.unwrap();
        assert!(line.is_silent_for(3_600 * SECOND).await);
        line.faults.send_replace(Faults::default());
        assert_eq!(line.receive(10).await.as_secs(), 3_600);
        assert_eq!(line.to.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_kept() {
        let mut line = line(Faults::bytes_per_second(1_000));
        line.send(10_000).await;
        let took = line.receive(10_000).await;
        assert!((9..=10).contains(&took.as_secs()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_below_a_byte_a_grain_is_kept_too() {
        let mut line = line(Faults::bytes_per_second(2));
        line.send(10).await;
        let took = line.receive(10).await;
        assert!((4..=5).contains(&took.as_secs()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_comes_after_just_so_many_bytes() {
        for cut in [Cut::Close, Cut::Reset] {
            for bytes in [0_usize, 1, 10, 20_000] {
                let mut line = line(Faults::cut_after(bytes as u64, cut));
                line.send(50_000).await;
                assert_eq!(line.pump.await.unwrap(), Err(cut));
                let mut arrived = Vec::new();
                line.to.read_to_end(&mut arrived).await.unwrap();
                assert_eq!(arrived.len(), bytes);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_counts_from_when_it_was_set() {
        let mut line = line(Faults::default());
        line.send(1_000).await;
        line.receive(1_000).await;
        line.faults.send_replace(Faults::cut_after(5, Cut::Close));
        line.send(1_000).await;
        line.receive(5).await;
        assert_eq!(line.pump.await.unwrap(), Err(Cut::Close));
    }

    /// Remembers the size of each write.
    struct Recorder(Arc<Mutex<Vec<usize>>>);

    impl AsyncWrite for Recorder {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.lock().push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn slices_are_written_one_by_one() {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let (_faults, current) = watch::channel(Faults::slices(3));
        pump(&b"0123456789"[..], Recorder(writes.clone()), current).await.unwrap();
        assert_eq!(*writes.lock(), [3, 3, 3, 1]);
    }
}
