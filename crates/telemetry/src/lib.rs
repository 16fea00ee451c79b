//! What a process tells of its work: metrics, as Prometheus reads them, and traces.

pub mod metrics;
pub mod registry;
pub mod traces;
