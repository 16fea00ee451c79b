//! `fetchwell messages`, `fetchwell outbox tail` and `fetchwell ledger`, for operators. They use the store directly,
//! whether or not a server is running.

pub(crate) mod args;
mod ledger;
mod print;
mod run;
mod tail;
mod which;

pub(crate) use ledger::run as ledger;
pub(crate) use run::run;
pub(crate) use tail::run as tail;
