//! Ids of traces and spans. They are derived from the lease, so that all attempts at it, in any process, are one trace.

use fetchwell_engine::pipeline::LeaseTag;
use fetchwell_policy::digest::hex;
use sha2::{Digest, Sha256};

use crate::metrics::DoorName;

/// The id of a trace or of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id<const BYTES: usize>([u8; BYTES]);

pub(super) type TraceId = Id<16>;

/// The id of a span within its trace.
pub(super) type SpanId = Id<8>;

impl<const BYTES: usize> Id<BYTES> {
    /// A new trace, or a span that no other span refers to.
    pub(super) fn random() -> Id<BYTES> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).ok();
        // 0 is an invalid id.
        if bytes == [0; BYTES] {
            bytes[0] = 1;
        }
        Id(bytes)
    }

    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }

    fn beginning_of(hash: Sha256) -> Id<BYTES> {
        let digest = hash.finalize();
        Id(std::array::from_fn(|at| digest.get(at).copied().unwrap_or_default()))
    }
}

impl TraceId {
    /// The trace of all attempts at a lease.
    pub(super) fn of_lease(door: DoorName, lease: LeaseTag) -> TraceId {
        Id::beginning_of(
            Sha256::new()
                .chain_update(door.word())
                .chain_update(lease.id.to_be_bytes())
                .chain_update(lease.accepted_at.as_micros().to_be_bytes()),
        )
    }
}

impl SpanId {
    /// The span of one attempt at a lease.
    pub(super) fn of_attempt(trace: TraceId, lease: LeaseTag) -> SpanId {
        let hash = Sha256::new().chain_update(trace.0).chain_update(lease.attempt.to_be_bytes());
        Id::beginning_of(hash)
    }
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
        assert_eq!(Id([0, 1, 2, 3, 4, 5, 0xab, 0xff]).to_hex(), "000102030405abff");
    }
}
