//! Handwritten HTTP/2: single frames, and just enough reading to know when to write.

use std::io;

use tokio::io::AsyncReadExt;

use super::step::Wire;

/// The connection preface of every HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The stream of a client's first request.
pub(super) const FIRST_STREAM: u32 = 1;

/// The kinds of frames, by their numbers.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Data = 0x0,
    Headers = 0x1,
    ResetStream = 0x3,
    Settings = 0x4,
    PushPromise = 0x5,
    Ping = 0x6,
    GoAway = 0x7,
    WindowUpdate = 0x8,
    Continuation = 0x9,
}

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;

/// `:status: 200`, an entry of HPACK's static table.
pub(super) const STATUS_200: &[u8] = &[0x88];

/// A frame.
pub(super) fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind as u8, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The first frames of a server: empty settings, and the acknowledgement of the client's.
pub(super) fn greeting() -> Vec<u8> {
    [frame(Kind::Settings, 0, 0, &[]), frame(Kind::Settings, ACK, 0, &[])].concat()
}

/// The head of a successful response on the first stream.
pub(super) fn ok_head() -> Vec<u8> {
    frame(Kind::Headers, END_HEADERS, FIRST_STREAM, STATUS_200)
}

/// A header that is not in HPACK's tables and is not added to them: literal name, literal value.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x00];
    for text in [name, value] {
        bytes.extend(length(text.len()));
        bytes.extend(text.bytes());
    }
    bytes
}

/// The length of a string without Huffman coding, as an HPACK integer with a 7-bit prefix.
fn length(bytes: usize) -> Vec<u8> {
    const IN_PREFIX: usize = 127;
    let Some(mut rest) = bytes.checked_sub(IN_PREFIX) else {
        return vec![u8::try_from(bytes).unwrap_or_default()];
    };
    let mut coded = vec![127];
    while rest >= 128 {
        coded.push(u8::try_from(rest % 128).unwrap_or_default() | 128);
        rest /= 128;
    }
    coded.push(u8::try_from(rest).unwrap_or_default());
    coded
}

/// Reads the preface if there is one, and then frames up to the beginning of a request.
pub(super) async fn read_request(wire: &mut dyn Wire) -> io::Result<()> {
    let mut head = [0; 9];
    loop {
        wire.read_exact(&mut head).await?;
        if head == PREFACE[..9] {
            wire.read_exact(&mut [0; 15]).await?;
            continue;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
        wire.read_exact(&mut payload).await?;
        if head[3] == Kind::Headers as u8 {
            return Ok(());
        }
    }
}
