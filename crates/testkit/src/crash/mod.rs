//! A crash harness: real processes that are stopped and killed, a real origin that records every request, and a ledger
//! outside of the program.
//!
//! Errors of the harness itself panic, because a test cannot handle them.

mod control;
mod dispatch_log;
mod false_clock;
mod ledger;
mod origin;
mod own_server;
mod process;
mod program;
mod service;

pub use control::ControlSender;
pub use dispatch_log::DispatchLog;
pub use false_clock::FalseClock;
pub use ledger::{Imbalance, OutsideLedger};
pub use origin::TestWeb;
pub use own_server::OwnServer;
pub use process::{Process, ProcessEnd};
pub use program::Program;
pub use service::Service;
