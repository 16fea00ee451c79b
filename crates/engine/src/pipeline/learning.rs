//! What must be known before pages can be sent: robots.txt, and whether a site is back.

use fetchwell_policy::outcome::{Blame, FetchOutcome, Mark, NameFault, NetworkFault};
use fetchwell_policy::site::{Permit, SiteState};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tracing::{error, warn};

use super::Event;
use super::dispatch::known_robots;
use super::interruptions::REST;
use super::jobs::Work;
use super::scheduler::{Input, Scheduler};
use crate::gate::RobotsView;
use crate::internal_fetch::{RobotsFetch, RobotsStep, probe};
use crate::ports::error::StoreError;
use crate::ports::job::Lane;
use crate::ports::politeness::{Politeness, RobotsRecord};
use crate::store_health::StoreCall;
use crate::web::{Outcome, Request};
use crate::workbench::{JobKey, QueuedRequest, SiteQueueState};

impl<R: Send + Sync + 'static> Scheduler<R> {
    pub(super) fn start_probe(&mut self, site: &Site, permit: Permit, at: Time) {
        let Some(site_queue) = self.bench.existing(site) else { return };
        let Some(item) = site_queue.next(|_| true) else { return };
        let url = &item.request.url;
        let origin = url.origin();
        let copy = match self.jobs.get(item.job) {
            Some(Work::Robots(robots_fetch)) if robots_fetch.origin == origin => {
                robots_fetch.copy()
            }
            _ => None,
        };
        let url = self.runtime.gate.probe_url(&origin, known_robots(site_queue, url), copy);
        let waiting = site_queue.take_internal_fetches(); // The probe goes first, alone.
        let job = self.jobs.add(Work::Probe(site.clone()));
        self.queue_internal_fetch(job, probe(url));
        let site_queue = self.bench.site_queue(site, self.now());
        for internal_fetch in waiting {
            site_queue.push(internal_fetch, &Lane::default(), false);
        }
        self.bench.hold(site, permit, at);
        self.emit(Event::Probing(site.clone()));
    }

    fn queue_internal_fetch(&mut self, job: JobKey, request: Request) {
        let now = self.now();
        let site_queue = self.bench.site_queue(&request.url.site(), now);
        let item = QueuedRequest { job, request, since: now, is_internal: true };
        site_queue.push(item, &Lane::default(), false);
    }

    pub(super) fn look_up_robots(&mut self, origin: Origin) {
        if self.lookups.is_missing_host(&origin, self.now()) {
            let view = RobotsView::Refused(FetchOutcome::NoSuchHost);
            return self.robots_known(&origin, view, false);
        }
        if !self.lookups.begin(&origin) {
            return;
        }
        let politeness = self.runtime.gate.politeness.clone();
        self.spawn(async move {
            let known = look_up(politeness.as_ref(), &origin).await.map(Box::new);
            Input::RobotsLookedUp(origin, known)
        });
    }

    pub(super) fn on_robots_looked_up(
        &mut self,
        origin: Origin,
        known: Result<Box<(Option<RobotsRecord>, SiteState)>, StoreError>,
    ) {
        self.lookups.end(&origin);
        let site = origin.site();
        self.note_call(StoreCall::Robots, &known);
        let Ok(known) = known else { return self.bench.ask_at(&site, self.store_retry_at()) };
        let (record, state) = *known;
        if self.bench.is_empty(&site) {
            return self.bench.tidy(&site);
        }
        let site_queue = self.bench.existing(&site);
        let ordered_at = site_queue.and_then(|site_queue| site_queue.robots_forgotten.flatten());
        let ordered_at = ordered_at.max(state.orders.robots_forgotten);
        let record = record.filter(|record| !record.is_forgotten(ordered_at));
        match self.runtime.gate.view(record.as_ref(), Some(&state)) {
            RobotsView::Fetch => {
                self.lookups.begin(&origin);
                let robots_fetch = RobotsFetch::new(origin, record);
                let request = robots_fetch.request();
                let job = self.jobs.add(Work::Robots(Box::new(robots_fetch)));
                self.queue_internal_fetch(job, request);
            }
            view => self.robots_known(&origin, view, false),
        }
        self.bench.ask_at(&site, self.now());
    }

    pub(super) fn on_internal_outcome(&mut self, job: JobKey, outcome: &Outcome) {
        let now = self.now();
        match self.jobs.get_mut(job) {
            Some(Work::Robots(robots_fetch)) => {
                let origin = robots_fetch.origin.clone();
                match robots_fetch.step(outcome, now) {
                    RobotsStep::Fetch(request) => {
                        let site = request.url.site();
                        self.queue_internal_fetch(job, request);
                        self.wake(&site);
                    }
                    RobotsStep::Learnt(record) => {
                        self.jobs.remove(job);
                        self.learnt(&origin, record);
                        let no_answer = outcome.was_sent && outcome.answer.is_none();
                        if no_answer && outcome.happened.blame() == Blame::Site {
                            self.fail_with_robots(&origin, &outcome.happened);
                        }
                    }
                    RobotsStep::Refused(happened) => {
                        self.jobs.remove(job);
                        self.lookups.end(&origin);
                        if happened == FetchOutcome::NoSuchHost {
                            self.lookups.note_missing_host(&origin, now);
                        }
                        self.robots_known(&origin, RobotsView::Refused(happened), false);
                    }
                }
            }
            Some(Work::Probe(site)) => {
                let site = site.clone();
                self.jobs.remove(job);
                self.bench.ask_at(&site, now);
            }
            _ => {}
        }
    }

    /// The mark that a site gets for the outcome of an internal fetch's request.
    pub(super) fn internal_fetch_mark(&self, job: JobKey, happened: &FetchOutcome) -> Mark {
        match self.jobs.get(job) {
            Some(Work::Probe(_)) => happened.probe_mark(),
            Some(Work::Robots(robots_fetch))
                if happened.mark() == Mark::Failed && robots_fetch.last_failure().is_some() =>
            {
                Mark::RobotsFailed
            }
            _ => happened.mark(),
        }
    }

    /// Notes what a permit of the site said when its robots.txt was requested under it.
    pub(super) fn robots_asked_for(&mut self, job: JobKey, site: &Site, permit: &Permit) {
        if let Some(Work::Robots(robots_fetch)) = self.jobs.get_mut(job)
            && robots_fetch.origin.site() == *site
        {
            robots_fetch.note_site(permit.recoveries, permit.robots_forgotten);
        }
    }

    /// The wait of a site may be over: its breaker closed or opened, or an operator gave an order. It asks the gate
    /// again, and the source hands it out again. A robots.txt that could not be read is looked up again, because it is
    /// now read before the site's next page, whatever its own back-off.
    pub(super) fn look_again_at(&mut self, site: &Site) {
        let now = self.now();
        self.supply.open(site, now);
        let Some(site_queue) = self.bench.existing(site) else { return };
        site_queue.forget_unread(None);
        if matches!(site_queue.standing, SiteQueueState::Asks) {
            self.bench.ask_at(site, now);
        }
    }

    /// Whether an internal fetch found that its host does not exist, and the URLs of such a host fail. The host must be
    /// that of the URLs themselves, and must never have answered.
    pub(super) fn found_no_host(&self, job: JobKey, permit: &Permit, found: &FetchOutcome) -> bool {
        let Some(Work::Robots(robots_fetch)) = self.jobs.get(job) else { return false };
        *found == FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName))
            && self.runtime.gate.rules.missing_hosts_fail
            && permit.last_served.is_none()
            && robots_fetch.is_first_contact()
    }

    /// Drops an internal fetch that reads this site's own robots.txt: the next owner of its pages reads it. Returns
    /// false for any other internal fetch, which others wait for.
    pub(super) fn forget_own_fetch(&mut self, site: &Site, job: JobKey) -> bool {
        let Some(Work::Robots(robots_fetch)) = self.jobs.get(job) else { return false };
        if robots_fetch.origin.site() != *site {
            return false;
        }
        self.lookups.end(&robots_fetch.origin);
        self.jobs.remove(job);
        true
    }

    /// An internal fetch failed because of a fault of this program, which says nothing about the site: it is repeated
    /// later.
    pub(super) fn internal_fetch_failed(&mut self, job: JobKey, reason: &str) {
        let site = match self.jobs.remove(job) {
            Some(Work::Robots(robots_fetch)) => {
                self.lookups.end(&robots_fetch.origin);
                robots_fetch.origin.site()
            }
            Some(Work::Probe(site)) => site,
            _ => return,
        };
        error!(%site, reason, "internal error: robots.txt or the probe is requested again");
        self.bench.ask_at(&site, self.now() + REST);
    }

    /// A robots.txt was read: stores it, and lets the pages that waited for it continue.
    pub(super) fn learnt(&mut self, origin: &Origin, record: RobotsRecord) {
        self.lookups.end(origin);
        if let Some(unreachable) = &record.unreachable {
            let meanwhile = self.runtime.gate.while_robots_are_unreachable();
            let reason = &unreachable.reason;
            warn!(%origin, reason, "robots.txt is unreachable; without a cached copy {meanwhile}");
            self.emit(Event::RobotsUnreachable(origin.clone()));
        }
        let view = self.runtime.gate.view(Some(&record), None);
        self.robots_known(origin, view, true);
        let politeness = self.runtime.gate.politeness.clone();
        let kept = origin.clone();
        self.spawn(async move { Input::Noted(politeness.keep_robots(&kept, &record).await) });
    }

    /// The site is unreachable, so none of the pages that wait for its robots.txt can be fetched. If the door wants
    /// that, they fail.
    fn fail_with_robots(&mut self, origin: &Origin, happened: &FetchOutcome) {
        let site = origin.site();
        let view = self.bench.existing(&site).and_then(|site_queue| site_queue.robots.get(origin));
        let is_blocked = matches!(view, Some(RobotsView::Blocked { .. }));
        if !is_blocked || !self.runtime.gate.rules.robots.pages_fail_with_it {
            return;
        }
        self.begin_all(&site);
        let pages = self.bench.take_pages_beyond(&site, 0);
        let (of_it, others): (Vec<QueuedRequest>, Vec<QueuedRequest>) = pages
            .into_iter()
            .rev()
            .partition(|item| item.request.obeys_robots && item.request.url.origin() == *origin);
        self.park(&site, others, self.now());
        for item in of_it {
            let why = self.why(&site, &item);
            self.answer(&item, happened.clone(), why, true);
        }
    }

    pub(super) fn robots_known(&mut self, origin: &Origin, view: RobotsView, just_read: bool) {
        let now = self.now();
        let site = origin.site();
        let Some(site_queue) = self.bench.existing(&site) else { return };
        site_queue.follows_robots |= just_read && view.robots().is_some();
        site_queue.robots.insert(origin.clone(), view);
        site_queue.robots_known_at.get_or_insert(now);
        self.wake(&site);
    }
}

/// What is known about a robots.txt. If it could not be read, the state of its site decides whether it is read now.
async fn look_up(
    politeness: &dyn Politeness,
    origin: &Origin,
) -> Result<(Option<RobotsRecord>, SiteState), StoreError> {
    let record = politeness.robots(origin).await?;
    let state = match &record {
        Some(RobotsRecord { unreachable: Some(_), .. }) => {
            politeness.look(&origin.site()).await?.0.unwrap_or_default()
        }
        _ => SiteState::default(),
    };
    Ok((record, state))
}
