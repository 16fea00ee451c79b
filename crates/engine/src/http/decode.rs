//! Reads a body: off the wire, through its content encoding, into memory; capped at each step.

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
use fetchwell_policy::outcome::{AnswerFault, Happened, NetworkFault, Phase};
use futures::Stream;
use http::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use super::HttpLimits;
use super::breach::is_breach_of_http;
use super::budget::{Budget, Share};
use super::patience::Patience;

/// A body may inflate to this size whatever the ratio.
const RATIO_FREE_BYTES: usize = 1 << 20;
/// The largest window that a zstd body may ask for: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// How far a body may grow between two looks at the caps, and the room it begins with.
const STEP_BYTES: usize = 16 << 10;

/// Why a body could not be read; travels through the decoders inside an `io::Error`.
#[derive(Clone, Copy, Debug, Error)]
enum WireFault {
    #[error("over the limit")]
    TooLarge,
    #[error("too slow")]
    TimedOut(Phase),
    #[error("the connection broke")]
    Broken,
    #[error("not HTTP")]
    NotHttp,
}

/// Reads a body whole, or as far as is enough.
pub(super) async fn read_body(
    body: Incoming,
    headers: &HeaderMap,
    limits: &HttpLimits,
    enough: usize,
    patience: Patience,
    budget: &Budget,
) -> Result<(Bytes, Share), Happened> {
    let encoding = Encoding::of(headers)?;
    let wire_bytes = Arc::new(AtomicUsize::new(0));
    let wire = wire(body, patience, limits, wire_bytes.clone());
    let mut wire = StreamReader::new(Box::pin(wire));
    let (decoded, share) = (Vec::new(), Share::none());
    let mut text = Text { encoding, limits, enough, patience, budget, wire_bytes, decoded, share };
    let mut has_member = false;
    loop {
        let begins = wire.fill_buf().await.map_err(|error| happened(&error))?.first().copied();
        match begins {
            Some(first_byte) if !has_member || encoding.begins_another(first_byte) => {
                text.grow_by(encoding.decoder(&mut wire, first_byte)).await?;
                has_member = true;
            }
            _ => break,
        }
        if text.is_enough() {
            text.decoded.truncate(enough);
            return Ok((Bytes::from(text.decoded), text.share));
        }
        tokio::task::coop::consume_budget().await;
    }
    skip_rest(&mut wire).await.map_err(|error| happened(&error))?;
    Ok((Bytes::from(text.decoded), text.share))
}

/// A body on its way into memory, with its encoding undone.
struct Text<'a> {
    encoding: Encoding,
    limits: &'a HttpLimits,
    enough: usize,
    patience: Patience,
    budget: &'a Budget,
    wire_bytes: Arc<AtomicUsize>,
    decoded: Vec<u8>,
    share: Share,
}

impl Text<'_> {
    /// Takes all that a reader has, or enough of it.
    async fn grow_by(
        &mut self,
        mut reader: Pin<Box<dyn AsyncRead + Send + '_>>,
    ) -> Result<(), Happened> {
        loop {
            if self.decoded.len() == self.decoded.capacity() {
                self.make_room().await?;
            }
            let mut step = (&mut self.decoded).limit(STEP_BYTES);
            let count = reader.read_buf(&mut step).await.map_err(|error| happened(&error))?;
            if count == 0 || self.is_enough() {
                return Ok(());
            }
            self.check_size()?;
            // A body that is here already is decoded without a wait; others must get their turn.
            tokio::task::coop::consume_budget().await;
        }
    }

    fn is_enough(&self) -> bool {
        self.decoded.len() >= self.enough
    }

    fn check_size(&self) -> Result<(), Happened> {
        if self.decoded.len() > self.limits.max_body_bytes {
            return Err(Happened::BadAnswer(AnswerFault::TooLarge));
        }
        let on_wire = self.wire_bytes.load(Ordering::Relaxed);
        let ratio_cap = on_wire.saturating_mul(self.limits.max_ratio).max(RATIO_FREE_BYTES);
        if self.encoding != Encoding::Identity && self.decoded.len() > ratio_cap {
            return Err(Happened::BadAnswer(AnswerFault::Bomb));
        }
        Ok(())
    }

    /// The share covers all the room that a body takes, filled or not.
    async fn make_room(&mut self) -> Result<(), Happened> {
        let twice = 2 * self.decoded.len();
        let room = twice.min(self.limits.max_body_bytes).max(STEP_BYTES);
        // A body of just the limit needs a byte more, to see that it ends there.
        let room = room.saturating_add(1);
        let growing = self.budget.grow(&mut self.share, room);
        tokio::time::timeout_at(self.patience.deadline(), growing).await.map_err(|_| {
            Happened::OurFault(
                "all bodies together took up http.body_budget for too long".to_owned(),
            )
        })?;
        self.decoded.reserve_exact(room - self.decoded.len());
        Ok(())
    }
}

