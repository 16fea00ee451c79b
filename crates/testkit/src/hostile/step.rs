//! What a hostile connection does, byte by byte.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::frames;

/// The pause of everything that is slow here: as a second is in the wild, by the short limits of a
/// test.
const TICK: Duration = Duration::from_millis(50);

/// A flood is written in pieces of about this size.
const FLOOD_PIECE_BYTES: usize = 16 << 10;

/// No client of ours sends a longer request head.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// What a connection does next. A script that is over closes its connection in order.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads one request without a body.
    Read,
    /// Reads HTTP/2 frames until one holds a request.
    ReadFrames,
    /// Writes this.
    Write(Vec<u8>),
    /// Writes what depends on the path of the request.
    Answer(fn(path: &str) -> Vec<u8>),
    /// Writes this a byte at a time.
    Drip(Vec<u8>),
    /// Writes this over and over with a pause after each, until the client is gone.
    Trickle(Vec<u8>),
    /// Writes this over and over as fast as it goes, until the client is gone.
    Flood(Vec<u8>),
    /// Waits a moment.
    Pause,
    /// Says that it will write no more, and listens on.
    HalfClose,
    /// Says nothing until the client closes the connection.
    Silence,
    /// Ends the script, and closes without the goodbye of TLS.
    Cut,
    /// Ends the script, and closes with an RST instead of a FIN.
    Reset,
}

/// A connection, whatever it runs over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// Follows a script as far as the client plays along. Requests for robots.txt get `robots` instead,
/// if there is one.
pub(super) async fn follow(
    script: &[Step],
    wire: &mut dyn Wire,
    robots: Option<&[u8]>,
) -> io::Result<()> {
    let mut path = String::new();
    for step in script {
        match step {
            Step::Read => {
                path = read_path(wire).await?;
                if let Some(robots) = robots.filter(|_| path == "/robots.txt") {
                    wire.write_all(robots).await?;
                    break;
                }
            }
            Step::ReadFrames => frames::read_request(wire).await?,
            Step::Write(bytes) => write(wire, bytes).await?,
            Step::Answer(answer) => write(wire, &answer(&path)).await?,
            Step::Drip(bytes) => {
                for byte in bytes {
                    write(wire, &[*byte]).await?;
                    sleep(TICK).await;
                }
            }
            Step::Trickle(piece) => loop {
                write(wire, piece).await?;
                sleep(TICK).await;
            },
            Step::Flood(piece) => {
                let pieces = piece.repeat(FLOOD_PIECE_BYTES.div_ceil(piece.len()));
                loop {
                    write(wire, &pieces).await?;
                }
            }
            Step::Pause => sleep(TICK).await,
            Step::HalfClose => wire.shutdown().await?,
            Step::Silence => await_close(wire).await,
            Step::Cut | Step::Reset => return Ok(()),
        }
    }
    wire.shutdown().await?;
    // Closing while the client still writes would be a reset, and could eat up the answer.
    await_close(wire).await;
    Ok(())
}

async fn write(wire: &mut dyn Wire, bytes: &[u8]) -> io::Result<()> {
    wire.write_all(bytes).await?;
    wire.flush().await
}

/// A reset is an end as good as any.
pub(super) async fn await_close(wire: &mut dyn Wire) {
    let mut ignored = [0; 4_096];
    while wire.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

/// Reads a request without a body, for its path.
async fn read_path(wire: &mut dyn Wire) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MAX_REQUEST_BYTES {
            return Err(io::Error::other("a request head without end"));
        }
        head.push(wire.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.split(' ').nth(1).unwrap_or_default().to_owned())
}
