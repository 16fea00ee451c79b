//! What operators type: `fetchwell messages`, `fetchwell outbox tail` and `fetchwell ledger`. They work on the
//! store itself, whether a server runs on it or not.

mod ledger;
mod messages;
mod print;
#[cfg(feature = "redis")]
mod redis_ledger;
mod tail;
mod which;

pub(crate) use ledger::run as ledger;
pub(crate) use messages::run as messages;
pub(crate) use tail::run as tail;
