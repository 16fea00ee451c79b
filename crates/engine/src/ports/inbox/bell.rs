//! Tells those who wait for results that there are some, within this process.
//!
//! It only wakes: whoever is woken looks into the store, and looks there from time to time anyway, since
//! another process may have stored the result.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// One bell for all callers. Clones are the same bell.
#[derive(Clone, Default)]
pub struct Bell {
    listeners: Arc<Mutex<HashMap<String, watch::Sender<()>>>>,
}

impl Bell {
    /// Hears from now on when this caller has a new result.
    pub fn listen(&self, caller: &str) -> watch::Receiver<()> {
        let mut listeners = self.lock();
        // Callers that nobody listens for any more need no entry.
        listeners.retain(|name, sender| name == caller || sender.receiver_count() > 0);
        listeners.entry(caller.to_owned()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// This caller has a new result.
    pub fn ring(&self, caller: &str) {
        if let Some(sender) = self.lock().get(caller) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.listeners.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_is_heard_by_its_caller_alone_and_not_forgotten() {
        let bell = Bell::default();
        let mut a = bell.listen("a");
        let b = bell.listen("b");
        bell.ring("a");
        a.changed().await.unwrap();
        assert!(!b.has_changed().unwrap());
        drop((a, b));
        let c = bell.listen("c");
        assert_eq!(bell.lock().len(), 1);
        drop(c);
    }
}
