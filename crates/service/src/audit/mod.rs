//! The audit log: actions and failed authentications. All entries are written through [`AuditLog`].

mod auth_failures;
mod log;

pub use auth_failures::AuthFailures;
pub use log::AuditLog;
