//! The stores behind the ports. Those on servers are Cargo features, which the binary forwards.

mod gathering;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod held;
mod intervening;
#[cfg(feature = "kafka")]
pub mod kafka;
mod looking;
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
mod who;

#[cfg(any(feature = "postgres", feature = "redis"))]
pub use moment::StoreClock;
