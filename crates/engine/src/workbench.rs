//! The workbench: what waits in memory, site by site, and when each site is next due.
//!
//! A site that is not due costs no task: it is an entry in a heap. It knows nothing of stores, robots or
//! the web; time is an argument.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use fetchwell_policy::site::Permit;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use crate::gate::RobotsView;
use crate::web::Request;

/// Names a job within the pipeline.
pub type JobKey = u64;

/// Numbers the flights of a pipeline.
pub type FlightNumber = u64;

/// A request that waits for its site.
#[derive(Debug)]
pub struct Item {
    /// Whose it is.
    pub job: JobKey,
    /// What to ask for.
    pub request: Request,
    /// When it came here.
    pub since: Time,
    /// When its robots.txt was known.
    pub robots_known_at: Option<Time>,
    /// The engine's own: goes before pages, and is never handed back.
    pub is_errand: bool,
}

/// Where a room stands.
#[derive(Debug, Default)]
pub enum Standing {
    /// Something else must happen first: a lookup, or a request under way.
    #[default]
    Waits,
    /// Asks the gate at its time.
    Asks,
    /// Has asked, and waits for the verdict.
    Asking,
    /// Holds a permit for its time.
    Holds {
        /// The permit.
        permit: Permit,
        /// Its time, by our clock.
        at: Time,
    },
}

/// All that waits for one site.
#[derive(Debug, Default)]
pub struct Room {
    /// Where it stands.
    pub standing: Standing,
    /// What is known of the robots.txt of each origin of the site; absent: not looked up yet.
    pub robots: BTreeMap<Origin, RobotsView>,
    /// The next page may follow its robots.txt at once.
    pub follows_robots: bool,
    /// Requests under way.
    pub in_flight: usize,
    /// The flight whose head has not been written yet: until it is, no other slot is asked for.
    pub unspent: Option<FlightNumber>,
    errands: VecDeque<Item>,
    /// One queue a group, taken in turn, so that no group holds up another.
    groups: VecDeque<(Option<String>, VecDeque<Item>)>,
    pages: usize,
    /// Tells the current agenda entry from those that were overtaken.
    appointment: u64,
}

impl Room {
    /// The next request to go, errands first.
    pub fn next(&self) -> Option<&Item> {
        self.errands.front().or_else(|| self.groups.front()?.1.front())
    }

    /// Takes the next request out.
    pub fn pop(&mut self) -> Option<Item> {
        if let Some(errand) = self.errands.pop_front() {
            return Some(errand);
        }
        let (group, mut queue) = self.groups.pop_front()?;
        let item = queue.pop_front()?;
        self.pages -= 1;
        if !queue.is_empty() {
            self.groups.push_back((group, queue));
        }
        Some(item)
    }

    /// Puts a request in; `first` before all others of its kind.
    pub fn push(&mut self, item: Item, group: Option<&str>, first: bool) {
        if item.is_errand {
            return self.errands.push_back(item);
        }
        self.pages += 1;
        let place = self.groups.iter().position(|(name, _)| name.as_deref() == group);
        let place = place.unwrap_or_else(|| {
            self.groups.push_back((group.map(str::to_owned), VecDeque::new()));
            self.groups.len() - 1
        });
        let queue = &mut self.groups[place].1;
        if first { queue.push_front(item) } else { queue.push_back(item) }
    }

    /// Takes out all pages beyond the first `keep`, the latest first.
    pub fn take_beyond(&mut self, keep: usize) -> Vec<Item> {
        let mut taken = Vec::new();
        while self.pages > keep {
            let Some((_, longest)) = self.groups.iter_mut().max_by_key(|(_, queue)| queue.len())
            else {
                break;
            };
            let Some(item) = longest.pop_back() else { break };
            taken.push(item);
            self.pages -= 1;
            self.groups.retain(|(_, queue)| !queue.is_empty());
        }
        taken
    }

    /// The robots.txt of an origin has become known.
    pub fn mark_robots_known(&mut self, origin: &Origin, now: Time) {
        for item in self.groups.iter_mut().flat_map(|(_, queue)| queue) {
            if item.request.url.origin() == *origin {
                item.robots_known_at.get_or_insert(now);
            }
        }
    }

    /// Takes out all that waits for a job.
    fn forget(&mut self, job: JobKey) {
        for (_, queue) in &mut self.groups {
            queue.retain(|item| item.job != job);
        }
        self.groups.retain(|(_, queue)| !queue.is_empty());
        self.pages = self.groups.iter().map(|(_, queue)| queue.len()).sum();
    }

    /// Takes out all errands.
    pub fn take_errands(&mut self) -> Vec<Item> {
        self.errands.drain(..).collect()
    }

    /// Pages that wait.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pages == 0 && self.errands.is_empty()
    }
}

/// A heap of sites by time; overtaken entries are skipped when they come up.
type Agenda = BinaryHeap<Reverse<(Time, u64, Site)>>;

/// All rooms, and when each is next due.
#[derive(Debug, Default)]
pub struct Workbench {
    rooms: HashMap<Site, Room>,
    asks: Agenda,
    slots: Agenda,
    appointments: u64,
}

impl Workbench {
    /// The room of a site; a new one asks the gate at once.
    pub fn room(&mut self, site: &Site, now: Time) -> &mut Room {
        if !self.rooms.contains_key(site) {
            self.rooms.insert(site.clone(), Room::default());
            self.ask_at(site, now);
        }
        self.rooms.entry(site.clone()).or_default()
    }

