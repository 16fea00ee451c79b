//! Turns of groups that are too far ahead for a request to wait for with its connection.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::site::Permit;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A turn is forgotten if no request of its group uses it for this long. Turns are reserved at most a few seconds
/// ahead.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The reserved turn of each group, for the group's next request. If processes gave up their turns and reserved new
/// ones, they would push each other's turns further and further ahead, and none would ever send a request.
#[derive(Debug, Default)]
pub(super) struct KeptTurns(Mutex<HashMap<Site, (Permit, Instant)>>);

impl KeptTurns {
    pub(super) fn keep(&self, group: &Site, permit: Permit) {
        let until = Instant::now() + KEPT_FOR;
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
