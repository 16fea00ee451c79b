//! Building blocks for the plans of doors.

pub mod immediate;
pub mod one_page;
pub mod redirect_chain;
