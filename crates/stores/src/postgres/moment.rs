//! The time of one transaction.

pub(super) use crate::shared::moment::ServerTime;
pub use crate::shared::moment::StoreClock;

/// The server's clock in microseconds, unless a time is given. `now()` would be the start of the transaction.
macro_rules! now_or {
    ($given:literal) => {
        concat!("coalesce(", $given, ", (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT)")
    };
}
pub(super) use now_or;
