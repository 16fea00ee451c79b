//! What a pipeline tells whoever watches: counted, logged, traced or shown, never decided upon.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::Happened;
use fetchwell_policy::site::Mark;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};

use crate::ports::error::StoreError;
use crate::ports::finish::Settlement;
use crate::ports::job::{Lease, LeaseId};
use crate::web::{Method, Phases};

/// Something that a pipeline did or met with.
#[derive(Clone, Debug)]
pub enum News {
    /// A breaker opened, or opened again after a failed probe.
    CircuitOpened {
        /// Whose.
        site: Site,
        /// The next probe goes after this.
        next_probe_in: Duration,
    },
    /// A breaker closed.
    CircuitClosed(Site),
    /// A probe is on its way.
    Probing(Site),
    /// What became of a request, where that changes what is known of its site.
    Marked(Site, Mark),
    /// A request came to its end: answered, or failed.
    Requested(Box<Requested>),
    /// A lease was settled.
    Settled(Box<SettledLease>),
    /// A settlement came too late: the lease had been given to somebody else.
    Stale,
    /// The robots.txt of this origin was asked for and can't be reached.
    RobotsUnreachable(Origin),
    /// So many leases were rescued from instances that died.
    Rescued(u64),
    /// A head left this much sooner after the last one than the site's pace allows. It should never.
    RateBreach {
        /// Where to.
        site: Site,
        /// How much too early.
        early_by: Duration,
    },
    /// A store did not do what it was asked.
    StoreFailed(StoreError),
    /// How much is in hand; told about once a second.
    Window(Window),
}

/// Receives the news. Must return at once.
pub type Watcher = Arc<dyn Fn(News) + Send + Sync>;

/// A request that came to its end.
#[derive(Clone, Debug)]
pub struct Requested {
    /// What it was for.
    pub purpose: Purpose,
    /// Whose it was; `None`: the engine's own.
    pub lease: Option<LeaseTag>,
    /// Where to.
    pub url: WebUrl,
    /// By which method.
    pub method: Method,
    /// What happened.
    pub happened: Happened,
    /// Where its time went.
    pub phases: Phases,
    /// What was on the wire, when there was an answer.
    pub answer: Option<AnswerFacts>,
    /// When it ended, by the wall clock.
    pub ended_at: Time,
}

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A lease's own: a page, a feed, a range, a webhook.
    Page,
    /// A robots.txt.
    Robots,
    /// A probe of a site that was down.
    Probe,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Purpose; 3] = [Purpose::Page, Purpose::Robots, Purpose::Probe];
}

/// What is told of an answer.
#[derive(Clone, Copy, Debug)]
pub struct AnswerFacts {
    /// The body's length, with its encoding undone.
    pub body_bytes: usize,
    /// The version of HTTP that was spoken.
    pub version: http::Version,
    /// Who answered, where there was a connection.
    pub peer: Option<IpAddr>,
}

/// Tells one attempt at a lease from all others, in every process alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseTag {
    /// Its name within its source.
    pub id: LeaseId,
    /// When it was accepted.
    pub accepted_at: Time,
    /// Which attempt it is, from 1.
    pub attempt: u32,
}

impl LeaseTag {
    /// The tag of a lease.
    pub fn of(lease: &Lease) -> LeaseTag {
        LeaseTag { id: lease.id, accepted_at: lease.accepted_at, attempt: lease.attempt() }
    }
}

/// A lease that was settled.
#[derive(Clone, Debug)]
pub struct SettledLease {
    /// The lease, as it was taken.
    pub lease: Lease,
    /// What became of it.
    pub settlement: Settlement,
    /// Where the time of its last request went.
    pub phases: Phases,
    /// How long ago it was accepted.
    pub age: Duration,
    /// When it was settled, by the wall clock.
    pub ended_at: Time,
}

/// How much a pipeline has in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Leases held.
    pub leases: usize,
    /// Requests under way.
    pub in_flight: usize,
    /// Sites that something waits for, or is under way to.
    pub sites: usize,
    /// Sites whose pace this process has kept lately.
    pub sites_known: usize,
    /// How long ago the oldest job was accepted that is held, or that waits in the store: delayed ones, too, as of
    /// the last heartbeat or a little before.
    pub oldest: Option<Duration>,
}
