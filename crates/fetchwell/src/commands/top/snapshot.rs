//! The state of a store at one moment, and the rates since an earlier one.

use std::time::Duration;

use fetchwell_engine::ports::queue::Ledger;
use serde::Serialize;

/// The state of a store.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct StoreSnapshot {
    /// The wall-clock time.
    pub(super) at: String,
    /// The URL of the store, without secrets.
    pub(super) store: String,
    /// Its queues, by name, except those that were never used.
    pub(super) queues: Vec<QueueLine>,
    /// Its sites: all that are in trouble, and a limited number of others.
    pub(super) sites: Vec<SiteLine>,
    /// Whether these are all sites.
    pub(super) has_all_sites: bool,
    /// The latest failures, newest first.
    pub(super) failures: Vec<FailureLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct QueueLine {
    pub(super) queue: String,
    #[serde(flatten)]
    pub(super) ledger: Ledger,
    /// Since the previous glance; `None` for the first.
    pub(super) accepted_per_second: Option<f64>,
    /// Done, skipped and dead, since the previous glance.
    pub(super) ended_per_second: Option<f64>,
    /// How long the oldest has waited; `None` if nothing waits or the store does not know.
    pub(super) oldest_waiting_seconds: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct SiteLine {
    pub(super) site: String,
    /// `paused`, `breaker`, `penalty`, `robots` or `pace`; `None` if it can be requested now.
    pub(super) held_up_by: Option<&'static str>,
    /// `closed`, `open` or `half_open`.
    pub(super) breaker: &'static str,
    pub(super) next_probe_in_seconds: Option<f64>,
    pub(super) rests_for_seconds: Option<f64>,
    /// `None` while the site is paused.
    pub(super) next_slot_in_seconds: Option<f64>,
    /// 0 for no pacing.
    pub(super) interval_seconds: f64,
    pub(super) pace_source: &'static str,
    /// Waiting URLs; counted only up to a thousand per queue.
    pub(super) waiting: u64,
    pub(super) limited_last_hour: u32,
    pub(super) failed_last_hour: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct FailureLine {
    /// The wall-clock time, if known.
    pub(super) at: Option<String>,
    pub(super) site: String,
    pub(super) reason: String,
    pub(super) url: String,
}

impl QueueLine {
    pub(super) fn of(queue: &str, ledger: &Ledger) -> QueueLine {
        QueueLine { queue: queue.to_owned(), ledger: *ledger, ..QueueLine::default() }
    }

    /// Sets how long the oldest has waited.
    pub(super) fn with_oldest(mut self, waited: Option<Duration>) -> QueueLine {
        self.oldest_waiting_seconds = waited.map(|waited| waited.as_secs_f64());
        self
    }

    /// Adds URLs that wait on a list and are not in the ledger yet.
    pub(super) fn with_list(mut self, on_list: u64) -> QueueLine {
        let on_list = i64::try_from(on_list).unwrap_or(i64::MAX);
        self.ledger.accepted = self.ledger.accepted.saturating_add(on_list);
        self.ledger.queued = self.ledger.queued.saturating_add(on_list);
        self
    }
}

impl StoreSnapshot {
    /// Sets the rates of each queue since an earlier glance.
    pub(super) fn note_rates(&mut self, earlier: &StoreSnapshot, between: Duration) {
        let seconds = between.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for line in &mut self.queues {
            let Some(then) = earlier.queues.iter().find(|then| then.queue == line.queue) else {
                continue;
            };
            // Retention deletes finished jobs, so a counter may go down: that is not a rate.
            let rate = |now: i64, then: i64| Some((now - then).max(0) as f64 / seconds);
            line.accepted_per_second = rate(line.ledger.accepted, then.ledger.accepted);
            line.ended_per_second = rate(line.ledger.ended(), then.ledger.ended());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(accepted: i64, done: i64, dead: i64) -> StoreSnapshot {
        let ledger = Ledger { accepted, done, dead, ..Ledger::default() };
        StoreSnapshot { queues: vec![QueueLine::of("inbox", &ledger)], ..StoreSnapshot::default() }
    }

    #[test]
    fn what_is_on_a_list_is_accepted_and_queued() {
        let ledger = Ledger { accepted: 9, done: 4, queued: 2, delayed: 3, ..Ledger::default() };
        for (on_list, expected) in [(0, (9, 2)), (7, (16, 9))] {
            let line = QueueLine::of("crawler_queue", &ledger).with_list(on_list);
            assert_eq!((line.ledger.accepted, line.ledger.queued), expected);
        }
    }

    #[test]
    fn rates_are_what_changed_in_the_time_between() {
        for (then, now, seconds, expected) in [
            (snapshot(10, 5, 0), snapshot(30, 14, 1), 2, (Some(10.0), Some(5.0))),
            (snapshot(10, 5, 0), snapshot(10, 5, 0), 2, (Some(0.0), Some(0.0))),
            (snapshot(10, 9, 0), snapshot(4, 3, 0), 2, (Some(0.0), Some(0.0))),
            (snapshot(10, 5, 0), snapshot(30, 14, 1), 0, (None, None)),
            (StoreSnapshot::default(), snapshot(30, 14, 1), 2, (None, None)),
        ] {
            let mut now = now;
            now.note_rates(&then, Duration::from_secs(seconds));
            let line = &now.queues[0];
            assert_eq!((line.accepted_per_second, line.ended_per_second), expected);
        }
    }
}
