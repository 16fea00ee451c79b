//! What the API, the dashboard and commands show alike.

pub mod letters;
pub mod messages;
pub mod oversight;
pub(crate) mod schemas;
pub mod standing;
