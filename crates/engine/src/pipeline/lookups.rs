//! Which robots.txt files are being looked up or read, and which hosts do not exist.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;

/// How long a host is remembered as missing. Until then, its other URLs fail at once.
const MISSING_FOR: Duration = Duration::from_secs(60);

/// Each origin has at most one lookup at a time, in the store or on the web.
#[derive(Default)]
pub(super) struct Lookups {
    under_way: HashSet<Origin>,
    /// Origins whose hosts do not exist, and until when that is remembered.
    missing_hosts: HashMap<Origin, Time>,
}

impl Lookups {
    /// Returns false if a lookup is already in progress.
    pub(super) fn begin(&mut self, origin: &Origin) -> bool {
        self.under_way.insert(origin.clone())
    }

    pub(super) fn end(&mut self, origin: &Origin) {
        self.under_way.remove(origin);
    }

    /// Whether a lookup is in progress, by the [`origin_key`](fetchwell_policy::url::WebUrl::origin_key) of a URL.
    pub(super) fn is_under_way(&self, origin_key: &str) -> bool {
        self.under_way.contains(origin_key)
    }

    /// Nothing waits for the lookups any more.
    pub(super) fn forget_all(&mut self) {
        self.under_way.clear();
    }

    pub(super) fn note_missing_host(&mut self, origin: &Origin, now: Time) {
        self.missing_hosts.insert(origin.clone(), now + MISSING_FOR);
    }

    pub(super) fn is_missing_host(&self, origin: &Origin, now: Time) -> bool {
        self.missing_hosts.get(origin).is_some_and(|until| now < *until)
    }

    pub(super) fn sweep(&mut self, now: Time) {
        self.missing_hosts.retain(|_, until| now < *until);
    }
}
