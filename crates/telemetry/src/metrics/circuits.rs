//! The open breakers that this process knows of.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum number of open breakers that are tracked; further ones are ignored.
const MAX_OPEN: usize = 10_000;
/// A breaker is forgotten if nothing is heard of it for this long after its probe was due. Then no job of this process
/// waits for its site any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Tracks open breakers.
#[derive(Default)]
pub(super) struct Circuits {
    open: Mutex<HashMap<Site, Open>>,
}

#[derive(Clone, Copy)]
struct Open {
    since: Instant,
    probe_due: Instant,
}

/// A summary of the open breakers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCircuits {
    /// The number of open breakers.
    pub count: usize,
    /// How long the breaker that opened first has been open.
    pub longest: Duration,
}

impl Circuits {
    /// A breaker opened, or opened again.
    pub(super) fn opened(&self, site: &Site, next_probe_in: Duration, now: Instant) {
        let mut open = self.open.lock();
        let probe_due = now + next_probe_in;
        if let Some(known) = open.get_mut(site) {
            known.probe_due = probe_due;
        } else if open.len() < MAX_OPEN {
            open.insert(site.clone(), Open { since: now, probe_due });
        }
    }

    /// A breaker closed.
    pub(super) fn closed(&self, site: &Site) {
        self.open.lock().remove(site);
    }

    /// Whether the breaker of a site is known to be open.
    pub(super) fn knows(&self, site: &Site) -> bool {
        self.open.lock().contains_key(site)
    }

    /// A page was requested at `set_out`. If the breaker of its site opened before that, a probe of another process has
    /// closed it since.
    pub(super) fn asked(&self, site: &Site, set_out: Instant) {
        let mut open = self.open.lock();
        if open.get(site).is_some_and(|known| known.since < set_out) {
            open.remove(site);
        }
    }

    pub(super) fn look(&self, now: Instant) -> OpenCircuits {
        let mut open = self.open.lock();
        open.retain(|_, known| now < known.probe_due + FORGOTTEN_AFTER);
        let ages = open.values().map(|known| now.saturating_duration_since(known.since));
        OpenCircuits { count: open.len(), longest: ages.max().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_breaker_is_open_until_something_shows_that_it_is_not() {
        let circuits = Circuits::default();
        let t = Instant::now();
        let a = Site::parse("a.test").unwrap();
        let b = Site::parse("b.test").unwrap();
        let expect = |at: Instant, count, longest| {
            assert_eq!(circuits.look(at), OpenCircuits { count, longest });
        };
        circuits.opened(&a, 30 * S, t);
        circuits.opened(&b, 30 * S, t + S);
        circuits.opened(&a, 60 * S, t + 31 * S);
        expect(t + 40 * S, 2, 40 * S);
        circuits.asked(&a, t - S); // It was under way when the breaker opened.
        expect(t + 40 * S, 2, 40 * S);
        circuits.asked(&a, t + 39 * S);
        expect(t + 40 * S, 1, 39 * S);
        circuits.closed(&b);
        expect(t + 40 * S, 0, Duration::ZERO);
    }

    #[test]
    fn one_that_nobody_waits_for_is_forgotten_at_last() {
        let circuits = Circuits::default();
        let t = Instant::now();
        circuits.opened(&Site::parse("a.test").unwrap(), 30 * S, t);
        assert_eq!(circuits.look(t + 629 * S).count, 1);
        assert_eq!(circuits.look(t + 630 * S).count, 0);
    }
}
