//! A simulated web: scripted sites that record every hit, and a judge of politeness.
//!
//! The core is pure. A [`World`] of [`SiteScript`]s answers a [`SimRequest`] at a given time and records it as a
//! [`Hit`]; time is an argument, so a test can run a day of traffic in a millisecond. [`Server`] serves the same world
//! on a real TCP socket. Afterwards [`judge()`] tells whether any request came sooner than its site's interval allows.

mod chance;
mod connection;
mod control;
mod exchange;
mod generate;
mod hit;
mod judge;
mod last_bytes;
mod outage;
mod page;
mod path_rule;
mod record;
mod robots;
mod script;
mod seconds;
mod server;
mod site;
mod tally;
mod world;

pub use control::{CONTROL_SITE, Control};
pub use exchange::{SimRequest, SimResponse, Truncation};
pub use generate::{mixed_sites, site_name, zipf_urls};
pub use hit::{Hit, HitKind};
pub use judge::{PaceVerdict, Rule, Violation, judge};
pub use outage::OutageKind;
pub use record::{read_hits, write_hits};
pub use script::SiteScript;
pub use server::Server;
pub use tally::{busiest_window, count_status};
pub use world::World;
