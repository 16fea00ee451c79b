//! The workbench: what waits in memory, site by site, and when each site is next due.
//!
//! A site that is not due costs no task, only an entry in a heap. A site whose leases have not begun needs no queue
//! either: they wait on its shelf in a compact form. The workbench knows nothing of stores, robots.txt or the web; time
//! is an argument.

mod pending;
mod site_queue;
mod turns;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use fetchwell_policy::site::Permit;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use crate::ports::job::{Lane, LeaseId};

pub use pending::PendingLease;
pub use site_queue::{FlightNumber, JobKey, QueuedRequest, SiteQueue, SiteQueueState};
use turns::Turns;

/// A heap of sites by time. Outdated entries are skipped when they come up.
type Agenda = BinaryHeap<Reverse<(Time, u64, Site)>>;

/// Everything that waits, and when each site is next due.
#[derive(Debug, Default)]
pub struct Workbench {
    places: HashMap<Site, Place>,
    asks: Agenda,
    slots: Agenda,
    appointments: u64,
}

/// The state of one site.
#[derive(Debug, Default)]
struct Place {
    /// Distinguishes the current agenda entry from outdated ones.
    appointment: u64,
    /// How late it last asked the gate, in milliseconds, because the limit on concurrent requests was reached.
    overdue_ms: u32,
    /// Leases that have not begun.
    pending: Turns<PendingLease>,
    /// Present while the site is at work. A site without a queue is due to ask.
    site_queue: Option<Box<SiteQueue>>,
}

impl Place {
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.site_queue.as_deref().is_none_or(SiteQueue::is_empty)
    }

    fn is_idle(&self) -> bool {
        self.is_empty() && self.site_queue.as_deref().is_none_or(|queue| queue.in_flight == 0)
    }
}

impl Workbench {
    /// The queue of a site; a new site asks the gate at once.
    pub fn site_queue(&mut self, site: &Site, now: Time) -> &mut SiteQueue {
        self.place(site, now)
            .site_queue
            .get_or_insert_with(|| Box::new(SiteQueue::new(SiteQueueState::Asks)))
    }

    /// The queue of a site that is at work.
    pub fn existing(&mut self, site: &Site) -> Option<&mut SiteQueue> {
        self.places.get_mut(site)?.site_queue.as_deref_mut()
    }

    /// Puts a lease that has not begun on the shelf of its site.
    pub fn add_pending(&mut self, site: &Site, pending_lease: PendingLease, now: Time) {
        let lane = pending_lease.lane().cloned().unwrap_or_default();
        self.place(site, now).pending.push(&lane, pending_lease);
    }

    /// Takes the next pending lease, from the lanes that may send.
    pub fn take_pending(
        &mut self,
        site: &Site,
        may_go: impl Fn(&Lane) -> bool,
    ) -> Option<PendingLease> {
        self.places.get_mut(site)?.pending.pop(may_go)
    }

    /// The lanes with something waiting for a site, on its shelf or in its queue, except the default lane.
    pub fn lanes(&self, site: &Site) -> impl Iterator<Item = &Lane> {
        let place = self.places.get(site);
        let in_queue = place.and_then(|place| place.site_queue.as_deref()).map(SiteQueue::lanes);
        let in_pending = place.map(|place| place.pending.lanes());
        in_pending.into_iter().flatten().chain(in_queue.into_iter().flatten())
    }

    /// Takes leases off a shelf, the latest first, until at most `keep` pages wait there and in the queue.
    pub fn take_pending_beyond(&mut self, site: &Site, keep: usize) -> Vec<PendingLease> {
        let Some(place) = self.places.get_mut(site) else { return Vec::new() };
        let in_queue = place.site_queue.as_deref().map_or(0, SiteQueue::pages);
        place.pending.take_beyond(keep.saturating_sub(in_queue))
    }

    /// Takes out all pages of a queue beyond the first `keep`, the latest first.
    pub fn take_pages_beyond(&mut self, site: &Site, keep: usize) -> Vec<QueuedRequest> {
        self.existing(site).map(|site_queue| site_queue.take_beyond(keep)).unwrap_or_default()
    }

    /// The number of pages that wait for a site, pending and in its queue.
    pub fn pages(&self, site: &Site) -> usize {
        self.places.get(site).map_or(0, |place| {
            place.pending.len() + place.site_queue.as_deref().map_or(0, SiteQueue::pages)
        })
    }

    /// Whether nothing waits for a site.
    pub fn is_empty(&self, site: &Site) -> bool {
        self.places.get(site).is_none_or(Place::is_empty)
    }

    /// The site asks the gate at `at`.
    pub fn ask_at(&mut self, site: &Site, at: Time) {
        if let Some(appointment) = self.appoint(site, SiteQueueState::Asks) {
            self.asks.push(Reverse((at, appointment, site.clone())));
        }
    }

    /// The site holds a permit, to be used at `at`.
    pub fn hold(&mut self, site: &Site, permit: Permit, at: Time) {
        if let Some(appointment) = self.appoint(site, SiteQueueState::Holds { permit, at }) {
            self.slots.push(Reverse((at, appointment, site.clone())));
        }
    }

    /// The site waits for something to happen.
    pub fn wait(&mut self, site: &Site) {
        self.appoint(site, SiteQueueState::Waits);
    }

    /// The site waits for its verdict.
    pub fn await_verdict(&mut self, site: &Site) {
        self.appoint(site, SiteQueueState::Asking);
    }

    /// Takes out a site that is due to ask.
    pub fn pop_ask(&mut self, now: Time) -> Option<Site> {
        let due = next_time(&mut self.asks, &self.places)?;
        let site = pop_due(&mut self.asks, &self.places, now)?;
        if let Some(place) = self.places.get_mut(&site) {
            place.overdue_ms = u32::try_from(now.since(due).as_millis()).unwrap_or(u32::MAX);
        }
        Some(site)
    }

