//! Turns of groups that are too far ahead for a request to wait for with its connection.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::Permit;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A turn is forgotten if no request of its group uses it for this long.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The reserved turn of each group, for the group's next request. If processes gave up their turns and reserved new
/// ones, they would push each other's turns further and further ahead, and none would ever send a request.
#[derive(Debug, Default)]
pub(super) struct KeptTurns(Mutex<HashMap<Site, (Permit, Instant)>>);

impl KeptTurns {
    /// Keeps a turn that is due after `wait`. If its group may send a burst, it is dropped once the burst has refilled:
    /// used later, the turns of several processes would be added to a full burst.
    pub(super) fn keep(&self, group: &Site, permit: Permit, wait: Duration) {
        let Rate { interval, burst, .. } = permit.rate;
        let lasts = if burst > 1 { interval.saturating_mul(burst).min(KEPT_FOR) } else { KEPT_FOR };
        let until = Instant::now() + wait + lasts;
        let mut kept = self.0.lock();
        kept.retain(|_, (_, until)| Instant::now() < *until);
        kept.insert(group.clone(), (permit, until));
    }

    /// Removes and returns the turn of a group.
    pub(super) fn take(&self, group: &Site) -> Option<Permit> {
        let kept = self.0.lock().remove(group);
        kept.filter(|(_, until)| Instant::now() < *until).map(|(permit, _)| permit)
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::breaker::BreakerRule;
    use fetchwell_policy::site::{SiteState, Verdict};
    use fetchwell_policy::time::Time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_kept_until_the_burst_of_its_group_has_refilled() {
        let rate = Rate::per_second(0.5, 3);
        let mut state = SiteState::default();
        let verdict = state.ask(Time::from_secs(1_000), rate, false, &BreakerRule::default());
        let Verdict::Go(permit) = verdict else { panic!("{verdict:?}") };
        let group = Site::parse("a.test").unwrap();
        for (later, is_kept) in [(8_900, true), (9_100, false)] {
            let kept = KeptTurns::default();
            kept.keep(&group, permit, Duration::from_secs(3));
            tokio::time::sleep(Duration::from_millis(later)).await;
            assert_eq!(kept.take(&group).is_some(), is_kept, "{later} ms later");
            assert!(kept.take(&group).is_none(), "it is taken once");
        }
    }
}
