//! The answers of a site's state: whether a request may go, and whether its permit is still good.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::health::FailedProbes;
use crate::pace::{Rate, Slot};
use crate::time::Time;

/// Leave to write one request head (or, without pacing, any number of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// When.
    pub slot: Slot,
    /// The site's generation at that time; an older one is void.
    pub generation: u64,
    /// When the site last served a page.
    pub last_served: Option<Time>,
    /// Site failures on record: a success must be reported when there are any.
    pub failures_on_record: bool,
    /// The pace that it was given by.
    pub rate: Rate,
    /// An operator ordered that pace.
    pub rate_is_ordered: bool,
    /// What was learnt of robots.txt before another such time is not to be gone by.
    pub robots_forgotten: Option<Time>,
    /// How long the answer may be under way when the permit is spent. The others keep their distance from the latest
    /// moment at which the head can leave, so that a slow store costs time and never distance.
    #[serde(default)]
    pub lead: Duration,
    /// How often the site has recovered; see
    /// [`SiteHealth::recoveries`](crate::health::SiteHealth::recoveries).
    pub recoveries: u32,
}

/// The answer to "may a request go to this site?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A request may go in this slot.
    Go(Permit),
    /// The breaker is open and a probe is due: this asker sends it, and nothing else.
    Probe(Permit),
    /// Ask again then.
    NotBefore {
        /// When to ask again.
        at: Time,
        /// What holds it up.
        because: Because,
    },
}

/// What holds a site's requests up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// An operator paused it.
    Paused,
    /// Its own pace.
    Pace,
    /// It asked for a rest (429, or 503 with Retry-After).
    Penalty,
    /// Its breaker is open.
    BreakerOpen {
        /// When the failures began.
        failing_since: Time,
        /// The probes that failed since it opened.
        failed_probes: FailedProbes,
    },
}

/// The answer to "the head is about to be written: is the permit still good?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// Write it now.
    Go,
    /// The slot was missed; this is the new one.
    Wait(Permit),
    /// The site was penalised since: ask anew.
    Void,
}
