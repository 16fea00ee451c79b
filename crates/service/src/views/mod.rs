//! The JSON objects that the API, the dashboard and commands share.

pub mod batches;
pub mod crawls;
pub mod deliveries;
pub mod letters;
pub mod messages;
pub mod oversight;
pub(crate) mod schemas;
pub mod sent;
pub mod standing;
