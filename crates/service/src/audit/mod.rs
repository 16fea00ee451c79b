//! The audit: who did what, and who tried to come in.

mod auth_failures;
mod trail;

pub use auth_failures::AuthFailures;
pub(crate) use trail::Scribe;
pub use trail::{Trail, note};