    /// The room of a site, if anything waits there.
    pub fn existing(&mut self, site: &Site) -> Option<&mut Room> {
        self.rooms.get_mut(site)
    }

    /// The site asks the gate at `at`.
    pub fn ask_at(&mut self, site: &Site, at: Time) {
        if let Some(appointment) = self.appoint(site, Standing::Asks) {
            self.asks.push(Reverse((at, appointment, site.clone())));
        }
    }

    /// The site holds a permit, to be used at `at`.
    pub fn hold(&mut self, site: &Site, permit: Permit, at: Time) {
        if let Some(appointment) = self.appoint(site, Standing::Holds { permit, at }) {
            self.slots.push(Reverse((at, appointment, site.clone())));
        }
    }

    /// The site waits for something to happen.
    pub fn wait(&mut self, site: &Site) {
        self.appoint(site, Standing::Waits);
    }

    /// The site waits for its verdict.
    pub fn await_verdict(&mut self, site: &Site) {
        self.appoint(site, Standing::Asking);
    }

    /// A site that is due to ask.
    pub fn pop_ask(&mut self, now: Time) -> Option<Site> {
        pop_due(&mut self.asks, &self.rooms, now)
    }

    /// A site whose permit is due.
    pub fn pop_slot(&mut self, now: Time) -> Option<Site> {
        pop_due(&mut self.slots, &self.rooms, now)
    }

    /// When the next site is due to ask, and when the next permit is.
    pub fn next_due(&mut self) -> (Option<Time>, Option<Time>) {
        (next_time(&mut self.asks, &self.rooms), next_time(&mut self.slots, &self.rooms))
    }

    /// Drops the room of a site when nothing waits there and nothing is under way.
    pub fn tidy(&mut self, site: &Site) {
        if self.rooms.get(site).is_some_and(|room| room.is_empty() && room.in_flight == 0) {
            self.rooms.remove(site);
        }
    }

    /// Takes out all that waits for a job, wherever it is.
    pub fn forget(&mut self, job: JobKey) {
        for room in self.rooms.values_mut() {
            room.forget(job);
        }
    }

    /// All sites that have a room.
    pub fn sites(&self) -> Vec<Site> {
        self.rooms.keys().cloned().collect()
    }

    fn appoint(&mut self, site: &Site, standing: Standing) -> Option<u64> {
        let room = self.rooms.get_mut(site)?;
        self.appointments += 1;
        room.appointment = self.appointments;
        room.standing = standing;
        Some(self.appointments)
    }
}

fn is_current(rooms: &HashMap<Site, Room>, site: &Site, appointment: u64) -> bool {
    rooms.get(site).is_some_and(|room| room.appointment == appointment)
}

fn next_time(agenda: &mut Agenda, rooms: &HashMap<Site, Room>) -> Option<Time> {
    while let Some(Reverse((at, appointment, site))) = agenda.peek() {
        if is_current(rooms, site, *appointment) {
            return Some(*at);
        }
        agenda.pop();
    }
    None
}

fn pop_due(agenda: &mut Agenda, rooms: &HashMap<Site, Room>, now: Time) -> Option<Site> {
    if next_time(agenda, rooms)? > now {
        return None;
    }
    agenda.pop().map(|Reverse((_, _, site))| site)
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::url::WebUrl;

    use super::*;

    fn item(job: JobKey, is_errand: bool) -> Item {
        let request = Request::page(WebUrl::parse("http://a.test/").unwrap());
        Item { job, request, since: Time::EPOCH, robots_known_at: None, is_errand }
    }

    fn site(name: &str) -> Site {
        Site::parse(name).unwrap()
    }

    #[test]
    fn sites_come_up_in_the_order_of_their_times_and_overtaken_entries_do_not() {
        let mut bench = Workbench::default();
        for (name, at) in [("a.test", 5), ("b.test", 3), ("c.test", 9)] {
            bench.room(&site(name), Time::EPOCH);
            bench.ask_at(&site(name), Time::from_secs(at));
        }
        bench.ask_at(&site("b.test"), Time::from_secs(7));
        assert_eq!(bench.pop_ask(Time::from_secs(4)), None);
        assert_eq!(bench.next_due().0, Some(Time::from_secs(5)));
        let order: Vec<Site> = std::iter::from_fn(|| bench.pop_ask(Time::from_secs(10))).collect();
        assert_eq!(order, [site("a.test"), site("b.test"), site("c.test")]);
    }

    #[test]
    fn groups_take_turns_and_errands_go_first() {
        let mut room = Room::default();
        for (job, group) in [(1, "x"), (2, "x"), (3, "x"), (4, "y")] {
            room.push(item(job, false), Some(group), false);
        }
        room.push(item(9, true), None, false);
        let order: Vec<JobKey> = std::iter::from_fn(|| room.pop()).map(|i| i.job).collect();
        assert_eq!(order, [9, 1, 4, 2, 3]);
        assert!(room.is_empty());
    }

    #[test]
    fn what_is_too_much_comes_from_the_end_of_the_longest_group() {
        let mut room = Room::default();
        for (job, group) in [(1, "x"), (2, "x"), (3, "x"), (4, "y")] {
            room.push(item(job, false), Some(group), false);
        }
        let beyond: Vec<JobKey> = room.take_beyond(2).into_iter().map(|i| i.job).collect();
        assert_eq!((beyond, room.pages()), (vec![3, 2], 2));
    }
}
