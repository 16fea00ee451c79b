//! What the stored copy of a robots.txt means now.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::robots::{Robots, WhenUnreachable};
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;

use super::GateRules;
use crate::ports::politeness::{RobotsRecord, Unreachable};

/// A robots.txt that was just read is valid for at least this long, whatever the setting.
const LEAST_FRESH: Duration = Duration::from_secs(60);

impl GateRules {
    /// What a robots.txt record means at `now`, if its site is in `state`. `state` is `None` for a record that was just
    /// read, because then it says nothing that the record does not. A record from before an order to read it again counts
    /// as missing.
    pub fn view(
        &self,
        record: Option<&RobotsRecord>,
        state: Option<&SiteState>,
        now: Time,
    ) -> RobotsView {
        let Some(record) = record else { return RobotsView::Fetch };
        if state.is_some_and(|state| record.is_forgotten(state.orders.robots_forgotten)) {
            return RobotsView::Fetch;
        }
        let robots_forgotten = record.robots_forgotten;
        let rules = &self.robots;
        let copy = record.body.as_deref();
        let Some(unreachable) = &record.unreachable else {
            let until = record.fetched_at + rules.fresh_for.max(LEAST_FRESH);
            return match copy {
                Some(body) if now < until => {
                    let robots = self.parse(body);
                    RobotsView::Known { robots, until, unread_as_of: None, robots_forgotten }
                }
                _ => RobotsView::Fetch,
            };
        };
        let until = unreachable.retry_at;
        if now >= until || state.is_some_and(|state| unreachable.comes_first(state)) {
            return RobotsView::Fetch;
        }
        let unread_as_of = unreachable.recoveries;
        let stands_in = |robots| RobotsView::Known {
            robots,
            until,
            unread_as_of: Some(unread_as_of),
            robots_forgotten,
        };
        let is_not_too_old = now < record.fetched_at + rules.stale_for;
        match (copy, rules.when_unreachable) {
            (Some(body), _) if is_not_too_old => stands_in(self.parse(body)),
            (_, WhenUnreachable::Allow) => stands_in(Arc::new(Robots::allow_all())),
            (_, WhenUnreachable::Disallow) => stands_in(Arc::new(Robots::disallow_all())),
            (_, WhenUnreachable::Defer) => {
                let Unreachable { since, is_asked_for, .. } = *unreachable;
                RobotsView::Blocked { until, since, unread_as_of, is_asked_for, robots_forgotten }
            }
        }
    }

    pub(super) fn parse(&self, body: &[u8]) -> Arc<Robots> {
        Arc::new(Robots::parse(body, &self.robots.product_token))
    }
}

/// What a robots.txt record means now.
#[derive(Clone, Debug)]
pub enum RobotsView {
    /// It must be fetched first.
    Fetch,
    /// The rules are known, and need not be requested again before `until`.
    Known {
        robots: Arc<Robots>,
        until: Time,
        /// The rules replace a file that could not be read when its site had recovered this many times.
        unread_as_of: Option<u32>,
        /// When an operator had last ordered a re-read of the file, as known when it was requested.
        robots_forgotten: Option<Time>,
    },
    /// The origin must not be connected to, or does not exist: its pages get this outcome.
    Refused(FetchOutcome),
    /// The file is unreachable: no page is requested before `until`.
    Blocked {
        until: Time,
        /// Since when it has been unreachable.
        since: Time,
        /// How many times the site had recovered when the file could not be read.
        unread_as_of: u32,
        /// The site itself asked for this wait.
        is_asked_for: bool,
        /// When an operator had last ordered a re-read of the file, as known when it was requested.
        robots_forgotten: Option<Time>,
    },
}

impl RobotsView {
    /// The rules, if they are known.
    pub fn robots(&self) -> Option<&Robots> {
        match self {
            RobotsView::Known { robots, .. } => Some(robots),
            RobotsView::Fetch | RobotsView::Refused(_) | RobotsView::Blocked { .. } => None,
        }
    }

    /// How many times the site had recovered when its file could not be read; `None` if it could.
    pub fn unread_as_of(&self) -> Option<u32> {
        match self {
            RobotsView::Known { unread_as_of, .. } => *unread_as_of,
            RobotsView::Blocked { unread_as_of, .. } => Some(*unread_as_of),
            RobotsView::Fetch | RobotsView::Refused(_) => None,
        }
    }

    /// Whether the file was requested before the last order to read it again; see [`RobotsRecord::is_forgotten`].
    pub fn is_forgotten(&self, ordered_at: Option<Time>) -> bool {
        match self {
            RobotsView::Known { robots_forgotten, .. }
            | RobotsView::Blocked { robots_forgotten, .. } => *robots_forgotten < ordered_at,
            RobotsView::Fetch | RobotsView::Refused(_) => false,
        }
    }
}
