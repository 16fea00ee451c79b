//! A hostile server: all the bad things that a server can do to a client, each with a name and the outcomes of a good
//! client.

mod behaviour;
mod certificates;
mod coders;
mod frames;
mod server;
mod step;
mod table;
mod visitor;

pub use behaviour::{Behaviour, Good, Over};
pub use certificates::Identity;
pub use server::{HostileServer, RobotsAre, Target};
pub use step::HostileStep;
pub use table::behaviours;
pub use visitor::{HostileVisitor, Visit, long_limits, short_limits};
