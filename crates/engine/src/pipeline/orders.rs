//! Polls for orders of operators, so that they take effect soon.
//!
//! The URLs of a paused site wait in the store, where the site is closed; so do those of a site whose breaker is open.
//! Only an order opens them early, so orders are polled: one query for all sites, however many are paused.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::{debug, info};

use super::scheduler::{Input, Scheduler};
use crate::ports::error::StoreError;
use crate::ports::politeness::{ORDERS_AT_ONCE, RecentOrders};
use crate::store_health::StoreCall;

/// How often orders are polled: an order takes effect within a second.
const LISTEN_EVERY: Duration = Duration::from_millis(400);

/// An order may have a time that is this much earlier than the moment at which it becomes visible.
const NOTED_LATE_BY: Duration = Duration::from_secs(5);

/// The orders seen so far.
pub(super) struct OrdersHeard {
    /// From this time on, by the store's clock, there may be orders that have not been seen.
    since: Time,
    /// The orders seen from then on.
    known: HashMap<Site, Time>,
    next_look: Instant,
    is_listening: bool,
}

impl OrdersHeard {
    /// No order has been seen yet: the first answer contains all that the store reports.
    pub(super) fn new(now: Instant) -> OrdersHeard {
        OrdersHeard {
            since: Time::EPOCH,
            known: HashMap::new(),
            next_look: now,
            is_listening: false,
        }
    }

    /// When to poll next; `None` while a poll is in progress.
    pub(super) fn next_look(&self) -> Option<Instant> {
        (!self.is_listening).then_some(self.next_look)
    }

    /// Takes an answer, and returns the sites with new orders.
    fn heard(&mut self, orders: RecentOrders) -> Vec<Site> {
        let is_all = orders.sites.len() < ORDERS_AT_ONCE;
        let last = orders.sites.last().map_or(orders.now, |(_, at)| *at);
        self.since = if is_all { orders.now - NOTED_LATE_BY } else { last };
        let mut new = Vec::new();
        for (site, at) in orders.sites {
            if self.known.insert(site.clone(), at) != Some(at) {
                new.push(site);
            }
        }
        let since = self.since;
        self.known.retain(|_, at| *at >= since);
        new
    }
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Polls for orders, if that is due.
    pub(super) fn listen_for_orders_when_due(&mut self) {
        if self.orders.is_listening || Instant::now() < self.orders.next_look {
            return;
        }
        self.orders.is_listening = true;
        self.orders.next_look = Instant::now() + LISTEN_EVERY;
        let politeness = self.runtime.gate.politeness.clone();
        let since = self.orders.since;
        self.spawn(async move { Input::OrdersHeard(politeness.orders_since(since).await) });
    }

    /// Whatever a site waits for may be over by order: the source hands it out again, and it asks the gate again.
    pub(super) fn on_orders_heard(&mut self, orders: Result<RecentOrders, StoreError>) {
        self.orders.is_listening = false;
        let ordered = match orders {
            Ok(orders) => self.orders.heard(orders),
            Err(fault) if !fault.is_transient() => {
                return self.store_failed(StoreCall::Look, &fault);
            }
            // Other calls report a store that is unavailable, and the poll is repeated.
            Err(fault) => return debug!(%fault, "could not read the orders of operators"),
        };
        for site in &ordered {
            info!("an operator gave an order for {site}");
            self.look_again_at(site);
        }
        if !ordered.is_empty() {
            self.hear_of_more();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> Site {
        Site::parse(name).unwrap()
    }

    #[test]
    fn an_order_is_new_once_also_where_it_is_told_again() {
        let mut heard = OrdersHeard::new(Instant::now());
        let answer = |now, sites: &[(&str, i64)]| RecentOrders {
            now: Time::from_secs(now),
            sites: sites.iter().map(|(name, at)| (site(name), Time::from_secs(*at))).collect(),
        };
        assert_eq!(
            heard.heard(answer(100, &[("a.test", 40), ("b.test", 99)])),
            [site("a.test"), site("b.test")]
        );
        assert_eq!(heard.since, Time::from_secs(95));
        assert_eq!(heard.heard(answer(101, &[("b.test", 99)])), []);
        assert_eq!(heard.heard(answer(102, &[("a.test", 101), ("b.test", 99)])), [site("a.test")]);
        // A clock that was set back is followed.
        assert_eq!(heard.heard(answer(50, &[])), []);
        assert_eq!(heard.since, Time::from_secs(45));
    }

    #[test]
    fn where_there_are_more_than_are_told_at_once_the_rest_is_asked_for() {
        let mut heard = OrdersHeard::new(Instant::now());
        let at = |number: usize| Time::from_micros(i64::try_from(number).unwrap());
        let sites = (0..ORDERS_AT_ONCE).map(|n| (site(&format!("s{n}.test")), at(n))).collect();
        heard.heard(RecentOrders { now: Time::from_secs(100), sites });
        assert_eq!(heard.since, at(ORDERS_AT_ONCE - 1));
        let rest = vec![
            (site(&format!("s{}.test", ORDERS_AT_ONCE - 1)), at(ORDERS_AT_ONCE - 1)),
            (site("last.test"), Time::from_secs(1)),
        ];
        assert_eq!(
            heard.heard(RecentOrders { now: Time::from_secs(100), sites: rest }),
            [site("last.test")]
        );
        assert_eq!(heard.since, Time::from_secs(95));
    }
}
