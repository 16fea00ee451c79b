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
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use super::HttpLimits;
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
}

/// Reads a body whole.
pub(super) async fn read_body(
    body: Incoming,
    headers: &HeaderMap,
    limits: &HttpLimits,
    patience: Patience,
    budget: &Budget,
) -> Result<(Bytes, Share), Happened> {
    let encoding = Encoding::of(headers)?;
    let wire_bytes = Arc::new(AtomicUsize::new(0));
    let wire = wire(body, patience, limits.max_body_bytes, wire_bytes.clone());
    let mut wire = StreamReader::new(Box::pin(wire));
    let begins = wire.fill_buf().await.map_err(|error| happened(&error))?;
    let Some(&first_byte) = begins.first() else { return Ok((Bytes::new(), Share::none())) };
    let mut reader = encoding.decoder(&mut wire, first_byte);
    let (mut decoded, mut share) = (Vec::new(), Share::none());
    loop {
        if decoded.len() == decoded.capacity() {
            let room = (2 * decoded.len()).min(limits.max_body_bytes).max(STEP_BYTES);
            // A body of just the limit needs a byte more, to see that it ends there.
            let room = room.saturating_add(1);
            make_room(&mut decoded, room, &mut share, budget, patience).await?;
        }
        let mut step = (&mut decoded).limit(STEP_BYTES);
        if reader.read_buf(&mut step).await.map_err(|error| happened(&error))? == 0 {
            break;
        }
        if decoded.len() > limits.max_body_bytes {
            return Err(Happened::BadAnswer(AnswerFault::TooLarge));
        }
        let on_wire = wire_bytes.load(Ordering::Relaxed);
        let ratio_cap = on_wire.saturating_mul(limits.max_ratio).max(RATIO_FREE_BYTES);
        if encoding != Encoding::Identity && decoded.len() > ratio_cap {
            return Err(Happened::BadAnswer(AnswerFault::Bomb));
        }
        // A body that is here already is decoded without a wait; others must get their turn.
        tokio::task::coop::consume_budget().await;
    }
    drop(reader);
    skip_rest(&mut wire).await.map_err(|error| happened(&error))?;
    Ok((Bytes::from(decoded), share))
}

/// The share covers all the room that a body takes, filled or not.
async fn make_room(
    decoded: &mut Vec<u8>,
    room: usize,
    share: &mut Share,
    budget: &Budget,
    patience: Patience,
) -> Result<(), Happened> {
    let granted = tokio::time::timeout_at(patience.deadline(), budget.grow(share, room)).await;
    granted.map_err(|_| {
        Happened::OurFault("all bodies together took up http.body_budget for too long".to_owned())
    })?;
    decoded.reserve_exact(room - decoded.len());
    Ok(())
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

/// The pieces of a body as they come, with a bound on each wait and on their sum.
fn wire(
    body: Incoming,
    patience: Patience,
    most: usize,
    count: Arc<AtomicUsize>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    futures::stream::unfold(Some(body), move |body| {
        let count = count.clone();
        async move {
            let mut body = body?;
            let fault = loop {
                let frame = match patience.with_server(body.frame()).await {
                    Err(phase) => break WireFault::TimedOut(phase),
                    Ok(None) => return None,
                    Ok(Some(Err(_))) => break WireFault::Broken,
                    Ok(Some(Ok(frame))) => frame,
                };
                let Ok(piece) = frame.into_data() else { continue }; // Trailers say nothing to us.
                if piece.is_empty() {
                    continue;
                }
                let sum = count.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
                if sum > most {
                    break WireFault::TooLarge;
                }
                return Some((Ok(piece), Some(body)));
            };
            Some((Err(io::Error::other(fault)), None))
        }
    })
}

fn happened(error: &io::Error) -> Happened {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<WireFault>());
    match fault {
        Some(WireFault::TooLarge) => Happened::BadAnswer(AnswerFault::TooLarge),
        Some(WireFault::TimedOut(phase)) => Happened::TimedOut(*phase),
        Some(WireFault::Broken) => Happened::Network(NetworkFault::Reset),
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
            Encoding::Gzip => {
                let mut gzip = GzipDecoder::new(wire);
                gzip.multiple_members(true);
                Box::pin(gzip)
            }
            Encoding::Deflate if begins_zlib(first_byte) => Box::pin(ZlibDecoder::new(wire)),
            Encoding::Deflate => Box::pin(DeflateDecoder::new(wire)),
            Encoding::Brotli => Box::pin(BrotliDecoder::new(wire)),
            Encoding::Zstd => {
                let window = DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX);
                let mut zstd = ZstdDecoder::with_params(wire, &[window]);
                zstd.multiple_members(true);
                Box::pin(zstd)
            }
        }
    }
}

/// "deflate" should be zlib, but some servers send it raw. The first byte tells, and the second may
/// not be here yet: zlib begins with its method, 8, and a window of at most 7; raw it would be a
/// stored block with a bit set where encoders leave zeros.
fn begins_zlib(first_byte: u8) -> bool {
    first_byte & 0x8F == 0x08
}
