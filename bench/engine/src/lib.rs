//! Measures the engine: what it costs in memory and time at scale, and in processor time a page; and what
//! the inbox of `fetchwell serve` takes in and gives out.
//!
//! Three programs: `scale`, `speed` and `inbox`. All print Markdown tables. What is measured by its memory
//! or its processor time runs in a process of its own, so that it sees those of no other.

pub mod bare;
pub mod choosing;
pub mod flow;
pub mod idle;
pub mod inbox;
pub mod meter;
pub mod origin;
pub mod queue;
pub mod window;
