//! Politeness on a server that many machines share.
//!
//! A server keeps texts and has a clock. What a site's state is to become is decided here, by the pure
//! rules, from what was read; it is written only if nobody else was faster, and decided anew if somebody
//! was. No lock is held between the two, so that a process that is stopped in between stops nobody else.

mod keeper;
mod shared;
mod sites;
mod texts;
mod vigilant;

pub use keeper::{Change, Keeper, Reading};
pub use shared::SharedPoliteness;
pub use texts::Texts;
pub use vigilant::Vigilant;
