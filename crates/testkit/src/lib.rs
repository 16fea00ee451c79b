//! Tools for tests: a simulated web as the engine sees it, conformance suites, and a crash harness.
//! Never ships.

pub mod conformance;
pub mod crash;
pub mod rig;
pub mod simulated_web;
