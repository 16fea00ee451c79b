//! The queue on Redis, as producers, operators and those who crash see it. What every queue promises is in
//! the conformance suite.

mod cost;
mod crashes;
mod dead_letters;
mod faults;
mod keys;
mod list;
mod random;
mod rig;
mod size;
mod unparking;
