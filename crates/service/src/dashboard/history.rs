//! Samples of the metrics for the last 15 minutes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::Purpose;
use fetchwell_policy::time::Time;
use fetchwell_telemetry::metrics::labels::{DoorName, EndingLabel, FailureLabel, StatusClass};
use fetchwell_telemetry::metrics::snapshot::DoorSnapshot;
use fetchwell_telemetry::metrics::{Metrics, MetricsSnapshot};
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::seconds::Seconds;

/// The time between two samples.
const EVERY: Duration = Duration::from_secs(5);
/// The period that the samples cover.
const REACHES: Duration = Duration::from_secs(900);
/// The maximum number of samples; one more than intervals, since each interval needs two.
const MOST: usize = (REACHES.as_secs() / EVERY.as_secs()) as usize + 1;

/// The outcomes of requests, in the order in which the chart stacks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// 2xx or 3xx.
    Answered,
    /// Blocked by robots.txt; no request was sent.
    Skipped,
    /// 429
    Limited,
    /// Any other 4xx.
    Refused,
    /// 5xx, or no response.
    Failed,
}

impl Came {
    /// Every outcome, with its color class and its name.
    pub(super) const ALL: [(Came, &'static str, &'static str); 5] = [
        (Came::Answered, "done", "OK (2xx, 3xx)"),
        (Came::Skipped, "skipped", "Blocked by robots.txt"),
        (Came::Limited, "limited", "Rate limited (429)"),
        (Came::Refused, "refused", "Client error (4xx)"),
        (Came::Failed, "failed", "Site failure (5xx, network)"),
    ];
}

/// A sample of the counters, over all doors except webhooks, which are not fetches.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) at: Time,
    pub(super) came: [u64; Came::ALL.len()],
    pub(super) request: Seconds,
    pub(super) politeness_wait: Seconds,
    pub(super) worker_wait: Seconds,
}

impl Look {
    pub(super) fn of(snapshot: &MetricsSnapshot, at: Time) -> Look {
        let doors = || {
            let fetching = snapshot.doors.iter().filter(|(name, _)| **name != DoorName::Webhooks);
            fetching.map(|(_, door)| door)
        };
        Look {
            at,
            came: Came::ALL.map(|(came, ..)| doors().map(|door| how_many(door, came)).sum()),
            request: Seconds::of(doors().map(|door| &door.request_s)),
            politeness_wait: Seconds::of(doors().map(|door| &door.politeness_wait_s)),
            worker_wait: Seconds::of(doors().map(|door| &door.worker_wait_s)),
        }
    }

    /// Requests with any outcome. A URL that robots.txt blocks causes no request.
    pub(super) fn requests(&self) -> u64 {
        let [answered, _, limited, refused, failed] = self.came;
        answered + limited + refused + failed
    }

    /// The outcomes since an earlier sample.
    pub(super) fn came_since(&self, earlier: &Look) -> [u64; Came::ALL.len()] {
        let mut more = self.came;
        for (more, before) in more.iter_mut().zip(earlier.came) {
            *more = more.saturating_sub(before);
        }
        more
    }
}

fn how_many(door: &DoorSnapshot, came: Came) -> u64 {
    let pages = |class| door.requests.get(&(Purpose::Page, class)).copied().unwrap_or(0);
    let limited = door.failures.get(&FailureLabel::RateLimited).copied().unwrap_or(0);
    match came {
        Came::Answered => pages(StatusClass::Success) + pages(StatusClass::Redirect),
        Came::Skipped => door.endings.get(&EndingLabel::Skipped).copied().unwrap_or(0),
        Came::Limited => limited,
        Came::Refused => pages(StatusClass::ClientError).saturating_sub(limited),
        Came::Failed => {
            pages(StatusClass::ServerError)
                + pages(StatusClass::NoAnswer)
                + pages(StatusClass::Other)
        }
    }
}

/// The samples, oldest first. Cheap to clone.
#[derive(Clone, Default)]
pub struct MetricsHistory(Arc<Mutex<VecDeque<Look>>>);

impl MetricsHistory {
    /// Takes samples until `stop`.
    pub(crate) async fn keep(
        &self,
        process_metrics: &Metrics,
        clock: &Clock,
        stop: &CancellationToken,
    ) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => self.note(Look::of(&process_metrics.snapshot(), clock.wall())),
                () = stop.cancelled() => return,
            }
        }
    }

    fn note(&self, look: Look) {
        let mut looks = self.0.lock();
        looks.push_back(look);
        if looks.len() > MOST {
            looks.pop_front();
        }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_between_is_a_difference() {
        let earlier = Look { came: [1, 0, 0, 0, 2], ..Look::default() };
        let later = Look { came: [5, 1, 0, 0, 2], ..Look::default() };
        assert_eq!(later.came_since(&earlier), [4, 1, 0, 0, 0]);
        assert_eq!((earlier.requests(), later.requests()), (3, 7));
    }

    #[test]
    fn it_reaches_back_so_far_and_no_further() {
        let history = MetricsHistory::default();
        for second in 0..10_000 {
            history.note(Look { at: Time::from_secs(second), ..Look::default() });
        }
        let looks = history.looks();
        assert_eq!((looks.len(), looks[MOST - 1].at), (MOST, Time::from_secs(9_999)));
    }
}
