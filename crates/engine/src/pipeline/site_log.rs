//! What was logged about each site, and how its last request failed.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

/// The minimum time between two log lines of the same kind about a site.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// How many sites' last failures are remembered. For further sites, the reason only says that the site stayed down.
const MOST_FAILURES_KNOWN: usize = 10_000;

/// How long a site's last failure is remembered. By default a breaker is never open for that long.
const FAILURE_KNOWN_FOR: Duration = Duration::from_secs(2 * 3_600);

/// The kind of a log line about a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Line {
    /// Its next request waits.
    Wait,
    /// A request failed.
    Failure,
}

#[derive(Default)]
pub(super) struct SiteLog {
    last_lines: HashMap<(Site, Line), Time>,
    /// When and how the last request to a site failed. This is the reason given for its URLs when they are given up.
    last_failures: HashMap<Site, (Time, String)>,
}

impl SiteLog {
    /// Whether a line of this kind about a site is due; if so, records it as logged.
    pub(super) fn is_worth_a_line(&mut self, site: &Site, line: Line, now: Time) -> bool {
        let about = (site.clone(), line);
        let recent = self.last_lines.get(&about).is_some_and(|at| now.since(*at) < LINE_EVERY);
        if !recent {
            self.last_lines.insert(about, now);
        }
        !recent
    }

    pub(super) fn note_failure(&mut self, site: &Site, happened: &FetchOutcome, now: Time) {
        let is_known = self.last_failures.contains_key(site);
        if is_known || self.last_failures.len() < MOST_FAILURES_KNOWN {
            self.last_failures.insert(site.clone(), (now, happened.to_string()));
        }
    }

    pub(super) fn last_failure(&self, site: &Site) -> Option<String> {
        self.last_failures.get(site).map(|(_, why)| why.clone())
    }

    /// The site serves again.
    pub(super) fn forget_failure(&mut self, site: &Site) {
        self.last_failures.remove(site);
    }

    /// Forgets what is too old to matter.
    pub(super) fn sweep(&mut self, now: Time) {
        self.last_lines.retain(|_, at| now.since(*at) < LINE_EVERY);
        self.last_failures.retain(|_, (at, _)| now.since(*at) < FAILURE_KNOWN_FOR);
    }
}
