//! Tools for tests: waiting, a scene with the program under test, a simulated web behind the engine's port, conformance
//! suites, a crash harness, a hostile server, a closed port, a TCP fault proxy, TLS in front of a plain server, and a
//! private network with a DNS server and canaries. It is never shipped.

use std::time::Duration;

pub mod alone;
pub mod canary;
pub mod client;
pub mod closed_port;
pub mod conformance;
pub mod crash;
pub mod dns;
pub mod documented;
pub mod eventually;
pub mod fault_proxy;
pub mod held;
pub mod hostile;
pub mod memory;
pub mod namespace;
pub mod node;
pub mod plain_http;
pub mod python;
pub mod range_server;
pub mod replay;
pub mod rig;
pub mod samples;
pub mod scene;
pub mod simulated_web;
pub mod skip;
pub mod tls_front;
mod watched_politeness;

/// Anything that takes longer is considered hung. It says nothing about speed: a disk that is still writing the output
/// of a build takes seconds per commit.
pub const DEADLINE: Duration = Duration::from_secs(300);
