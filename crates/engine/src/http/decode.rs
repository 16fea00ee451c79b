//! Reads a body: off the wire, through its content encoding, into memory; capped at each step.

#![expect(clippy::disallowed_types, reason = "the one place that decodes, and here it is capped")]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use fetchwell_policy::outcome::{AnswerFault, Happened, NetworkFault, Phase};
use futures::Stream;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio_util::io::StreamReader;

use super::HttpLimits;
use super::budget::{Budget, Share};

/// A body may inflate to this size whatever the ratio.
const RATIO_FREE_BYTES: usize = 1 << 20;
/// The largest window that a zstd body may ask for: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// How far a body may grow between two looks at the caps.
const STEP_BYTES: usize = 16 << 10;

/// Why a body could not be read; travels through the decoders inside an `io::Error`.
#[derive(Clone, Copy, Debug, Error)]
enum WireFault {
    #[error("over the limit")]
    TooLarge,
    #[error("silent for too long")]
    Silent,
    #[error("the connection broke")]
    Broken,
}

/// Reads a body whole.
pub(super) async fn read_body(
    body: Incoming,
    headers: &HeaderMap,
    limits: &HttpLimits,
    budget: &Budget,
) -> Result<(Bytes, Share), Happened> {
    let encoding = Encoding::of(headers)?;
    let wire_bytes = Arc::new(AtomicUsize::new(0));
    let wire = wire(body, limits.idle_read_timeout, limits.max_body_bytes, wire_bytes.clone());
    let mut wire = BufReader::new(StreamReader::new(Box::pin(wire)));
    let begins = wire.fill_buf().await.map_err(|error| happened(&error))?;
    if begins.is_empty() {
        return Ok((Bytes::new(), Share::none()));
    }
    let mut reader: Pin<Box<dyn AsyncRead + Send>> = match encoding {
        Encoding::Identity => Box::pin(wire),
        Encoding::Gzip => {
            let mut gzip = GzipDecoder::new(wire);
            gzip.multiple_members(true);
            Box::pin(gzip)
        }
        Encoding::Deflate if is_zlib(begins) => Box::pin(ZlibDecoder::new(wire)),
        Encoding::Deflate => Box::pin(DeflateDecoder::new(wire)),
        Encoding::Brotli => Box::pin(BrotliDecoder::new(wire)),
        Encoding::Zstd => {
            let window = DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX);
            Box::pin(ZstdDecoder::with_params(wire, &[window]))
        }
    };
    let (mut decoded, mut share) = (BytesMut::new(), Share::none());
    loop {
        budget.grow(&mut share, decoded.len() + STEP_BYTES).await;
        decoded.reserve(STEP_BYTES);
        let read = reader.read_buf(&mut decoded).await.map_err(|error| happened(&error))?;
        if read == 0 {
            return Ok((decoded.freeze(), share));
        }
        if decoded.len() > limits.max_body_bytes {
            return Err(Happened::BadAnswer(AnswerFault::TooLarge));
        }
        let on_wire = wire_bytes.load(Ordering::Relaxed);
        let ratio_cap = on_wire.saturating_mul(limits.max_ratio).max(RATIO_FREE_BYTES);
        if encoding != Encoding::Identity && decoded.len() > ratio_cap {
            return Err(Happened::BadAnswer(AnswerFault::Bomb));
        }
    }
}

/// The pieces of a body as they come, with a bound on silence and on their sum.
fn wire(
    body: Incoming,
    idle: Duration,
    most: usize,
    count: Arc<AtomicUsize>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    futures::stream::unfold(Some(body), move |body| {
        let count = count.clone();
        async move {
            let mut body = body?;
            loop {
                let frame = match tokio::time::timeout(idle, body.frame()).await {
                    Err(_) => return Some((Err(io::Error::other(WireFault::Silent)), None)),
                    Ok(None) => return None,
                    Ok(Some(Err(_))) => {
                        return Some((Err(io::Error::other(WireFault::Broken)), None));
                    }
                    Ok(Some(Ok(frame))) => frame,
                };
                let Ok(piece) = frame.into_data() else { continue }; // Trailers say nothing to us.
                if piece.is_empty() {
                    continue;
                }
                let sum = count.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
                if sum > most {
                    return Some((Err(io::Error::other(WireFault::TooLarge)), None));
                }
                return Some((Ok(piece), Some(body)));
            }
        }
    })
}

fn happened(error: &io::Error) -> Happened {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<WireFault>());
    match fault {
        Some(WireFault::TooLarge) => Happened::BadAnswer(AnswerFault::TooLarge),
        Some(WireFault::Silent) => Happened::TimedOut(Phase::Read),
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
}

/// "deflate" should be zlib, but some servers send it raw.
fn is_zlib(begins: &[u8]) -> bool {
    match begins {
        [first, second, ..] => {
            first & 0x0F == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
        }
        _ => true,
    }
}
