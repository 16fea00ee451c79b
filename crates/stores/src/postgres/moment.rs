//! What time it is, for all of one transaction.

pub(super) use crate::shared::moment::Moment;
pub use crate::shared::moment::StoreClock;

/// The server's clock in microseconds, unless it is given. `now()` would be when the transaction began.
macro_rules! now_or {
    ($given:literal) => {
        concat!("coalesce(", $given, ", (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT)")
    };
}
pub(super) use now_or;
