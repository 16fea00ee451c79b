//! Limits the connections of a listener in total and per address, with a few more that are reserved for health checks.
//!
//! When a limit is reached, a new connection replaces an idle one. So a client that opens connections and sends
//! nothing, or sends slowly, does not keep others out. A connection with several requests in progress (HTTP/2) counts
//! as that many, since each holds its own memory.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A connection that was idle for less than this is not replaced: its next request may be in transit.
const SPARED: Duration = Duration::from_secs(1);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// All connections of the listener are in use.
    Full,
    /// All connections that one address may have are in use.
    Address,
}

/// The limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) per_address: usize,
    /// Reserved places beyond `most`. They serve health checks and refuse everything else.
    pub(super) health_checks: usize,
}

/// All connections of a listener.
pub(super) struct Places {
    limits: Limits,
    table: Mutex<Table>,
}

/// The place of a connection; released on drop.
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    refusal: Option<Refusal>,
    closed: CancellationToken,
}

/// A request in progress, during which its connection is not replaced.
pub(super) struct Busy(Arc<Place>);

/// A request in progress for an address behind a trusted proxy.
pub(super) struct Forwarded {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Places {
        Places { limits, table: Mutex::default() }
    }

    /// A place for a new connection. `address` is `None` for a trusted proxy, whose requests are counted by the
    /// addresses that it names.
    pub(super) fn enter(self: &Arc<Places>, address: Option<IpAddr>) -> Place {
        let closed = CancellationToken::new();
        let mut table = self.lock();
        let refusal = self.refusal(&mut table, address);
        if refusal.is_some() && table.reserved.len() >= self.limits.health_checks {
            let oldest = table.reserved.first_key_value().map(|(_, id)| *id);
            table.close(oldest);
        }
        let id = table.add(address, refusal, closed.clone());
        drop(table);
        Place { places: self.clone(), id, refusal, closed }
    }

    /// Counts a request in progress for an address that a trusted proxy named.
    pub(super) fn begin_for(self: &Arc<Places>, address: IpAddr) -> Result<Forwarded, Refusal> {
        let mut table = self.lock();
        if !self.has_room(&mut table, address) {
            return Err(Refusal::Address);
        }
        table.addresses.entry(address).or_default().held += 1;
        Ok(Forwarded { places: self.clone(), address })
    }

    /// Closes one connection that is not in use, if there is one.
    pub(super) fn close_one(&self) {
        let mut table = self.lock();
        let reserved = table.reserved.first_key_value();
        let oldest = reserved.or(table.idle.first_key_value()).map(|(_, id)| *id);
        table.close(oldest);
    }

    fn refusal(&self, table: &mut Table, address: Option<IpAddr>) -> Option<Refusal> {
        if address.is_some_and(|address| !self.has_room(table, address)) {
            return Some(Refusal::Address);
        }
        let oldest = table.idle.first_key_value().map(|(_, id)| *id);
        let has_room = table.regular < self.limits.most || table.close_if_idle(oldest);
        (!has_room).then_some(Refusal::Full)
    }

