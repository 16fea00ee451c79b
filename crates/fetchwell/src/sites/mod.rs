//! Which sites are known, how each stands, and orders to them.

pub(crate) mod desk;
mod missing;
pub(crate) mod row;

pub(crate) use desk::{Obeyed, Operator, SiteDesk, action, detail};
pub(crate) use missing::missing_hosts;
pub(crate) use row::SiteRow;
