//! Politeness state on a server that many machines share.
//!
//! A server stores texts and has a clock. The next state of a site is computed here by pure rules from what was read.
//! It is written only if the site has not changed meanwhile; otherwise it is computed again. No lock is held in
//! between, so a process that stalls does not block any other.

mod clock_jump_guard;
mod shared;
mod site_state_store;
mod sites;
mod texts;

pub use shared::SharedPoliteness;
pub use site_state_store::{Change, SiteStateStore, SiteStates};
pub use texts::Texts;
