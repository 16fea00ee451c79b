//! What the API, the dashboard and commands show alike.

pub(crate) mod letters;
pub(crate) mod messages;
pub(crate) mod oversight;
pub(crate) mod schemas;
pub(crate) mod standing;
