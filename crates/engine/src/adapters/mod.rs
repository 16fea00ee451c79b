//! The stores behind the ports. Those on servers are Cargo features, which the binary forwards.

pub mod apart;
mod gathering;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod held;
mod intervening;
#[cfg(feature = "kafka")]
pub mod kafka;
mod looking;
pub mod memory;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod moment;
#[cfg(feature = "postgres")]
pub mod moving;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub mod shared;
pub mod sqlite;
mod submit_audit;
mod version;
mod who;

use fetchwell_policy::time::Time;

#[cfg(any(feature = "postgres", feature = "redis"))]
pub use moment::StoreClock;
pub use version::refuse_newer_store;

use crate::ports::{Event, Job, Published};

/// A job to be put into a queue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What to do.
    pub job: Job,
    /// Of two jobs with the same key only the first goes in, as long as that is there: until it is
    /// done or skipped.
    pub key: Option<[u8; 16]>,
    /// Not before this.
    pub due: Option<Time>,
}

impl NewJob {
    /// A job that may go at once, whatever else is queued.
    pub fn now(job: Job) -> NewJob {
        NewJob { job, key: None, due: None }
    }
}

/// An event with a larger value is refused. Kafka's default is as much, so that an event which the
/// embedded log takes is one that Kafka takes.
const MAX_EVENT_BYTES: usize = 1_000_000;

/// What becomes of an event by its size alone, in a log of our own.
fn judge_by_size(event: &Event) -> Published {
    match event.value.len() {
        0..=MAX_EVENT_BYTES => Published::Confirmed,
        bytes => Published::Refused {
            reason: format!("an event of {bytes} bytes, where {MAX_EVENT_BYTES} are the most"),
        },
    }
}
