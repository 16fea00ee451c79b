//! What a pipeline reports to its watcher: to be counted, logged, traced or shown. No decision depends on it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::{FetchOutcome, Mark};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};

use crate::ports::error::StoreError;
use crate::ports::finish::Settlement;
use crate::ports::job::{Lease, LeaseId};
use crate::web::{Method, Phases};

/// Something that a pipeline did or observed.
#[derive(Clone, Debug)]
pub enum Event {
    /// A breaker opened, or opened again after a failed probe.
    CircuitOpened {
        site: Site,
        /// The time until the next probe.
        next_probe_in: Duration,
    },
    /// A breaker closed.
    CircuitClosed(Site),
    /// A probe is about to be sent.
    Probing(Site),
    /// The outcome of a request that changes the state of its site.
    Marked(Site, Mark),
    /// A request ended: answered, or failed.
    Requested(Box<Requested>),
    /// A lease was settled.
    Settled(Box<SettledLease>),
    /// A settlement came too late: the lease had passed to another instance.
    Stale,
    /// The robots.txt of this origin was requested and is unreachable.
    RobotsUnreachable(Origin),
    /// This many leases were rescued from dead instances.
    Rescued(u64),
    /// A head left sooner after the previous one than the site's pace allows. This should never happen.
    RateBreach {
        site: Site,
        /// How much too early it left.
        early_by: Duration,
    },
    /// A store call failed.
    StoreFailed(StoreError),
    /// What is in memory; reported about once per second.
    Window(Window),
}

/// Receives the events. It must return at once.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// A request that ended.
#[derive(Clone, Debug)]
pub struct Requested {
    pub purpose: Purpose,
    /// `None` for a request of the engine itself.
    pub lease: Option<LeaseTag>,
    pub url: WebUrl,
    pub method: Method,
    pub happened: FetchOutcome,
    /// How long each phase took.
    pub phases: Phases,
    /// Facts about the answer, if there was one.
    pub answer: Option<AnswerFacts>,
    /// When it ended, by the wall clock.
    pub ended_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A request of a lease: a page, a feed, a range, a webhook.
    Page,
    /// A robots.txt.
    Robots,
    /// A probe of a site that was down.
    Probe,
}

impl Purpose {
    pub const ALL: [Purpose; 3] = [Purpose::Page, Purpose::Robots, Purpose::Probe];
}

#[derive(Clone, Copy, Debug)]
pub struct AnswerFacts {
    /// The length of the decoded body.
    pub body_bytes: usize,
    pub version: http::Version,
    /// The address of the server, if there was a connection.
    pub peer: Option<IpAddr>,
}

/// Identifies one attempt at a lease across all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTag {
    /// Its id within its source.
    pub id: LeaseId,
    pub accepted_at: Time,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl LeaseTag {
    pub fn of(lease: &Lease) -> LeaseTag {
        LeaseTag { id: lease.id, accepted_at: lease.accepted_at, attempt: lease.attempt() }
    }
}

#[derive(Clone, Debug)]
pub struct SettledLease {
    /// The lease, as it was taken.
    pub lease: Lease,
    pub settlement: Settlement,
    /// How long each phase of its last request took.
    pub phases: Phases,
    /// How long ago it was accepted.
    pub age: Duration,
    /// When it was settled, by the wall clock.
    pub ended_at: Time,
}

/// What a pipeline has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub leases: usize,
    pub in_flight: usize,
    /// Sites with something waiting or in flight.
    pub sites: usize,
    /// Sites whose pace this process tracks.
    pub sites_known: usize,
    /// The age of the oldest job in memory or waiting in the store, including delayed jobs. For the store, this is as
    /// of the last heartbeat or slightly earlier.
    pub oldest: Option<Duration>,
}
