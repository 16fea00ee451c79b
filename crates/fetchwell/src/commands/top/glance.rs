//! What there is to see of a store at one moment, and what has changed since another.

use std::time::Duration;

use fetchwell_engine::ports::queue::Ledger;
use serde::Serialize;

/// How a store stands.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Glance {
    /// When, by the wall clock.
    pub(super) at: String,
    /// Which store; without its secrets.
    pub(super) store: String,
    /// Its queues, by name; those that were ever used.
    pub(super) queues: Vec<QueueLine>,
    /// Its sites: those in trouble, and as many others as are looked at.
    pub(super) sites: Vec<SiteLine>,
    /// Whether these are all sites.
    pub(super) has_all_sites: bool,
    /// What failed last, the newest first.
    pub(super) failures: Vec<FailureLine>,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct QueueLine {
    pub(super) queue: String,
    pub(super) accepted: i64,
    pub(super) done: i64,
    pub(super) skipped: i64,
    pub(super) queued: i64,
    pub(super) in_flight: i64,
    pub(super) delayed: i64,
    pub(super) dead: i64,
    /// Since the last look; `None` at the first.
    pub(super) accepted_per_second: Option<f64>,
    /// Done, skipped and dead, since the last look.
    pub(super) ended_per_second: Option<f64>,
    /// How long the oldest has waited; `None`: nothing waits, or the store can't tell.
    pub(super) oldest_waiting_seconds: Option<f64>,
}

/// A site.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct SiteLine {
    pub(super) site: String,
    /// `paused`, `breaker`, `penalty` or `pace`; `None`: it may be asked now.
    pub(super) held_up_by: Option<&'static str>,
    /// `closed`, `open` or `half_open`.
    pub(super) breaker: &'static str,
    pub(super) next_probe_in_seconds: Option<f64>,
    pub(super) rests_for_seconds: Option<f64>,
    /// `None` while it is paused.
    pub(super) next_slot_in_seconds: Option<f64>,
    /// 0: no pacing.
    pub(super) interval_seconds: f64,
    /// Where the interval comes from.
    pub(super) pace_source: &'static str,
    /// URLs that wait for it; beyond a thousand of a queue they are not counted.
    pub(super) waiting: u64,
    pub(super) limited_last_hour: u32,
    pub(super) failed_last_hour: u32,
}

/// Something that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct FailureLine {
    /// When, by the wall clock, where that is known.
    pub(super) at: Option<String>,
    pub(super) site: String,
    pub(super) reason: String,
    pub(super) url: String,
}

impl QueueLine {
    /// As the counters have it.
    pub(super) fn of(queue: &str, ledger: &Ledger) -> QueueLine {
        QueueLine {
            queue: queue.to_owned(),
            accepted: ledger.accepted,
            done: ledger.done,
            skipped: ledger.skipped,
            queued: ledger.queued,
            in_flight: ledger.in_flight,
            delayed: ledger.delayed,
            dead: ledger.dead,
            ..QueueLine::default()
        }
    }

    /// The same where the oldest has waited for so long.
    pub(super) fn with_oldest(mut self, waited: Option<Duration>) -> QueueLine {
        self.oldest_waiting_seconds = waited.map(|waited| waited.as_secs_f64());
        self
    }

    /// The same where URLs wait on a list before they are counted.
    pub(super) fn with_list(mut self, on_list: u64) -> QueueLine {
        let on_list = i64::try_from(on_list).unwrap_or(i64::MAX);
        self.accepted = self.accepted.saturating_add(on_list);
        self.queued = self.queued.saturating_add(on_list);
        self
    }

    fn ended(&self) -> i64 {
        self.done + self.skipped + self.dead
    }
}

impl Glance {
    /// How fast each queue moves, by an earlier look.
    pub(super) fn note_rates(&mut self, earlier: &Glance, between: Duration) {
        let seconds = between.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        for line in &mut self.queues {
            let Some(then) = earlier.queues.iter().find(|then| then.queue == line.queue) else {
                continue;
            };
            // Retention takes away what has ended: that is no speed.
            let rate = |now: i64, then: i64| Some((now - then).max(0) as f64 / seconds);
            line.accepted_per_second = rate(line.accepted, then.accepted);
            line.ended_per_second = rate(line.ended(), then.ended());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glance(accepted: i64, done: i64, dead: i64) -> Glance {
        let ledger = Ledger { accepted, done, dead, ..Ledger::default() };
        Glance { queues: vec![QueueLine::of("inbox", &ledger)], ..Glance::default() }
    }

    #[test]
    fn what_is_on_a_list_is_accepted_and_queued() {
        let ledger = Ledger { accepted: 9, done: 4, queued: 2, delayed: 3, ..Ledger::default() };
        for (on_list, expected) in [(0, (9, 2)), (7, (16, 9))] {
            let line = QueueLine::of("crawler_queue", &ledger).with_list(on_list);
            assert_eq!((line.accepted, line.queued), expected);
        }
    }

    #[test]
    fn rates_are_what_changed_in_the_time_between() {
        for (then, now, seconds, expected) in [
            (glance(10, 5, 0), glance(30, 14, 1), 2, (Some(10.0), Some(5.0))),
            (glance(10, 5, 0), glance(10, 5, 0), 2, (Some(0.0), Some(0.0))),
            (glance(10, 9, 0), glance(4, 3, 0), 2, (Some(0.0), Some(0.0))),
            (glance(10, 5, 0), glance(30, 14, 1), 0, (None, None)),
            (Glance::default(), glance(30, 14, 1), 2, (None, None)),
        ] {
            let mut now = now;
            now.note_rates(&then, Duration::from_secs(seconds));
            let line = &now.queues[0];
            assert_eq!((line.accepted_per_second, line.ended_per_second), expected);
        }
    }
}
