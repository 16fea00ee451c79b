//! Records failed authentications in the audit log. They are grouped by address and reason, so that a thousand
//! attempts per second make as few entries as two.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::AuditLog;
use crate::server::{network_name, network_of};

/// The first failure of a group is written to the audit log at once, and all that follow within this time make one more
/// entry.
const WINDOW: Duration = Duration::from_secs(600);

/// The maximum number of groups in a window; further addresses are counted together.
const MOST_GROUPS: usize = 64;

/// Failed authentications that are not in the audit log yet.
pub struct AuthFailures {
    clock: Clock,
    groups: Mutex<BTreeMap<GroupKey, Group>>,
}

/// The address and the reason; `None` stands for all further addresses.
type GroupKey = (Option<IpAddr>, &'static str);

struct Group {
    began: Instant,
    /// Whether the audit log has an entry of this group.
    is_known: bool,
    /// Failures that are not in the audit log yet.
    count: u64,
    first: Time,
    last: Time,
}

impl AuthFailures {
    pub fn new(clock: Clock) -> AuthFailures {
        AuthFailures { clock, groups: Mutex::default() }
    }

    /// Records a request without a valid token. `what` says what was wrong and never contains the token.
    pub(crate) fn note(&self, from: IpAddr, what: &'static str) {
        let at = self.clock.wall();
        let mut groups = self.groups.lock();
        let own = (Some(network_of(from)), what);
        let has_room = groups.len() < MOST_GROUPS || groups.contains_key(&own);
        let key = if has_room { own } else { (None, what) };
        let began = Instant::now();
        let new = Group { began, is_known: false, count: 0, first: at, last: at };
        let group = groups.entry(key).or_insert(new);
        if group.count == 0 {
            group.first = at;
        }
        group.count += 1;
        group.last = at;
    }

    /// Writes entries to the audit log until `stop`, then writes the rest.
    pub(crate) async fn write_to(&self, audit: &AuditLog, stop: &CancellationToken) {
        audit.write_due(|all| self.due(all), "failed authentications", stop).await;
    }

    /// The entries to write now.
    fn due(&self, all: bool) -> Vec<AuditEntry> {
        let mut groups = self.groups.lock();
        let mut entries = Vec::new();
        groups.retain(|key, group| {
            let is_over = group.began.elapsed() >= WINDOW;
            if group.count > 0 && (all || is_over || !group.is_known) {
                entries.push(group.entry(*key));
                group.is_known = true;
                group.count = 0;
            }
            !is_over
        });
        entries
    }
}

impl Group {
    fn entry(&self, (from, what): GroupKey) -> AuditEntry {
        let detail = match self.count {
            1 => what.to_owned(),
            count => format!("{what}, {count} times since {}", rfc3339(self.first)),
        };
        AuditEntry {
            at: self.last,
            caller: None,
            action: "authentication_failed".to_owned(),
            detail,
            from: from.map_or_else(|| "many addresses".to_owned(), network_name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    /// What each entry says, without its time, and from where.
    fn details(entries: &[AuditEntry]) -> Vec<(&str, &str)> {
        let mut details = Vec::new();
        for entry in entries {
            let detail = entry.detail.split(" since ").next().unwrap();
            details.push((detail, entry.from.as_str()));
        }
        details
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_is_told_at_once_and_all_that_follow_as_one() {
        let failures = AuthFailures::new(Clock::system());
        failures.note(address(1), "no token");
        assert_eq!(details(&failures.due(false)), [("no token", "10.0.0.1")]);
        for _ in 0..100_000 {
            failures.note(address(1), "no token");
            assert!(failures.due(false).is_empty());
        }
        failures.note(address(1), "not a token");
        assert_eq!(details(&failures.due(false)), [("not a token", "10.0.0.1")]);
        tokio::time::advance(WINDOW).await;
        assert_eq!(details(&failures.due(false)), [("no token, 100000 times", "10.0.0.1")]);
        assert!(failures.groups.lock().is_empty(), "nothing is remembered after that");
        failures.note(address(1), "no token");
        assert_eq!(details(&failures.due(false)), [("no token", "10.0.0.1")]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_number_of_addresses_makes_many_entries() {
        let failures = AuthFailures::new(Clock::system());
        for number in 0..10_000 {
            failures.note(address(number), "no token");
        }
        let entries = failures.due(false);
        assert_eq!(entries.len(), MOST_GROUPS + 1);
        let beyond = 10_000 - MOST_GROUPS;
        let told = format!("no token, {beyond} times");
        assert_eq!(details(&entries)[0], (told.as_str(), "many addresses"));
        assert!(failures.due(false).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_writes_what_is_left() {
        let failures = AuthFailures::new(Clock::system());
        let audit = AuditLog::of_process(Clock::system());
        for _ in 0..3 {
            failures.note(address(1), "no token");
        }
        assert_eq!(failures.due(false).len(), 1);
        failures.note(address(1), "no token");
        let stop = CancellationToken::new();
        stop.cancel();
        failures.write_to(&audit, &stop).await;
        assert_eq!(details(&audit.latest(10).await.unwrap()), [("no token", "10.0.0.1")]);
    }
}
