//! Ids of traces and spans. They are derived from the lease, so that all attempts at it, in any process, are one trace.

use std::fmt::Write;

use fetchwell_engine::pipeline::LeaseTag;
use sha2::{Digest, Sha256};

use crate::metrics::DoorName;

/// The id of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceId([u8; 16]);

/// The id of a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanId([u8; 8]);

impl TraceId {
    /// The trace of all attempts at a lease.
    pub(super) fn of_lease(door: DoorName, lease: LeaseTag) -> TraceId {
        let hash = Sha256::new()
            .chain_update(door.word())
            .chain_update(lease.id.to_be_bytes())
            .chain_update(lease.accepted_at.as_micros().to_be_bytes());
        TraceId(beginning(hash))
    }

    /// A new trace.
    pub(super) fn random() -> TraceId {
        let high = random().to_be_bytes();
        let low = random().to_be_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        TraceId(bytes)
    }

    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl SpanId {
    /// The span of one attempt at a lease.
    pub(super) fn of_attempt(trace: TraceId, lease: LeaseTag) -> SpanId {
        let hash = Sha256::new().chain_update(trace.0).chain_update(lease.attempt.to_be_bytes());
        SpanId(beginning(hash))
    }

    /// A span that no other span refers to.
    pub(super) fn random() -> SpanId {
        SpanId(random().to_be_bytes())
    }

    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }
}

fn beginning<const N: usize>(hash: Sha256) -> [u8; N] {
    let digest = hash.finalize();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or_default())
}

/// Never 0, which is an invalid id.
fn random() -> u64 {
    getrandom::u64().unwrap_or(1).max(1)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::time::Time;

    use super::*;

    #[test]
    fn attempts_at_one_lease_are_one_trace_and_several_spans() {
        let tag = |id, attempt| LeaseTag { id, accepted_at: Time::EPOCH, attempt };
        let trace = |tag| TraceId::of_lease(DoorName::Pages, tag);
        assert_eq!(trace(tag(7, 0)), trace(tag(7, 3)));
        assert_ne!(trace(tag(7, 0)), trace(tag(8, 0)));
        assert_ne!(trace(tag(7, 0)), TraceId::of_lease(DoorName::Serve, tag(7, 0)));
        let span = |tag| SpanId::of_attempt(trace(tag), tag);
        assert_eq!(span(tag(7, 1)), span(tag(7, 1)));
        assert_ne!(span(tag(7, 0)), span(tag(7, 1)));
        assert_eq!(trace(tag(7, 0)).to_hex().len(), 32);
        assert_eq!(SpanId([0, 1, 2, 3, 4, 5, 0xab, 0xff]).to_hex(), "000102030405abff");
    }
}