/// A decoder may know its end before the wire does; only a body that was read to its end leaves a
/// connection that can be used again. What follows an encoded body says nothing to us.
async fn skip_rest(wire: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let rest = wire.fill_buf().await?.len();
        if rest == 0 {
            return Ok(());
        }
        wire.consume(rest);
    }
}

/// The pieces of a body as they come, with a bound on each wait, on their rate and on their sum.
fn wire(
    body: Incoming,
    patience: Patience,
    limits: &HttpLimits,
    count: Arc<AtomicUsize>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let (most, rate) = (limits.max_body_bytes, limits.least_bytes_per_second);
    let state = Some((body, patience.with_rate(rate)));
    futures::stream::unfold(state, move |state| {
        let count = count.clone();
        async move {
            let (mut body, mut patience) = state?;
            let fault = loop {
                let frame = match patience.with_server(body.frame(), data_bytes).await {
                    Err(phase) => break WireFault::TimedOut(phase),
                    Ok(None) => return None,
                    Ok(Some(Err(error))) if is_breach_of_http(&error) => break WireFault::NotHttp,
                    Ok(Some(Err(_))) => break WireFault::Broken,
                    Ok(Some(Ok(frame))) => frame,
                };
                let Ok(piece) = frame.into_data() else { continue }; // Trailers say nothing to us.
                if piece.is_empty() {
                    continue;
                }
                // The piece that goes over may be wanted in part.
                if count.fetch_add(piece.len(), Ordering::Relaxed) > most {
                    break WireFault::TooLarge;
                }
                return Some((Ok(piece), Some((body, patience))));
            };
            Some((Err(io::Error::other(fault)), None))
        }
    })
}

fn data_bytes(frame: &Option<hyper::Result<Frame<Bytes>>>) -> usize {
    let frame = frame.as_ref().and_then(|frame| frame.as_ref().ok());
    frame.and_then(Frame::data_ref).map_or(0, Bytes::len)
}

fn happened(error: &io::Error) -> Happened {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<WireFault>());
    match fault {
        Some(WireFault::TooLarge) => Happened::BadAnswer(AnswerFault::TooLarge),
        Some(WireFault::TimedOut(phase)) => Happened::TimedOut(*phase),
        Some(WireFault::Broken) => Happened::Network(NetworkFault::Reset),
        Some(WireFault::NotHttp) => Happened::BadAnswer(AnswerFault::NotHttp),
        None => Happened::BadAnswer(AnswerFault::BadEncoding),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// One layer, of a kind that we asked for.
    fn of(headers: &HeaderMap) -> Result<Encoding, Happened> {
        if !headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked) {
            return Err(Happened::BadAnswer(AnswerFault::BadEncoding));
        }
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return match headers.contains_key(CONTENT_ENCODING) {
                true => Err(Happened::BadAnswer(AnswerFault::BadEncoding)),
                false => Ok(Encoding::Identity),
            };
        };
        match value.to_str().unwrap_or("?").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Encoding::Identity),
            "gzip" | "x-gzip" => Ok(Encoding::Gzip),
            "deflate" => Ok(Encoding::Deflate),
            "br" => Ok(Encoding::Brotli),
            "zstd" => Ok(Encoding::Zstd),
            _ => Err(Happened::BadAnswer(AnswerFault::BadEncoding)),
        }
    }

    fn decoder<'a>(
        self,
        wire: &'a mut (impl AsyncBufRead + Send + Unpin),
        first_byte: u8,
    ) -> Pin<Box<dyn AsyncRead + Send + 'a>> {
        match self {
            Encoding::Identity => Box::pin(wire),
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

    /// Whether a body goes on after its first member ended, by the byte that comes next. Browsers let
    /// garbage follow, so it is no reason to lose the page.
    fn begins_another(self, byte: u8) -> bool {
        match self {
            Encoding::Gzip => byte == 0x1F,
            // A frame, or one that is to be skipped.
            Encoding::Zstd => matches!(byte, 0x28 | 0x50..=0x5F),
            Encoding::Identity | Encoding::Deflate | Encoding::Brotli => false,
        }
    }
}

/// Whether a transfer encoding is one that hyper undoes. We ask for no other.
fn is_chunked(value: &HeaderValue) -> bool {
    let known = |name: &str| ["chunked", "identity"].contains(&name.trim());
    value.to_str().is_ok_and(|names| names.to_ascii_lowercase().split(',').all(known))
}

/// "deflate" should be zlib, but some servers send it raw. The first byte tells, and the second may
/// not be here yet: zlib begins with its method, 8, and a window of at most 7; raw it would be a
/// stored block with a bit set where encoders leave zeros.
fn begins_zlib(first_byte: u8) -> bool {
    first_byte & 0x8F == 0x08
}
