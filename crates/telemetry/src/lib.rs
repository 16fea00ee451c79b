//! Metrics in the Prometheus format, and traces.

pub mod metrics;
pub mod registry;
pub mod traces;
