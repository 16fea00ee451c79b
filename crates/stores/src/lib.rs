//! The adapters that implement the store ports. Those for servers are Cargo features, which the binary forwards.

#![warn(missing_docs)]

pub mod finding;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "postgres")]
pub mod migrate;
pub mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(feature = "redis")]
pub mod redis;
mod shared;
pub mod sqlite;

#[cfg(any(feature = "postgres", feature = "redis"))]
pub use shared::moment::StoreClock;
