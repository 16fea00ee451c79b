//! Access to the dashboard: login, sessions, roles, and protection against forged requests.

mod attempts;
mod cookies;
mod doorkeeper;
mod form;
pub(super) mod login;
mod order;
mod same_origin;
mod sessions;
mod visitor;

pub(super) use attempts::Attempts;
pub use doorkeeper::Doorkeeper;
pub(super) use form::Form;
pub(super) use order::Order;
pub(super) use sessions::Sessions;
pub(super) use visitor::Visitor;
