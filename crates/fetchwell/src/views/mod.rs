//! What several who show something show alike.

pub(crate) mod letters;
