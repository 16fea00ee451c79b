use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exchange::{SimResponse, Truncation};

/// How a site that is down behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// It answers 503.
    #[serde(rename = "status_503")]
    Status503 {
        /// The value of its Retry-After header, if it sends one.
        #[serde(rename = "retry_after_s", default, with = "crate::seconds::optional")]
        retry_after: Option<Duration>,
    },
    /// It resets every connection.
    Refuse,
    /// It accepts connections and never answers.
    Stall,
}

impl OutageKind {
    pub(crate) fn answer(self) -> SimResponse {
        let unavailable = SimResponse::of_status(503);
        match self {
            OutageKind::Status503 { retry_after } => unavailable.with_retry_after(retry_after),
            OutageKind::Refuse => unavailable.with_manner(Truncation::CutConnection),
            OutageKind::Stall => unavailable.with_manner(Truncation::Stall),
        }
    }
}

/// A period during which a site is down; the end is exclusive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outage {
    #[serde(rename = "from_s", with = "crate::seconds")]
    pub(crate) from: Duration,
    #[serde(rename = "to_s", with = "crate::seconds")]
    pub(crate) to: Duration,
    pub(crate) failure: OutageKind,
}

impl Outage {
    pub(crate) fn failure_at(&self, at: Duration) -> Option<OutageKind> {
        (self.from..self.to).contains(&at).then_some(self.failure)
    }
}

/// A site that alternates between up and down, for ever; it starts up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flapping {
    #[serde(rename = "up_for_s", with = "crate::seconds")]
    pub(crate) up_for: Duration,
    #[serde(rename = "down_for_s", with = "crate::seconds")]
    pub(crate) down_for: Duration,
    pub(crate) failure: OutageKind,
}

impl Flapping {
    pub(crate) fn failure_at(&self, at: Duration) -> Option<OutageKind> {
        let period_ns = self.up_for.as_nanos() + self.down_for.as_nanos();
        // A period of zero has no remainder: such a site stays up.
        let into_period_ns = at.as_nanos().checked_rem(period_ns)?;
        (into_period_ns >= self.up_for.as_nanos()).then_some(self.failure)
    }
}
