//! Stores in memory, for runs that leave nothing behind and for tests. They behave like the durable ones.

mod politeness;
mod queue;
#[cfg(test)]
mod tests;

pub use politeness::MemoryPoliteness;
pub use queue::{MemoryInstance, MemoryQueue};