    fn has_room(&self, table: &mut Table, address: IpAddr) -> bool {
        let Some(known) = table.addresses.get(&address) else { return true };
        let oldest = known.idle.first().and_then(|at| table.idle.get(at)).copied();
        known.held < self.limits.per_address || table.close_if_idle(oldest)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Place {
    /// Why all requests except health checks are refused on this connection, if they are.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Returns when the connection must close to make room for another one.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Restarts the idle time after a request that does not count against the limits.
    pub(super) fn touch(&self) {
        let mut table = self.places.lock();
        if table.connections.get(&self.id).is_some_and(|one| one.under_way == 0) {
            table.wake(self.id);
            table.rest(self.id);
        }
    }

    /// Counts a request as in progress until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Place>) -> Result<Busy, Refusal> {
        let mut table = self.places.lock();
        let one = table.connections.get(&self.id);
        let known = one.map(|one| (one.under_way, one.address));
        if let Some((1.., address)) = known {
            if let Some(refusal) = self.places.refusal(&mut table, address) {
                return Err(refusal);
            }
            table.take(address);
        }
        table.wake(self.id);
        if let Some(one) = table.connections.get_mut(&self.id) {
            one.under_way += 1;
        }
        drop(table);
        Ok(Busy(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = self.0.places.lock();
        let Some(one) = table.connections.get_mut(&self.0.id) else { return };
        one.under_way = one.under_way.saturating_sub(1);
        let left = one.under_way;
        let address = one.address;
        match left {
            0 => table.rest(self.0.id),
            _ => table.give_back(address),
        }
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        self.places.lock().release(self.address);
    }
}

/// Each connection is in exactly one of three states: in use, idle, or in a reserved place.
#[derive(Default)]
struct Table {
    /// A logical clock: a smaller number is an earlier time.
    now: u64,
    connections: HashMap<u64, Held>,
    /// Connections that are not in reserved places, plus their concurrent requests beyond the first.
    regular: usize,
    addresses: HashMap<IpAddr, Address>,
    /// Connections without a request in progress, by the time when they became idle.
    idle: BTreeMap<u64, u64>,
    /// Connections in reserved places, by the time of their last request.
    reserved: BTreeMap<u64, u64>,
}

struct Held {
    address: Option<IpAddr>,
    is_reserved: bool,
    /// Requests in progress.
    under_way: usize,
    /// Its key in `idle` or `reserved`.
    rests_at: Option<u64>,
    rests_since: Instant,
    closed: CancellationToken,
}

#[derive(Default)]
struct Address {
    /// Its connections, and its requests in progress through trusted proxies.
    held: usize,
    /// Its keys in `Table::idle`.
    idle: BTreeSet<u64>,
}

impl Table {
    fn add(
        &mut self,
        address: Option<IpAddr>,
        refusal: Option<Refusal>,
        closed: CancellationToken,
    ) -> u64 {
        let id = self.tick();
        let is_reserved = refusal.is_some();
        if !is_reserved {
            self.take(address);
        }
        let rests_since = Instant::now();
        let one = Held { address, is_reserved, under_way: 0, rests_at: None, rests_since, closed };
        self.connections.insert(id, one);
        self.rest(id);
        id
    }

    /// The connection becomes idle.
    fn rest(&mut self, id: u64) {
        let at = self.tick();
        let Some(one) = self.connections.get_mut(&id) else { return };
        one.rests_at = Some(at);
        one.rests_since = Instant::now();
        if one.is_reserved {
            self.reserved.insert(at, id);
            return;
        }
        self.idle.insert(at, id);
        if let Some(known) = one.address.and_then(|address| self.addresses.get_mut(&address)) {
            known.idle.insert(at);
        }
    }

    /// The connection is no longer idle.
    fn wake(&mut self, id: u64) {
        let Some(one) = self.connections.get_mut(&id) else { return };
        let Some(at) = one.rests_at.take() else { return };
        self.idle.remove(&at);
        self.reserved.remove(&at);
        if let Some(known) = one.address.and_then(|address| self.addresses.get_mut(&address)) {
            known.idle.remove(&at);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Held> {
        self.wake(id);
        let one = self.connections.remove(&id)?;
        if !one.is_reserved {
            self.give_back(one.address);
        }
        Some(one)
    }

    fn take(&mut self, address: Option<IpAddr>) {
        self.regular += 1;
        if let Some(address) = address {
            self.addresses.entry(address).or_default().held += 1;
        }
    }

    fn give_back(&mut self, address: Option<IpAddr>) {
        self.regular = self.regular.saturating_sub(1);
        if let Some(address) = address {
            self.release(address);
        }
    }

    /// Lowers the count of an address by one.
    fn release(&mut self, address: IpAddr) {
        if let Entry::Occupied(mut known) = self.addresses.entry(address) {
            known.get_mut().held = known.get().held.saturating_sub(1);
            if known.get().held == 0 {
                known.remove();
            }
        }
    }

    fn close(&mut self, id: Option<u64>) {
        if let Some(one) = id.and_then(|id| self.remove(id)) {
            one.closed.cancel();
        }
    }

    /// Closes a connection if it was idle for long enough. Returns whether it did.
    fn close_if_idle(&mut self, id: Option<u64>) -> bool {
        let one = id.and_then(|id| self.connections.get(&id));
        let is_long = one.is_some_and(|one| one.rests_since.elapsed() >= SPARED);
        if is_long {
            self.close(id);
        }
        is_long
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVED: usize = 3;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    fn places(most: usize, per_address: usize) -> Arc<Places> {
        Arc::new(Places::new(Limits { most, per_address, health_checks: RESERVED }))
    }

    fn enter(places: &Arc<Places>, last: u8) -> Arc<Place> {
        Arc::new(places.enter(address(last)))
    }

    fn begin(place: &Arc<Place>) -> Busy {
        place.begin().unwrap_or_else(|refusal| panic!("{refusal:?}"))
    }

    fn is_closed(place: &Place) -> bool {
        place.closed.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_use_is_kept_and_more_is_refused() {
        let places = places(2, 2);
        let first = enter(&places, 1);
        let busy = begin(&first);
        let second = enter(&places, 2);
        let also_busy = begin(&second);
        tokio::time::advance(SPARED * 100).await;
        let third = enter(&places, 3);
        assert_eq!(third.refusal(), Some(Refusal::Full));
        assert!(!is_closed(&first) && !is_closed(&second));
        // What ends gives its place to whoever comes next.
        drop((busy, first));
        assert_eq!(enter(&places, 3).refusal(), None);
        drop((also_busy, second, third));
        let table = places.lock();
        assert!(table.connections.is_empty() && table.idle.is_empty(), "nothing is left");
        assert!(table.addresses.is_empty() && table.reserved.is_empty() && table.regular == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_gives_way_and_a_fresh_one_does_not() {
        let places = places(2, 2);
        let first = enter(&places, 1);
        tokio::time::advance(SPARED).await;
        let second = enter(&places, 2);
        let third = enter(&places, 3);
        assert_eq!((third.refusal(), is_closed(&first), is_closed(&second)), (None, true, false));
        assert_eq!(enter(&places, 4).refusal(), Some(Refusal::Full), "the others are fresh");
        // A request that is over makes a connection as idle as a new one.
        tokio::time::advance(SPARED).await;
        drop(begin(&second));
        let fifth = enter(&places, 5);
        assert_eq!((fifth.refusal(), is_closed(&third), is_closed(&second)), (None, true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_over_its_limit_harms_no_other() {
        let places = places(10, 2);
        let mine = [enter(&places, 1), enter(&places, 1)];
        let busy = mine.each_ref().map(begin);
        let other = enter(&places, 2);
        tokio::time::advance(SPARED).await;
        assert_eq!(enter(&places, 1).refusal(), Some(Refusal::Address));
        assert_eq!(enter(&places, 3).refusal(), None);
        assert!(!is_closed(&other), "another's idle connection does not give way for it");
        let [one, _another] = busy;
        drop(one);
        tokio::time::advance(SPARED).await;
        assert_eq!(enter(&places, 1).refusal(), None, "its own idle one does");
        assert_eq!((is_closed(&mine[0]), is_closed(&mine[1])), (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_last_always_has_a_reserved_place() {
        let places = places(1, 1);
        let first = enter(&places, 1);
        let _busy = begin(&first);
        let reserved: Vec<_> = (0..RESERVED).map(|_| enter(&places, 2)).collect();
        assert!(reserved.iter().all(|one| one.refusal().is_some() && !is_closed(one)));
        // A health check keeps its connection longer than silence does.
        reserved[0].touch();
        let last = enter(&places, 3);
        assert_eq!((last.refusal(), is_closed(&last)), (Some(Refusal::Full), false));
        assert_eq!((is_closed(&reserved[0]), is_closed(&reserved[1])), (false, true));
        assert_eq!(places.lock().reserved.len(), RESERVED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_does_not_count_as_use() {
        let places = places(1, 1);
        let first = enter(&places, 1);
        let busy = begin(&first);
        first.touch();
        tokio::time::advance(SPARED).await;
        assert_eq!(
            enter(&places, 2).refusal(),
            Some(Refusal::Full),
            "another request is under way"
        );
        drop(busy);
        tokio::time::advance(SPARED / 2).await;
        first.touch();
        tokio::time::advance(SPARED / 2).await;
        assert!(enter(&places, 2).refusal().is_some(), "it was used half a second ago");
        tokio::time::advance(SPARED / 2).await;
        assert_eq!((enter(&places, 2).refusal(), is_closed(&first)), (None, true));
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_requests_are_counted_by_their_address() {
        let places = places(10, 2);
        let proxies: Vec<_> = (0..5).map(|_| places.enter(None)).collect();
        assert!(
            proxies.iter().all(|one| one.refusal().is_none()),
            "a proxy has no limit of its own"
        );
        let client = IpAddr::from([198, 51, 100, 1]);
        let first = places.begin_for(client).ok();
        let second = places.begin_for(client).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(places.begin_for(client).err(), Some(Refusal::Address));
        assert!(places.begin_for(IpAddr::from([198, 51, 100, 2])).is_ok());
        drop(first);
        assert!(places.begin_for(client).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_share_a_connection_count_one_by_one() {
        let places = places(10, 3);
        let shared = enter(&places, 1);
        let mut under_way: Vec<Busy> = (0..3).map(|_| begin(&shared)).collect();
        assert_eq!(shared.begin().err(), Some(Refusal::Address));
        assert_eq!(enter(&places, 1).refusal(), Some(Refusal::Address));
        assert_eq!(enter(&places, 2).refusal(), None);
        under_way.pop();
        let again = begin(&shared);
        drop((under_way, again));
        let table = places.lock();
        assert_eq!((table.regular, table.addresses.len(), table.idle.len()), (1, 1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn without_descriptors_one_idle_connection_is_closed_at_a_time() {
        let places = places(10, 10);
        let first = enter(&places, 1);
        let busy = enter(&places, 1);
        let _under_way = begin(&busy);
        places.close_one();
        places.close_one();
        assert_eq!((is_closed(&first), is_closed(&busy)), (true, false));
    }
}
