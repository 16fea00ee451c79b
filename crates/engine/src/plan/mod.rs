//! What doors build their plans on.

pub mod immediate;
pub mod one_page;
pub mod redirect_chain;
