//! Measures the engine: what it costs in memory and time at scale, and in processor time a page.
//!
//! Two programs: `scale` and `speed`. Both print Markdown tables. Each measurement runs in a process of
//! its own, so that none sees the memory or the processor time of another.

pub mod bare;
pub mod choosing;
pub mod flow;
pub mod idle;
pub mod meter;
pub mod origin;
pub mod queue;
pub mod window;
