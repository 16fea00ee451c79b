//! Measures the decoded size of a body without keeping any of it.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::{
    BROTLI_BUFFER_BYTES, BodyFlaw, Coding, MAX_LAYERS, Wrapping, ZSTD_WINDOW_LOG, is_zlib,
    join_chunks,
};

/// How much is decoded at a time.
const PIECE_BYTES: usize = 16 * 1024;

impl Wrapping {
    /// Whether the decoded body has more than `max_bytes`. With more than `MAX_LAYERS` encodings, the raw size counts;
    /// false if a layer has no decoder.
    pub(crate) fn exceeds(&self, raw: &[u8], max_bytes: usize) -> bool {
        if self.0.len() > MAX_LAYERS {
            return raw.len() > max_bytes;
        }
        let mut joined = Vec::new();
        let (input, codings) = match self.0.as_slice() {
            [Coding::Chunked, inner @ ..] => match join_chunks(raw, &mut joined) {
                Some(BodyFlaw::NotEncoded) => (raw, inner),
                _ => (joined.as_slice(), inner),
            },
            codings => (raw, codings),
        };
        let whole: Box<dyn Read + '_> = Box::new(input);
        let undone = codings.iter().try_fold(whole, |inner, coding| coding.reader(inner, input));
        undone.is_some_and(|undone| has_more_than(undone, max_bytes))
    }
}

impl Coding {
    /// A reader that decodes this layer; `None` if that is not possible. `first` is the beginning of the outermost
    /// layer.
    fn reader<'r>(self, inner: Box<dyn Read + 'r>, first: &[u8]) -> Option<Box<dyn Read + 'r>> {
        Some(match self {
            Coding::Gzip => Box::new(MultiGzDecoder::new(inner)),
            Coding::Deflate if is_zlib(first) => Box::new(ZlibDecoder::new(inner)),
            Coding::Deflate => Box::new(DeflateDecoder::new(inner)),
            Coding::Brotli => {
                Box::new(brotli_decompressor::Decompressor::new(inner, BROTLI_BUFFER_BYTES))
            }
            Coding::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(inner).ok()?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).ok()?;
                Box::new(decoder)
            }
            Coding::Chunked | Coding::Unknown => return None,
        })
    }
}

fn has_more_than(mut undone: impl Read, max_bytes: usize) -> bool {
    let mut piece = [0; PIECE_BYTES];
    let mut bytes = 0;
    while let Ok(read @ 1..) = undone.read(&mut piece) {
        bytes += read;
        if bytes > max_bytes {
            return true;
        }
    }
    false
}
