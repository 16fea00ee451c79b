//! Access to the dashboard: login, sessions, roles, and protection against forged requests.

mod attempts;
mod authenticator;
mod cookies;
mod form;
pub(super) mod login;
mod order;
mod same_origin;
mod sessions;
mod visitor;

pub(super) use attempts::Attempts;
pub use authenticator::Authenticator;
pub(super) use form::Form;
pub(super) use order::Order;
pub(super) use sessions::Sessions;
pub(super) use visitor::{IsLive, Visitor};
