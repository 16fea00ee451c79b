//! Reads the chunks of a body as they arrive, with limits on each wait, on the rate and on the total size.

use bytes::Bytes;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, NetworkFault};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};

use super::HttpLimits;
use super::breach::is_breach_of_http;
use super::patience::{Patience, RatedPatience};

/// A body on the wire.
pub(super) struct Wire {
    body: Incoming,
    patience: RatedPatience,
    most_bytes: usize,
    bytes: usize,
}

impl Wire {
    pub(super) fn new(body: Incoming, patience: Patience, limits: &HttpLimits) -> Wire {
        let patience = patience.with_rate(limits.least_bytes_per_second);
        Wire { body, patience, most_bytes: limits.max_body_bytes, bytes: 0 }
    }

    /// The next chunk, which is never empty; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, FetchOutcome> {
        loop {
            let frame = match self.patience.with_server(self.body.frame(), data_bytes).await {
                Err(phase) => return Err(FetchOutcome::TimedOut(phase)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) if is_breach_of_http(&error) => {
                    return Err(FetchOutcome::BadAnswer(AnswerFault::NotHttp));
                }
                Ok(Some(Err(_))) => return Err(FetchOutcome::Network(NetworkFault::Reset)),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(piece) = frame.into_data() else { continue }; // Ignore trailers.
            if piece.is_empty() {
                continue;
            }
            // A part of the chunk that exceeds the limit may be wanted, so fail only at the next one.
            if self.bytes > self.most_bytes {
                return Err(FetchOutcome::BadAnswer(AnswerFault::TooLarge));
            }
            self.bytes += piece.len();
            return Ok(Some(piece));
        }
    }

    /// The number of bytes received so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn data_bytes(frame: &Option<hyper::Result<Frame<Bytes>>>) -> usize {
    let frame = frame.as_ref().and_then(|frame| frame.as_ref().ok());
    frame.and_then(Frame::data_ref).map_or(0, Bytes::len)
}
