//! What waits to be told to the politeness store, and asked of it.

use fetchwell_policy::site::Mark;
use fetchwell_policy::time::Time;

use crate::ports::politeness::{SiteAsk, SiteReport};

/// Reports in one turn, and questions: so few that every store does them in one step, and a turn that
/// failed can be told again without one being counted twice.
const MOST_PER_TURN: usize = 250;

/// Reports and questions go together, in turns: one is under way at a time.
pub(super) struct Turns {
    asks: Vec<SiteAsk>,
    reports: Vec<SiteReport>,
    is_under_way: bool,
    /// No turn before this.
    not_before: Time,
}

impl Turns {
    pub(super) fn new(now: Time) -> Turns {
        Turns { asks: Vec::new(), reports: Vec::new(), is_under_way: false, not_before: now }
    }

    pub(super) fn ask(&mut self, ask: SiteAsk) {
        self.asks.push(ask);
    }

    /// How many questions wait.
    pub(super) fn asks(&self) -> usize {
        self.asks.len()
    }

    pub(super) fn report(&mut self, report: SiteReport) {
        self.reports.push(report);
    }

    /// Does not wait for the retry delay: another process may send the next request.
    pub(super) fn report_at_once(&mut self, report: SiteReport, now: Time) {
        self.reports.push(report);
        self.not_before = self.not_before.min(now);
    }

    /// Whether every report has reached the store.
    pub(super) fn all_is_told(&self) -> bool {
        self.reports.is_empty() && !self.is_under_way
    }

    /// When the next turn may go; `None`: there is nothing to say, or one is under way.
    pub(super) fn next_due(&self) -> Option<Time> {
        let something_to_say = !self.asks.is_empty() || !self.reports.is_empty();
        (something_to_say && !self.is_under_way).then_some(self.not_before)
    }

    /// Begins the next turn, if it is due.
    pub(super) fn begin(&mut self, now: Time) -> Option<(Vec<SiteReport>, Vec<SiteAsk>)> {
        self.next_due().filter(|at| *at <= now)?;
        self.is_under_way = true;
        let reports = first(&mut self.reports, MOST_PER_TURN);
        let asks = first(&mut self.asks, MOST_PER_TURN);
        Some((reports, asks))
    }

    /// The turn came back.
    pub(super) fn ended(&mut self) {
        self.is_under_way = false;
    }

    /// The turn failed for good: what it said is lost.
    pub(super) fn rest_until(&mut self, not_before: Time) {
        self.not_before = not_before;
    }

    /// The turn failed: it is told again at `retry_at`. A late request that was noted meanwhile is reported at once.
    pub(super) fn put_back(
        &mut self,
        mut reports: Vec<SiteReport>,
        asks: Vec<SiteAsk>,
        now: Time,
        retry_at: Time,
    ) {
        let left_late = |told: &SiteReport| matches!(told.report.mark, Mark::LeftLate { .. });
        self.not_before = if self.reports.iter().any(left_late) { now } else { retry_at };
        reports.append(&mut self.reports);
        self.reports = reports;
        self.asks.splice(0..0, asks);
    }

    /// Nobody waits for the answers any more. What happened is told all the same.
    pub(super) fn forget_asks(&mut self) {
        self.asks.clear();
    }
}

/// Takes the first out of a list, `most` of them at most.
fn first<T>(list: &mut Vec<T>, most: usize) -> Vec<T> {
    let rest = list.split_off(list.len().min(most));
    std::mem::replace(list, rest)
}
