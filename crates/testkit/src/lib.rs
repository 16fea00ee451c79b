//! Tools for tests: a simulated web as the engine sees it, conformance suites, a crash harness, a
//! hostile server and a TCP fault proxy. Never ships.

pub mod conformance;
pub mod crash;
pub mod fault_proxy;
pub mod held;
pub mod hostile;
pub mod rig;
pub mod simulated_web;
