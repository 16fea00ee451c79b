//! Reads a body from the wire and decodes it into memory, with limits at each step.

#![expect(clippy::disallowed_types, reason = "the one place that decodes, and here it is capped")]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{BufMut, Bytes};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use futures::Stream;
use http::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};
use hyper::body::Incoming;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use super::HttpLimits;
use super::patience::Patience;
use super::wire::Wire;
use crate::budget::{Budget, Share};

/// A body may inflate to this size, regardless of the ratio.
const RATIO_FREE_BYTES: usize = 1 << 20;
/// The largest window that a zstd body may require: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// How much a body may grow between two checks of the limits, and its initial capacity.
const STEP_BYTES: usize = 16 << 10;

/// What to do with the content encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoding {
    /// Decode the body.
    Undo,
    /// Keep the body as received.
    AsItComes,
}

/// Reads a body, up to `enough` bytes.
pub(super) async fn read_body(
    body: Incoming,
    headers: &HeaderMap,
    decoding: Decoding,
    limits: &HttpLimits,
    enough: usize,
    patience: Patience,
    budget: &Budget,
) -> Result<(Bytes, Share), FetchOutcome> {
    check_transfer_encoding(headers)?;
    let encoding = match decoding {
        Decoding::Undo => Encoding::of(headers)?,
        Decoding::AsItComes => None,
    };
    let wire = Wire::new(body, patience, limits);
    let window_bytes = encoding.map_or(0, Encoding::window_bytes);
    let decoded = Vec::new();
    let share = Share::none();
    let mut text = Text { limits, enough, patience, budget, window_bytes, decoded, share };
    match encoding {
        None => text.take_plain(wire).await?,
        Some(encoding) => text.take_encoded(wire, encoding).await?,
    }
    text.decoded.truncate(enough);
    // The decoder and its window are gone.
    text.share.shrink_to(text.decoded.capacity());
    Ok((Bytes::from(text.decoded), text.share))
}

/// A body that is being read and decoded.
struct Text<'a> {
    limits: &'a HttpLimits,
    enough: usize,
    patience: Patience,
    budget: &'a Budget,
    /// How much of its output the decoder may keep as its window.
    window_bytes: usize,
    decoded: Vec<u8>,
    share: Share,
}

impl Text<'_> {
    /// Reads a body without decoding, until it is enough.
    async fn take_plain(&mut self, mut wire: Wire) -> Result<(), FetchOutcome> {
        while let Some(piece) = wire.next().await? {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                if self.decoded.len() == self.decoded.capacity() {
                    self.make_room().await?;
                }
                let room = self.decoded.capacity() - self.decoded.len();
                let (fits, more) = rest.split_at(room.min(rest.len()));
                self.decoded.extend_from_slice(fits);
                rest = more;
                if self.is_enough() {
                    return Ok(());
                }
                self.check_size(wire.bytes())?;
            }
            // Reading a body that has already arrived never waits, so let other tasks run.
            tokio::task::coop::consume_budget().await;
        }
        Ok(())
    }

    /// Decodes a body member by member, until it is enough.
    async fn take_encoded(&mut self, wire: Wire, encoding: Encoding) -> Result<(), FetchOutcome> {
        let on_wire = Arc::new(AtomicUsize::new(0));
        let mut wire = StreamReader::new(Box::pin(pieces(wire, on_wire.clone())));
        let mut members = 0;
        loop {
            let begins = wire.fill_buf().await.map_err(happened)?.first().copied();
            match begins {
                Some(first) if members == 0 || encoding.begins_another(first) => {
                    if members == self.limits.max_frames {
                        return Err(FetchOutcome::BadAnswer(AnswerFault::TooManyFrames));
                    }
                    self.take_member(encoding.decoder(&mut wire, first), &on_wire).await?;
                    members += 1;
                }
                _ => break,
            }
            if self.is_enough() {
                return Ok(());
            }
            tokio::task::coop::consume_budget().await;
        }
        skip_rest(&mut wire).await.map_err(happened)
    }

    /// Reads the output of a decoder, until it is enough.
    async fn take_member(
        &mut self,
        mut decoder: Pin<Box<dyn AsyncRead + Send + '_>>,
        on_wire: &AtomicUsize,
    ) -> Result<(), FetchOutcome> {
        loop {
            if self.decoded.len() == self.decoded.capacity() {
                self.make_room().await?;
            }
            let mut step = (&mut self.decoded).limit(STEP_BYTES);
            let count = decoder.read_buf(&mut step).await.map_err(happened)?;
            if count == 0 || self.is_enough() {
                return Ok(());
            }
            self.check_size(on_wire.load(Ordering::Relaxed))?;
            tokio::task::coop::consume_budget().await;
        }
    }

    fn is_enough(&self) -> bool {
        self.decoded.len() >= self.enough
    }

    fn check_size(&self, on_wire: usize) -> Result<(), FetchOutcome> {
        if self.decoded.len() > self.limits.max_body_bytes {
            return Err(FetchOutcome::BadAnswer(AnswerFault::TooLarge));
        }
        let ratio_cap = on_wire.saturating_mul(self.limits.max_ratio).max(RATIO_FREE_BYTES);
        if self.decoded.len() > ratio_cap {
            return Err(FetchOutcome::BadAnswer(AnswerFault::Bomb));
        }
        Ok(())
    }

    /// Grows the buffer. The share covers its whole capacity, filled or not, and the window of the decoder.
    async fn make_room(&mut self) -> Result<(), FetchOutcome> {
        let twice = 2 * self.decoded.len();
        let room = twice.min(self.limits.max_body_bytes).max(STEP_BYTES);
        // One byte more, to see that a body of exactly the limit ends there.
        let room = room.saturating_add(1);
        let bytes = room.saturating_add(room.min(self.window_bytes));
        let growing = self.budget.grow(&mut self.share, bytes);
        tokio::time::timeout_at(self.patience.deadline(), growing).await.map_err(|_| {
            FetchOutcome::OurFault(
                "all bodies together took up http.body_budget for too long".to_owned(),
            )
        })?;
        self.decoded.reserve_exact(room - self.decoded.len());
        Ok(())
    }
}

