//! The bodies of responses, as they were received.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_policy::time::Time;

/// How the body of a response is kept with its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResultBody {
    /// Nothing: there was no body, or it was not kept.
    #[default]
    Absent,
    /// The body is `content`, byte for byte.
    Content,
    /// A body to be stored beside the result. A result that comes from a store never has it.
    New(NewBody),
    /// The body is stored beside the result.
    Kept(KeptBody),
    /// The body was stored beside the result, and has been deleted since.
    Deleted,
}

/// A body to be stored in the transaction that stores its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBody {
    /// The body.
    pub bytes: Bytes,
    /// How long to keep it.
    pub keep: Duration,
    /// The maximum size of all bodies of the caller. The oldest ones are deleted to make room.
    pub quota_bytes: u64,
}

/// A body that is stored beside a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptBody {
    /// Its size.
    pub bytes: u64,
    /// When it is deleted at the latest, by the wall clock.
    pub expires_at: Time,
}

/// The body of a message in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageBody {
    /// The message has no result yet.
    NoResult,
    /// There was no body, or it was not kept.
    Absent,
    /// The body was kept, and has been deleted since.
    Deleted,
    /// The body is stored.
    Found {
        /// The `Content-Type` of the response.
        content_type: Option<String>,
        /// The body.
        bytes: Vec<u8>,
    },
}
