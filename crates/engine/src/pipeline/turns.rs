//! Reports and questions that wait to be sent to the politeness store.

use fetchwell_policy::outcome::Mark;
use fetchwell_policy::time::Time;

use crate::ports::politeness::{SiteAsk, SiteReport};

/// The maximum number of reports, and of questions, in one turn. Every store can process this many in one transaction,
/// so a failed turn can be repeated without counting a report twice.
const MOST_PER_TURN: usize = 250;

/// Reports and questions are sent together, one turn at a time.
pub(super) struct Turns {
    asks: Vec<SiteAsk>,
    reports: Vec<SiteReport>,
    is_under_way: bool,
    /// No turn is sent before this.
    not_before: Time,
}

impl Turns {
    pub(super) fn new(now: Time) -> Turns {
        Turns { asks: Vec::new(), reports: Vec::new(), is_under_way: false, not_before: now }
    }

    pub(super) fn ask(&mut self, ask: SiteAsk) {
        self.asks.push(ask);
    }

    /// The number of questions that wait.
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

    /// When the next turn may be sent; `None` if there is nothing to send, or one is in progress.
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

    /// The turn returned, with a result or an error.
    pub(super) fn ended(&mut self) {
        self.is_under_way = false;
    }

    /// The turn failed for good, and its content is lost.
    pub(super) fn rest_until(&mut self, not_before: Time) {
        self.not_before = not_before;
    }

    /// The turn failed, and is repeated at `retry_at`, or at once if a late request was reported meanwhile.
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

    /// Nothing waits for the answers any more. Reports are still sent.
    pub(super) fn forget_asks(&mut self) {
        self.asks.clear();
    }
}

/// Removes up to `most` elements from the front of a list.
fn first<T>(list: &mut Vec<T>, most: usize) -> Vec<T> {
    let rest = list.split_off(list.len().min(most));
    std::mem::replace(list, rest)
}
