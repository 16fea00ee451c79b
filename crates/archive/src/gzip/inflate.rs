//! Inflates deflate streams in memory, up to a limit.

use flate2::{Decompress, DecompressError, FlushDecompress, Status};

/// The minimum growth of a buffer.
const LEAST_GROWTH_BYTES: usize = 32 * 1024;

/// From this size on, a buffer grows by a large amount at once. Memory that is not written to is not used, but while a
/// buffer grows, the old and the new one both take memory.
const LARGE_BYTES: usize = 1024 * 1024;
const ROOM_BYTES: usize = 16 * 1024 * 1024;

/// How a stream ended.
#[derive(Debug)]
pub(crate) enum MemberEnd {
    /// It is complete, and took this much of the input.
    Whole { input_bytes: usize },
    /// The input ended before the stream.
    Truncated,
    /// It exceeds the limit.
    TooLarge,
    /// The input is invalid.
    Corrupt(DecompressError),
}

/// Appends the content of a stream to `out`, until `out` has `max_bytes`.
pub(crate) fn inflate(
    mut stream: Decompress,
    input: &[u8],
    out: &mut Vec<u8>,
    max_bytes: usize,
) -> MemberEnd {
    loop {
        let rest = input.get(taken(&stream)..).unwrap_or_default();
        let left = max_bytes.saturating_sub(out.len());
        if left == 0 {
            return at_the_cap(stream, rest);
        }
        if out.capacity() == out.len() {
            let least = if out.len() < LARGE_BYTES { LEAST_GROWTH_BYTES } else { ROOM_BYTES };
            out.reserve_exact(left.min(out.len().max(least)));
        }
        let before = (stream.total_in(), out.len());
        match stream.decompress_vec(rest, out, FlushDecompress::None) {
            Ok(_) if out.len() > max_bytes => return cut(out, max_bytes),
            Ok(Status::StreamEnd) => return MemberEnd::Whole { input_bytes: taken(&stream) },
            Ok(_) if before == (stream.total_in(), out.len()) => return MemberEnd::Truncated,
            Ok(_) => {}
            Err(error) => return MemberEnd::Corrupt(error),
        }
    }
}

/// A vector may have more capacity than requested, so it may be filled beyond the limit.
fn cut(out: &mut Vec<u8>, max_bytes: usize) -> MemberEnd {
    out.truncate(max_bytes);
    MemberEnd::TooLarge
}

/// A stream that fits exactly has no more bytes, only its end.
fn at_the_cap(mut stream: Decompress, rest: &[u8]) -> MemberEnd {
    let before = stream.total_out();
    match stream.decompress(rest, &mut [0], FlushDecompress::None) {
        _ if stream.total_out() > before => MemberEnd::TooLarge,
        Ok(Status::StreamEnd) => MemberEnd::Whole { input_bytes: taken(&stream) },
        Ok(_) => MemberEnd::Truncated,
        Err(error) => MemberEnd::Corrupt(error),
    }
}

/// How much of its input a stream has consumed.
fn taken(stream: &Decompress) -> usize {
    usize::try_from(stream.total_in()).unwrap_or(usize::MAX)
}
