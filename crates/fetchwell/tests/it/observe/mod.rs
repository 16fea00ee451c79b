//! What an operator sees: traces, logs, measures, and what `doctor` and `health` say. With the built program.

mod collector;
mod doctor;
mod health;
mod logs;
mod metrics;
mod traces;

pub(crate) use metrics::door;

use fetchwell_testkit::crash::Program;

/// The program in a folder of its own.
fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}
