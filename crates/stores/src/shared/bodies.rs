//! Bodies of responses. They have a table of their own, so that results are read without them. The column `body_of` of a
//! result says whose body it has: its own, or that of the message whose result it copies.

use fetchwell_engine::ports::inbox::{KeptBody, ResultBody};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;

/// The value of `body_of` for a result whose `content` is the body. No job has this id.
pub(crate) const IS_CONTENT: LeaseId = 0;

/// The number of bodies that are looked at together to make room for others.
pub(crate) const LOOKED_AT: i64 = 100;

/// No transaction deletes more than this, plus one body: deleting takes time, and the caller's results wait meanwhile.
pub(crate) const MAX_PRUNED_BYTES: i64 = 64 << 20;

/// A stored body: its job and its size.
pub(crate) type BodySize = (LeaseId, i64);

/// The value of `body_of` for a result of this job.
pub(crate) fn body_of(job: LeaseId, body: &ResultBody) -> Option<LeaseId> {
    match body {
        ResultBody::Content => Some(IS_CONTENT),
        ResultBody::New(_) => Some(job),
        // No result that is stored has these.
        ResultBody::Kept(_) | ResultBody::Deleted | ResultBody::Absent => None,
    }
}

/// What a result has of its body. `kept` is when the stored body expires, and its size.
pub(crate) fn result_body(body_of: Option<LeaseId>, kept: Option<(i64, i64)>) -> ResultBody {
    match (body_of, kept) {
        (None, _) => ResultBody::Absent,
        (Some(IS_CONTENT), _) => ResultBody::Content,
        (Some(_), None) => ResultBody::Deleted,
        (Some(_), Some((expires_at, bytes))) => ResultBody::Kept(KeptBody {
            bytes: u64::try_from(bytes).unwrap_or(0),
            expires_at: Time::from_micros(expires_at),
        }),
    }
}

/// The first of these bodies, until their total size is at least this many bytes.
pub(crate) fn first_of(bodies: &[BodySize], bytes: i64) -> &[BodySize] {
    let mut sum = 0;
    let is_needed = |(_, size): &&BodySize| {
        let is_needed = sum < bytes;
        sum += size;
        is_needed
    };
    let count = bodies.iter().take_while(is_needed).count();
    bodies.get(..count).unwrap_or(bodies)
}

/// Their size.
pub(crate) fn sum(bodies: &[BodySize]) -> i64 {
    bodies.iter().map(|(_, bytes)| bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bodies_go_than_are_needed() {
        let bodies = [(1, 10), (2, 10), (3, 10)];
        for (bytes, expected) in [(-5, 0), (0, 0), (1, 1), (10, 1), (11, 2), (30, 3), (99, 3)] {
            assert_eq!(first_of(&bodies, bytes).len(), expected, "{bytes}");
        }
    }
}
