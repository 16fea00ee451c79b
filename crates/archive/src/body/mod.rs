//! Decodes the body of an HTTP message.
//!
//! Headers in archives are unreliable: some archives store decoded bodies and keep the original headers. So a body that
//! does not have the encoding that its headers declare is returned as it is, and the flaw is reported.

mod size;

use std::io::Read;

use flate2::Decompress;
use libdeflater::Decompressor;

use crate::gzip::{MAGIC, MemberEnd, WINDOW_BITS, ends_with_its_member, inflate, stated_size};
use crate::headers::Headers;

/// More nested encodings are not decoded.
const MAX_LAYERS: usize = 4;

/// The largest zstd window on the web, as a power of two.
const ZSTD_WINDOW_LOG: u32 = 23;

/// How much the brotli decoder reads at once.
const BROTLI_BUFFER_BYTES: usize = 4 * 1024;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A decoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'b> {
    /// The content.
    pub bytes: &'b [u8],
    pub flaw: Option<BodyFlaw>,
}

/// What is wrong with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyFlaw {
    /// It is longer than the limit.
    #[error("the body exceeds the size limit and is truncated")]
    TooLarge,
    /// It ends before its encoding does.
    #[error("the body is cut off")]
    Truncated,
    /// Its encoding is invalid; the part before the error is returned.
    #[error("the body is damaged and ends at the error")]
    Corrupt,
    /// It does not have the encoding that the headers declare; it is returned without decoding that.
    #[error("the body does not have the encoding that its headers declare")]
    NotEncoded,
    /// The headers declare an unknown encoding; it is returned as it is.
    #[error("the body has an unknown encoding")]
    UnknownEncoding,
}

/// The encodings of a body, the outermost first.
pub(crate) struct Wrapping(Vec<Coding>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    Unknown,
}

impl Wrapping {
    pub(crate) fn of(headers: Headers<'_>) -> Wrapping {
        let mut layers = Vec::new();
        for name in ["Content-Encoding", "Transfer-Encoding"] {
            let values = headers.values(name).flat_map(|value| value.split(|byte| *byte == b','));
            layers.extend(values.filter_map(Coding::of));
        }
        layers.reverse();
        Wrapping(layers)
    }

    pub(crate) fn undo<'b>(
        &self,
        raw: &'b [u8],
        scratch: &'b mut Vec<u8>,
        max_bytes: usize,
    ) -> Body<'b> {
        if self.0.len() > MAX_LAYERS {
            return Body { bytes: raw, flaw: Some(BodyFlaw::UnknownEncoding) };
        }
        let mut current = None::<Vec<u8>>;
        let mut flaw = None;
        for coding in &self.0 {
            let input = current.as_deref().unwrap_or(raw);
            let mut out = std::mem::take(scratch);
            out.clear();
            let found = coding.undo(input, &mut out, max_bytes);
            flaw = flaw.or(found);
            if matches!(found, Some(BodyFlaw::NotEncoded | BodyFlaw::UnknownEncoding)) {
                *scratch = out;
            } else {
                *scratch = current.replace(out).unwrap_or_default();
            }
        }
        let bytes = match current {
            Some(decoded) => {
                *scratch = decoded;
                scratch
            }
            None => raw,
        };
        Body { bytes, flaw }
    }
}

impl Coding {
    fn of(token: &[u8]) -> Option<Coding> {
        Some(match token.trim_ascii().to_ascii_lowercase().as_slice() {
            b"" | b"identity" | b"none" => return None,
            b"chunked" => Coding::Chunked,
            b"gzip" | b"x-gzip" => Coding::Gzip,
            b"deflate" => Coding::Deflate,
            b"br" => Coding::Brotli,
            b"zstd" => Coding::Zstd,
            _ => Coding::Unknown,
        })
    }

    fn undo(self, input: &[u8], out: &mut Vec<u8>, max_bytes: usize) -> Option<BodyFlaw> {
        if input.is_empty() {
            return None;
        }
        match self {
            Coding::Chunked => join_chunks(input, out),
            Coding::Gzip => inflate_members(input, out, max_bytes),
            Coding::Deflate => {
                flaw_of(&inflate(Decompress::new(is_zlib(input)), input, out, max_bytes), out)
            }
            Coding::Brotli => undo_brotli(input, out, max_bytes),
            Coding::Zstd if !input.starts_with(&ZSTD_MAGIC) => Some(BodyFlaw::NotEncoded),
            Coding::Zstd => match zstd::stream::read::Decoder::with_buffer(input) {
                Ok(mut decoder) => match decoder.window_log_max(ZSTD_WINDOW_LOG) {
                    Ok(()) => drain(decoder, out, max_bytes),
                    Err(_) => Some(BodyFlaw::UnknownEncoding),
                },
                Err(_) => Some(BodyFlaw::UnknownEncoding),
            },
            Coding::Unknown => Some(BodyFlaw::UnknownEncoding),
        }
    }
}

