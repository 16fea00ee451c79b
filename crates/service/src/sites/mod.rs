//! The known sites, the state of each, and orders for them.

mod missing;
mod row;
mod site_service;

pub use missing::missing_hosts;
pub use row::{BreakerRow, OrderRow, PaceRow, RobotsRow, SiteRow};
pub use site_service::{Obeyed, Operator, RowsPage, SiteService};
