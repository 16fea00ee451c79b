//! The known sites, the state of each, and orders for them.

mod desk;
mod missing;
mod row;

pub use desk::{Obeyed, Operator, RowsPage, SiteDesk};
pub use missing::missing_hosts;
pub use row::{BreakerRow, OrderRow, PaceRow, RobotsRow, SiteRow};
