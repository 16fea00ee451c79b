//! Code that the stores share.

pub(crate) mod batch_count;
pub(crate) mod bodies;
pub(crate) mod conclusion;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod held;
pub(crate) mod intervening;
pub(crate) mod job_state;
pub(crate) mod looking;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod moment;
pub(crate) mod submit_audit;
#[cfg(feature = "postgres")]
pub(crate) mod transfer;
pub(crate) mod who;
