//! A simulated fleet: the real pipeline, gate, workbench and doors on many machines, in one thread and on one simulated
//! clock.
//!
//! Everything that happens in a [`run()`] follows from the seed of its [`Scenario`]: delays and losses in the network,
//! crashes, suspensions, the behaviour of sites, and the actions of callers and operators. So a run that fails can be
//! repeated step by step. `web`, `network`, `queue`, `politeness`, `sinks` and `inbox` are the world around the
//! pipelines; `machine` and `doors` run them, `workload` and `clients` give them work and trouble, and `checks` watches
//! from outside.

mod checks;
mod clients;
mod command_line;
mod dice;
mod doors;
mod html;
mod inbox;
mod machine;
mod measure;
mod network;
mod politeness;
mod queue;
mod run;
mod scenario;
mod shrink;
mod sim;
mod sinks;
mod site_states;
mod trace;
mod web;
mod workload;

pub use command_line::ScenarioOverrides;
pub use html::page;
pub use measure::{Load, Measured, measure};
pub use run::{Report, run};
pub use scenario::{Feature, Plant, Scenario};
pub use shrink::shrink;
pub use sim::Failure;
pub use trace::{Entry, Tracing};
