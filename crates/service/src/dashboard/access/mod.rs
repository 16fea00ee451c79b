//! Who comes in, what they may do, and how we know that it was they.

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
