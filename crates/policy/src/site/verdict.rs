//! The decisions of a site's state: whether a request may be sent, and whether its permit is still valid.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::health::FailedProbes;
use crate::pace::{Rate, Slot};
use crate::time::Time;

/// Permission to write one request head (or, without pacing, any number of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// When the head may be written.
    pub slot: Slot,
    /// The generation of the site. The permit is void once the site's generation has changed.
    pub generation: u64,
    /// When the site last served a page.
    pub last_served: Option<Time>,
    /// Whether site failures are on record; then a success must be reported.
    pub failures_on_record: bool,
    /// The rate that it is based on.
    pub rate: Rate,
    /// Whether an operator ordered that rate.
    pub rate_is_ordered: bool,
    /// When the stored robots.txt was last discarded by an order. An older copy must not be used.
    pub robots_forgotten: Option<Time>,
    /// How long the reply of the store may take when the permit is spent, at most [`MAX_LEAD`](crate::pace::MAX_LEAD).
    /// Other requests keep their distance from the latest time at which the head can be written, so that a slow store
    /// costs time but never distance.
    #[serde(default)]
    pub lead: Duration,
    /// How often the site has recovered; see
    /// [`SiteHealth::recoveries`](crate::health::SiteHealth::recoveries).
    pub recoveries: u32,
}

/// The answer to "May a request be sent to this site?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A request may be sent in this slot.
    Go(Permit),
    /// The breaker is open and a probe is due: the caller sends it, and nothing else.
    Probe(Permit),
    /// No request may be sent now.
    NotBefore {
        /// When to ask again.
        at: Time,
        /// What delays the request.
        because: Because,
    },
}

/// What delays the requests to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// An operator paused the site.
    Paused,
    /// The pace of the site.
    Pace,
    /// The site asked us to wait (429, or 503 with Retry-After).
    Penalty,
    /// The breaker of the site is open.
    BreakerOpen {
        /// When the failures began.
        failing_since: Time,
        /// Failed probes since it opened.
        failed_probes: FailedProbes,
    },
}

/// The answer to "Is the permit still valid?", asked immediately before the head is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// Write the head now.
    Go,
    /// Too early or too close to another head; wait for the slot of this permit.
    Wait(Permit),
    /// The permit is void, for example because of a penalty. Ask for a new one.
    Void,
}
