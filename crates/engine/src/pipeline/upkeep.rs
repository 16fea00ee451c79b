//! What an instance does periodically: it renews its lease and sweeps old state.

use std::time::Duration;

use tokio::time::Instant;

/// How often idle sites are swept from the politeness store.
const SWEEP_EVERY: Duration = Duration::from_secs(300);

/// The lease of this instance and the times of its upkeep, by the local clock.
pub(super) struct Upkeep {
    is_renewing: bool,
    renew_at: Instant,
    /// After this, the instance neither dispatches nor settles.
    lease_good_until: Instant,
    sweep_at: Instant,
}

impl Upkeep {
    /// The instance has no lease before the first renewal.
    pub(super) fn new(now: Instant) -> Upkeep {
        Upkeep {
            is_renewing: false,
            renew_at: now,
            lease_good_until: now,
            sweep_at: now + SWEEP_EVERY,
        }
    }

    /// Whether this instance may dispatch and settle, by its own clock.
    pub(super) fn holds_lease(&self) -> bool {
        Instant::now() < self.lease_good_until
    }

    /// When the next renewal or sweep is due. A renewal that is under way is announced by its end.
    pub(super) fn next_due(&self) -> Instant {
        match self.is_renewing {
            true => self.sweep_at,
            false => self.renew_at.min(self.sweep_at),
        }
    }

    /// Begins a renewal, if it is due and none is under way.
    pub(super) fn begin_renewal(&mut self) -> bool {
        let begins = !self.is_renewing && self.renew_at <= Instant::now();
        self.is_renewing |= begins;
        begins
    }

    /// A renewal returned; the next one is due at `renew_at`.
    pub(super) fn renewal_ended(&mut self, renew_at: Instant) {
        self.is_renewing = false;
        self.renew_at = renew_at;
    }

    /// The store granted the lease for `ttl` from `asked_at` on. The last quarter is a safety margin.
    pub(super) fn lease_granted(&mut self, asked_at: Instant, ttl: Duration) {
        self.lease_good_until = asked_at + ttl - ttl / 4;
    }

    /// Begins a sweep, if it is due.
    pub(super) fn begin_sweep(&mut self) -> bool {
        let now = Instant::now();
        let begins = self.sweep_at <= now;
        if begins {
            self.sweep_at = now + SWEEP_EVERY;
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_due_at_once_while_a_renewal_is_under_way() {
        let started = Instant::now();
        let mut upkeep = Upkeep::new(started);
        assert_eq!(upkeep.next_due(), started);
        assert!(upkeep.begin_renewal());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(upkeep.next_due(), started + SWEEP_EVERY);
        let renew_at = started + Duration::from_secs(10);
        upkeep.renewal_ended(renew_at);
        assert_eq!(upkeep.next_due(), renew_at);
    }
}
