//! The audit: who did what, and who tried to come in.

mod auth_failures;
mod trail;

pub(crate) use auth_failures::AuthFailures;
pub(crate) use trail::{Scribe, Trail};
