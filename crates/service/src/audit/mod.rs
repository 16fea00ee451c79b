//! The audit: who did what, and who tried to come in. [`AuditLog`] is the one way to write it.

mod auth_failures;
mod log;

pub use auth_failures::AuthFailures;
pub use log::AuditLog;
