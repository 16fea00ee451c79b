//! The audit log: actions and failed authentications. All entries are written through [`AuditLog`].

mod auth_failures;
mod cached_reads;
mod log;

pub use auth_failures::AuthFailures;
pub(crate) use cached_reads::CachedReads;
pub use log::AuditLog;
