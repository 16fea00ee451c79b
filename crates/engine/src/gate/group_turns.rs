//! Turns of groups that came too far ahead to be waited for with a connection.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::site::Permit;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A turn that no request of its group used for this long is forgotten. No turn is reserved further ahead than a few
/// seconds.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The reserved turn of each group, for the group's next request. Processes that gave their turns up and reserved new
/// ones would push each other's turns further and further ahead, and none would ever send a request.
#[derive(Debug, Default)]
pub(super) struct KeptTurns(Mutex<HashMap<Site, (Permit, Instant)>>);

impl KeptTurns {
    pub(super) fn keep(&self, group: &Site, permit: Permit) {
        let until = Instant::now() + KEPT_FOR;
        let mut kept = self.0.lock();
        kept.retain(|_, (_, until)| Instant::now() < *until);
        kept.insert(group.clone(), (permit, until));
    }

    /// Takes the turn of a group out.
    pub(super) fn take(&self, group: &Site) -> Option<Permit> {
        let kept = self.0.lock().remove(group);
        kept.filter(|(_, until)| Instant::now() < *until).map(|(permit, _)| permit)
    }
}
