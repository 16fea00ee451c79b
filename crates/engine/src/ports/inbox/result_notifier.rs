//! Wakes requests in this process that wait for results.
//!
//! It carries no data: a woken request reads the store. It also reads the store periodically, since another process may
//! have stored the result.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Notifies listeners per caller. Clones share the listeners.
#[derive(Clone, Default)]
pub struct ResultNotifier {
    listeners: Arc<Mutex<HashMap<String, watch::Sender<()>>>>,
}

impl ResultNotifier {
    /// Subscribes to new results of this caller.
    pub fn listen(&self, caller: &str) -> watch::Receiver<()> {
        let mut listeners = self.listeners.lock();
        // Drop entries without listeners.
        listeners.retain(|name, sender| name == caller || sender.receiver_count() > 0);
        listeners.entry(caller.to_owned()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Signals that this caller has a new result.
    pub fn notify(&self, caller: &str) {
        if let Some(sender) = self.listeners.lock().get(caller) {
            sender.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_is_heard_by_its_caller_alone_and_not_forgotten() {
        let notifier = ResultNotifier::default();
        let mut a = notifier.listen("a");
        let b = notifier.listen("b");
        notifier.notify("a");
        a.changed().await.unwrap();
        assert!(!b.has_changed().unwrap());
        drop((a, b));
        let c = notifier.listen("c");
        assert_eq!(notifier.listeners.lock().len(), 1);
        drop(c);
    }
}
