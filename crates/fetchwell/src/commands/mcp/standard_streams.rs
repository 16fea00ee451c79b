//! Standard input and output as asynchronous streams.
//!
//! Each has a thread of its own, which is not joined at exit: a read from a terminal, or from a client that neither
//! writes nor closes its end, would never return.

use std::io::{self, Read, Write};
use std::thread;

use futures::{SinkExt, Stream, StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::bytes::Bytes;
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};
use tokio_util::sync::PollSender;

/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// How many pieces may be buffered in each direction.
const PIECES: usize = 4;

/// Starts to read standard input. The receiver gets the error if it cannot be read to its end.
pub(super) fn input()
-> io::Result<(impl AsyncRead + Send + Unpin + 'static, oneshot::Receiver<io::Error>)> {
    let (sender, receiver) = mpsc::channel(PIECES);
    let (failed, failure) = oneshot::channel();
    let read = move || {
        let mut input = io::stdin().lock();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = match input.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => Bytes::copy_from_slice(piece.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    // rmcp takes an error for the end of the input, so the error goes another way.
                    drop(failed.send(error));
                    return;
                }
            };
            if sender.blocking_send(read).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok((StreamReader::new(Box::pin(pieces(receiver))), failure))
}

fn pieces(mut receiver: mpsc::Receiver<Bytes>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::poll_fn(move |context| receiver.poll_recv(context)).map(Ok)
}

/// Standard output, and a receiver that resolves when all of it was written or its reader has gone.
pub(super) fn output()
-> io::Result<(impl AsyncWrite + Send + Unpin + 'static, oneshot::Receiver<()>)> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(PIECES);
    let (ended, end) = oneshot::channel::<()>();
    let write = move || {
        let mut output = io::stdout().lock();
        while let Some(piece) = receiver.blocking_recv() {
            if output.write_all(&piece).and_then(|()| output.flush()).is_err() {
                break;
            }
        }
        // Resolves the receiver.
        drop(ended);
    };
    thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
    let sink = PollSender::new(sender).sink_map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
    Ok((SinkWriter::new(CopyToBytes::new(sink)), end))
}
