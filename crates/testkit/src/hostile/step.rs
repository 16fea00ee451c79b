//! The steps of a hostile connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use super::frames;

/// The pause of slow steps: it corresponds to a second in reality, scaled to the short limits of a test.
const TICK: Duration = Duration::from_millis(50);

/// A flood is written in pieces of about this size.
const FLOOD_PIECE_BYTES: usize = 16 << 10;
/// More than any limit of a test. More at full speed would only keep the processors busy until a time limit ends it.
const FAST_FLOOD_BYTES: usize = 4 << 20;

/// No client of ours sends a longer request head.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// The next step of a connection. At the end of a script, the connection is closed normally.
#[derive(Clone, Debug)]
pub enum HostileStep {
    /// Reads one request without a body.
    Read,
    /// Reads HTTP/2 frames until one holds a request.
    ReadFrames,
    Write(Vec<u8>),
    /// Writes a response that depends on the path of the request.
    Answer(fn(path: &str) -> Vec<u8>),
    /// Writes this byte by byte.
    Drip(Vec<u8>),
    /// Writes this repeatedly with a pause after each, until the client is gone.
    Trickle(Vec<u8>),
    /// Writes this repeatedly until the client is gone: some megabytes as fast as possible, and then more slowly.
    Flood(Vec<u8>),
    /// Waits a moment.
    Pause,
    /// Closes the writing side, and continues to read.
    HalfClose,
    /// Sends nothing until the client closes the connection.
    Silence,
    /// Ends the script, and closes without the `close_notify` of TLS.
    Cut,
    /// Ends the script, and closes with an RST instead of a FIN.
    Reset,
}

/// A connection over any transport.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// Runs a script as long as the client cooperates. Requests for robots.txt get `robots` instead, if there is one.
pub(super) async fn follow(
    script: &[HostileStep],
    wire: &mut dyn Wire,
    robots: Option<&[u8]>,
) -> io::Result<()> {
    let mut path = String::new();
    for step in script {
        match step {
            HostileStep::Read => {
                path = read_path(wire).await?;
                if let Some(robots) = robots.filter(|_| path == "/robots.txt") {
                    wire.write_all(robots).await?;
                    break;
                }
            }
            HostileStep::ReadFrames => frames::read_request(wire).await?,
            HostileStep::Write(bytes) => write(wire, bytes).await?,
            HostileStep::Answer(answer) => write(wire, &answer(&path)).await?,
            HostileStep::Drip(bytes) => {
                for byte in bytes {
                    write(wire, &[*byte]).await?;
                    sleep(TICK).await;
                }
            }
            HostileStep::Trickle(piece) => loop {
                write(wire, piece).await?;
                sleep(TICK).await;
            },
            HostileStep::Flood(piece) => {
                let pieces = piece.repeat(FLOOD_PIECE_BYTES.div_ceil(piece.len()));
                for count in 1_usize.. {
                    write(wire, &pieces).await?;
                    if count * pieces.len() > FAST_FLOOD_BYTES {
                        sleep(TICK).await;
                    }
                }
            }
            HostileStep::Pause => sleep(TICK).await,
            HostileStep::HalfClose => wire.shutdown().await?,
            HostileStep::Silence => await_close(wire).await,
            HostileStep::Cut | HostileStep::Reset => return Ok(()),
        }
    }
    wire.shutdown().await?;
    // Closing while the client still writes would cause a reset and could discard the response.
    await_close(wire).await;
    Ok(())
}

async fn write(wire: &mut dyn Wire, bytes: &[u8]) -> io::Result<()> {
    wire.write_all(bytes).await?;
    wire.flush().await
}

/// Waits until the client closes the connection; a reset counts, too.
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
