//! What operators type: `fetchwell messages`, `fetchwell outbox tail` and `fetchwell ledger`. They work on the
//! store itself, whether a server runs on it or not.

pub(crate) mod args;
mod ledger;
mod print;
mod run;
mod tail;
mod which;

pub(crate) use ledger::run as ledger;
pub(crate) use run::run;
pub(crate) use tail::run as tail;