/// A decoder may end before the body does, but the connection can be reused only after the whole body was read. Data
/// after an encoded body is ignored.
async fn skip_rest(wire: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let rest = wire.fill_buf().await?.len();
        if rest == 0 {
            return Ok(());
        }
        wire.consume(rest);
    }
}

/// The chunks of a body, as input for a decoder. Updates the number of bytes read so far.
fn pieces(
    wire: Wire,
    on_wire: Arc<AtomicUsize>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    futures::stream::try_unfold(wire, move |mut wire| {
        let on_wire = on_wire.clone();
        async move {
            let piece = wire.next().await.map_err(io::Error::other)?;
            on_wire.store(wire.bytes(), Ordering::Relaxed);
            Ok(piece.map(|piece| (piece, wire)))
        }
    })
}

/// The outcome of a failed read. An error of the wire passes through the decoders inside an `io::Error`; any other
/// error means that the encoding is bad.
fn happened(error: io::Error) -> FetchOutcome {
    error.downcast().unwrap_or(FetchOutcome::BadAnswer(AnswerFault::BadEncoding))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// Accepts at most one encoding, and only one that we requested.
    fn of(headers: &HeaderMap) -> Result<Option<Encoding>, FetchOutcome> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return match headers.contains_key(CONTENT_ENCODING) {
                true => Err(FetchOutcome::BadAnswer(AnswerFault::BadEncoding)),
                false => Ok(None),
            };
        };
        match value.to_str().unwrap_or("?").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Encoding::Gzip)),
            "deflate" => Ok(Some(Encoding::Deflate)),
            "br" => Ok(Some(Encoding::Brotli)),
            "zstd" => Ok(Some(Encoding::Zstd)),
            _ => Err(FetchOutcome::BadAnswer(AnswerFault::BadEncoding)),
        }
    }

    fn decoder<'a>(
        self,
        wire: &'a mut (impl AsyncBufRead + Send + Unpin),
        first_byte: u8,
    ) -> Pin<Box<dyn AsyncRead + Send + 'a>> {
        match self {
            Encoding::Gzip => Box::pin(GzipDecoder::new(wire)),
            Encoding::Deflate if begins_zlib(first_byte) => Box::pin(ZlibDecoder::new(wire)),
            Encoding::Deflate => Box::pin(DeflateDecoder::new(wire)),
            Encoding::Brotli => Box::pin(BrotliDecoder::new(wire)),
            Encoding::Zstd => {
                let window = DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX);
                Box::pin(ZstdDecoder::with_params(wire, &[window]))
            }
        }
    }

    /// The maximum size of a decoder's window.
    fn window_bytes(self) -> usize {
        match self {
            Encoding::Gzip | Encoding::Deflate => 32 << 10,
            Encoding::Brotli => 16 << 20,
            Encoding::Zstd => 1 << ZSTD_WINDOW_LOG_MAX,
        }
    }

    /// Whether another member follows, judged by the next byte. Other data after a member is ignored, as in browsers.
    fn begins_another(self, byte: u8) -> bool {
        match self {
            Encoding::Gzip => byte == 0x1F,
            // A frame, or a skippable frame.
            Encoding::Zstd => matches!(byte, 0x28 | 0x50..=0x5F),
            Encoding::Deflate | Encoding::Brotli => false,
        }
    }
}

fn check_transfer_encoding(headers: &HeaderMap) -> Result<(), FetchOutcome> {
    match headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked) {
        true => Ok(()),
        false => Err(FetchOutcome::BadAnswer(AnswerFault::BadEncoding)),
    }
}

/// Whether hyper decodes this transfer encoding. We request no other.
fn is_chunked(value: &HeaderValue) -> bool {
    let known = |name: &str| ["chunked", "identity"].contains(&name.trim());
    value.to_str().is_ok_and(|names| names.to_ascii_lowercase().split(',').all(known))
}

/// "deflate" should be zlib, but some servers send raw deflate. The first byte decides, because the second may not have
/// arrived yet: zlib begins with method 8 and a window size of at most 7. As raw deflate, such a byte would be a stored
/// block with a padding bit set that encoders leave at zero.
fn begins_zlib(first_byte: u8) -> bool {
    first_byte & 0x8F == 0x08
}