    /// How much later than due a site last asked.
    pub fn overdue(&self, site: &Site) -> Duration {
        let overdue_ms = self.places.get(site).map_or(0, |place| place.overdue_ms);
        Duration::from_millis(overdue_ms.into())
    }

    /// Takes out a site whose permit is due.
    pub fn pop_slot(&mut self, now: Time) -> Option<Site> {
        pop_due(&mut self.slots, &self.places, now)
    }

    /// When the next site is due to ask, and when the next permit is.
    pub fn next_due(&mut self) -> (Option<Time>, Option<Time>) {
        (next_time(&mut self.asks, &self.places), next_time(&mut self.slots, &self.places))
    }

    /// Forgets a site if nothing waits there and nothing is in flight.
    pub fn tidy(&mut self, site: &Site) {
        if self.places.get(site).is_some_and(Place::is_idle) {
            self.places.remove(site);
        }
    }

    /// Takes this lease out, if it is pending.
    pub fn take_pending_lease(&mut self, site: &Site, lease: LeaseId) -> Option<PendingLease> {
        self.places.get_mut(site)?.pending.take_first(|pending_lease| pending_lease.id() == lease)
    }

    /// Takes out all waiting requests of a job, at all sites.
    pub fn forget(&mut self, job: JobKey) -> Vec<QueuedRequest> {
        let site_queues =
            self.places.values_mut().filter_map(|place| place.site_queue.as_deref_mut());
        site_queues.flat_map(|site_queue| site_queue.forget(job)).collect()
    }

    /// All sites with something waiting or in flight, by name.
    pub fn sites(&self) -> Vec<Site> {
        let mut sites: Vec<Site> = self.places.keys().cloned().collect();
        sites.sort_unstable();
        sites
    }

    pub fn sites_count(&self) -> usize {
        self.places.len()
    }

    fn place(&mut self, site: &Site, now: Time) -> &mut Place {
        if !self.places.contains_key(site) {
            self.places.insert(site.clone(), Place::default());
            self.ask_at(site, now);
        }
        self.places.entry(site.clone()).or_default()
    }

    fn appoint(&mut self, site: &Site, standing: SiteQueueState) -> Option<u64> {
        let place = self.places.get_mut(site)?;
        self.appointments += 1;
        place.appointment = self.appointments;
        match (&mut place.site_queue, standing) {
            (Some(site_queue), standing) => site_queue.standing = standing,
            (None, SiteQueueState::Asks) => {} // Every site without a queue asks.
            (site_queue, standing) => *site_queue = Some(Box::new(SiteQueue::new(standing))),
        }
        Some(self.appointments)
    }
}

fn is_current(places: &HashMap<Site, Place>, site: &Site, appointment: u64) -> bool {
    places.get(site).is_some_and(|place| place.appointment == appointment)
}

fn next_time(agenda: &mut Agenda, places: &HashMap<Site, Place>) -> Option<Time> {
    while let Some(Reverse((at, appointment, site))) = agenda.peek() {
        if is_current(places, site, *appointment) {
            return Some(*at);
        }
        agenda.pop();
    }
    None
}

fn pop_due(agenda: &mut Agenda, places: &HashMap<Site, Place>, now: Time) -> Option<Site> {
    if next_time(agenda, places)? > now {
        return None;
    }
    agenda.pop().map(|Reverse((_, _, site))| site)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> Site {
        Site::parse(name).unwrap()
    }

    #[test]
    fn sites_come_up_in_the_order_of_their_times_and_overtaken_entries_do_not() {
        let mut bench = Workbench::default();
        for (name, at) in [("a.test", 5), ("b.test", 3), ("c.test", 9)] {
            bench.site_queue(&site(name), Time::EPOCH);
            bench.ask_at(&site(name), Time::from_secs(at));
        }
        bench.ask_at(&site("b.test"), Time::from_secs(7));
        assert_eq!(bench.pop_ask(Time::from_secs(4)), None);
        assert_eq!(bench.next_due().0, Some(Time::from_secs(5)));
        let order: Vec<Site> = std::iter::from_fn(|| bench.pop_ask(Time::from_secs(10))).collect();
        assert_eq!(order, [site("a.test"), site("b.test"), site("c.test")]);
    }

    #[test]
    fn pending_leases_are_part_of_what_waits_for_a_site() {
        let mut bench = Workbench::default();
        let a = site("a.test");
        for id in 0..4 {
            bench.add_pending(
                &a,
                PendingLease::of(pending::tests::lease(id, None), Time::EPOCH),
                Time::EPOCH,
            );
        }
        assert_eq!(bench.pop_ask(Time::EPOCH), Some(a.clone()));
        bench.site_queue(&a, Time::EPOCH).push(
            site_queue::tests::item(9, false),
            &Lane::default(),
            false,
        );
        assert_eq!((bench.pages(&a), bench.pop_ask(Time::EPOCH)), (5, None));
        let beyond = bench
            .take_pending_beyond(&a, 3)
            .into_iter()
            .map(|pending_lease| pending_lease.open(&a).id);
        assert_eq!((beyond.collect::<Vec<_>>(), bench.pages(&a)), (vec![3, 2], 3));
        bench.site_queue(&a, Time::EPOCH).pop(|_| true);
        bench.tidy(&a);
        assert_eq!(
            bench.take_pending(&a, |_| true).map(|pending_lease| pending_lease.open(&a).id),
            Some(0)
        );
        assert!(!bench.is_empty(&a));
        bench.take_pending(&a, |_| true);
        bench.tidy(&a);
        assert!(bench.sites().is_empty());
    }
}
