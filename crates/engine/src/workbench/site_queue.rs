//! A site at work: its requests, and its state at the gate.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fetchwell_policy::site::Permit;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;

use super::turns::Turns;
use crate::gate::RobotsView;
use crate::ports::job::Lane;
use crate::web::Request;

/// Identifies a job within the pipeline.
pub type JobKey = u64;

/// Numbers the flights of a pipeline.
pub type FlightNumber = u64;

/// A request that waits for its site.
#[derive(Debug)]
pub struct QueuedRequest {
    pub job: JobKey,
    pub request: Request,
    /// When it began to wait.
    pub since: Time,
    /// A request of the engine itself: sent before pages, and never handed back.
    pub is_internal: bool,
}

/// What a queue waits for.
#[derive(Debug, Default)]
pub enum SiteQueueState {
    /// Something else must happen first: a lookup, or a request under way.
    #[default]
    Waits,
    /// Asks the gate when its time comes.
    Asks,
    /// Has asked, and waits for the verdict.
    Asking,
    /// Holds a permit until its time comes.
    Holds {
        permit: Permit,
        /// When to use it, by the local clock.
        at: Time,
    },
}

/// The state of a site at work: the requests that wait, and what is known about the site meanwhile.
#[derive(Debug, Default)]
pub struct SiteQueue {
    pub standing: SiteQueueState,
    /// The robots.txt of each origin of the site; absent if it has not been looked up yet.
    pub robots: BTreeMap<Origin, RobotsView>,
    /// When a robots.txt of the site first became known here.
    pub robots_known_at: Option<Time>,
    /// The next page may follow its robots.txt without a pause.
    pub follows_robots: bool,
    /// Without pacing, a permit is valid for any number of requests: this one from that time on, by the local clock.
    pub open_permit: Option<(Permit, Time)>,
    /// The interval with which the last permit was requested.
    pub asked_interval: Duration,
    /// The interval that an operator ordered, as of the last permit.
    pub ordered_interval: Option<Duration>,
    /// When the robots.txt of the site was last forgotten by order, as of the last permit; `None` before the first one.
    pub robots_forgotten: Option<Option<Time>>,
    /// The group whose turn was taken for the next page.
    pub turn_of: Option<String>,
    /// A failure was reported by this process, and no success since.
    pub has_failed: bool,
    /// For an archive: the first two files that answered 5xx since it last served one.
    pub failed_files: Vec<String>,
    pub in_flight: usize,
    /// The flight whose head has not been written yet. Until then, no other slot is requested.
    pub unspent: Option<FlightNumber>,
    internal_fetches: VecDeque<QueuedRequest>,
    pages: Turns<QueuedRequest>,
}

impl SiteQueue {
    pub(super) fn new(standing: SiteQueueState) -> SiteQueue {
        SiteQueue { standing, ..SiteQueue::default() }
    }

    /// The next request to send: internal fetches first, then pages of the lanes that may send.
    pub fn next(&self, may_go: impl Fn(&Lane) -> bool) -> Option<&QueuedRequest> {
        self.internal_fetches.front().or_else(|| self.pages.front(may_go))
    }

    /// Takes the next request out.
    pub fn pop(&mut self, may_go: impl Fn(&Lane) -> bool) -> Option<QueuedRequest> {
        self.internal_fetches.pop_front().or_else(|| self.pages.pop(may_go))
    }

    /// Adds a request; if `first`, before all others of its lane.
    pub fn push(&mut self, item: QueuedRequest, lane: &Lane, first: bool) {
        match (item.is_internal, first) {
            (true, _) => self.internal_fetches.push_back(item),
            (false, true) => self.pages.push_first(lane, item),
            (false, false) => self.pages.push(lane, item),
        }
    }

    /// The lanes with pages waiting, except the default lane.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.pages.lanes()
    }

    /// Takes out all pages beyond the first `keep`, the latest first.
    pub fn take_beyond(&mut self, keep: usize) -> Vec<QueuedRequest> {
        self.pages.take_beyond(keep)
    }

    /// Takes out all pages of a job.
    pub(super) fn forget(&mut self, job: JobKey) -> Vec<QueuedRequest> {
        std::iter::from_fn(|| self.pages.take_first(|item| item.job == job)).collect()
    }

    /// Forgets what replaces robots.txt files that could not be read, except where the site had recovered `as_of` times
    /// by then. Returns whether there was anything to forget.
    pub fn forget_unread(&mut self, as_of: Option<u32>) -> bool {
        let before = self.robots.len();
        self.robots.retain(|_, view| {
            view.unread_as_of().is_none_or(|recoveries| as_of == Some(recoveries))
        });
        self.robots.len() < before
    }

    /// Forgets robots.txt files that were requested before the last order to read them again, which was given at
    /// `ordered_at`. Returns whether there were any.
    pub fn forget_robots(&mut self, ordered_at: Option<Time>) -> bool {
        let before = self.robots.len();
        self.robots.retain(|_, view| !view.is_forgotten(ordered_at));
        self.robots.len() < before
    }

    pub fn take_internal_fetches(&mut self) -> Vec<QueuedRequest> {
        self.internal_fetches.drain(..).collect()
    }

    /// The number of pages that wait.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.internal_fetches.is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fetchwell_policy::url::WebUrl;

    use super::*;

    pub(in crate::workbench) fn item(job: JobKey, is_internal: bool) -> QueuedRequest {
        let request = Request::page(WebUrl::parse("http://a.test/").unwrap());
        QueuedRequest { job, request, since: Time::EPOCH, is_internal }
    }

    #[test]
    fn internal_fetches_go_first_and_are_never_too_much() {
        let mut site_queue = SiteQueue::default();
        for (job, is_internal, first) in
            [(1, false, false), (8, true, false), (2, false, true), (9, true, true)]
        {
            site_queue.push(item(job, is_internal), &Lane::default(), first);
        }
        assert_eq!(site_queue.take_beyond(1).len(), 1);
        let order: Vec<JobKey> =
            std::iter::from_fn(|| site_queue.pop(|_| true)).map(|i| i.job).collect();
        assert_eq!(order, [8, 9, 2]);
        assert!(site_queue.is_empty());
    }
}