/// Joins the chunks, each of which states its length in hex; trailers and anything after them are ignored.
fn join_chunks(mut input: &[u8], out: &mut Vec<u8>) -> Option<BodyFlaw> {
    let mut is_first = true;
    loop {
        let Some(line_end) = memchr::memchr(b'\n', input) else {
            let broken = if is_first { BodyFlaw::NotEncoded } else { BodyFlaw::Truncated };
            return Some(broken);
        };
        let (line, rest) = input.split_at(line_end + 1);
        let Some(length) = chunk_length(line) else {
            let broken = if is_first { BodyFlaw::NotEncoded } else { BodyFlaw::Corrupt };
            return Some(broken);
        };
        if length == 0 {
            return None;
        }
        let Some(chunk) = rest.get(..length) else {
            out.extend_from_slice(rest);
            return Some(BodyFlaw::Truncated);
        };
        out.extend_from_slice(chunk);
        let after = &rest[length..];
        let end =
            if after.starts_with(b"\r\n") { 2 } else { usize::from(after.starts_with(b"\n")) };
        input = &after[end..];
        is_first = false;
    }
}

/// `1A;extension`, with any spaces.
fn chunk_length(line: &[u8]) -> Option<usize> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let is_hex = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok().filter(|_| is_hex)
}

/// A body may have several gzip members; anything else after them is not part of it.
fn inflate_members(mut input: &[u8], out: &mut Vec<u8>, max_bytes: usize) -> Option<BodyFlaw> {
    if !input.starts_with(&MAGIC) {
        return Some(BodyFlaw::NotEncoded);
    }
    if inflate_at_once(input, out, max_bytes) {
        return None;
    }
    while input.starts_with(&MAGIC) {
        let ended = inflate(Decompress::new_gzip(WINDOW_BITS), input, out, max_bytes);
        let MemberEnd::Whole { input_bytes } = ended else { return flaw_of(&ended, out) };
        input = input.get(input_bytes..).unwrap_or_default();
    }
    None
}

/// The fast path for exactly one member, which most bodies are. If it returns false, `out` is empty.
fn inflate_at_once(input: &[u8], out: &mut Vec<u8>, max_bytes: usize) -> bool {
    let Some(size) = stated_size(input).filter(|size| *size <= max_bytes) else { return false };
    out.resize(size, 0);
    let is_whole =
        Decompressor::new().gzip_decompress(input, out) == Ok(size) && ends_with_its_member(input);
    if !is_whole {
        out.clear();
    }
    is_whole
}

/// "Deflate" means zlib by the standard, but some servers send raw deflate.
fn is_zlib(input: &[u8]) -> bool {
    input.first_chunk().is_some_and(|[method, flags]| {
        method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0
    })
}

fn flaw_of(ended: &MemberEnd, out: &[u8]) -> Option<BodyFlaw> {
    match ended {
        MemberEnd::Whole { .. } => None,
        MemberEnd::Truncated => Some(BodyFlaw::Truncated),
        MemberEnd::TooLarge => Some(BodyFlaw::TooLarge),
        MemberEnd::Corrupt(_) if out.is_empty() => Some(BodyFlaw::NotEncoded),
        MemberEnd::Corrupt(_) => Some(BodyFlaw::Corrupt),
    }
}

/// Brotli has no magic number: input that fails to decode and did not even grow was not brotli. The decoder reports a
/// truncated body as invalid, too; whether it tried to read beyond the end tells the two apart.
fn undo_brotli(input: &[u8], out: &mut Vec<u8>, max_bytes: usize) -> Option<BodyFlaw> {
    let mut source = Watched { rest: input, is_exhausted: false };
    let decoder = brotli_decompressor::Decompressor::new(&mut source, BROTLI_BUFFER_BYTES);
    match drain(decoder, out, max_bytes) {
        Some(BodyFlaw::Corrupt | BodyFlaw::NotEncoded) if source.is_exhausted => {
            Some(BodyFlaw::Truncated)
        }
        Some(BodyFlaw::Corrupt) if out.len() <= input.len() => Some(BodyFlaw::NotEncoded),
        flaw => flaw,
    }
}

/// Records whether the decoder tried to read beyond the end.
struct Watched<'a> {
    rest: &'a [u8],
    is_exhausted: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.is_exhausted |= self.rest.is_empty();
        self.rest.read(room)
    }
}

fn drain(decoder: impl Read, out: &mut Vec<u8>, max_bytes: usize) -> Option<BodyFlaw> {
    let one_too_many = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let read = decoder.take(one_too_many).read_to_end(out);
    if out.len() > max_bytes {
        out.truncate(max_bytes);
        return Some(BodyFlaw::TooLarge);
    }
    match read {
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Some(BodyFlaw::Truncated)
        }
        Err(_) if out.is_empty() => Some(BodyFlaw::NotEncoded),
        Err(_) => Some(BodyFlaw::Corrupt),
    }
}
