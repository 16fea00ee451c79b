//! Failed authentications go to the audit, however many there are: they are gathered, and written once a
//! second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::inbox::{AuditEntry, Inbox};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Entries that are kept until the next second; of more there is one line that says how many.
const MOST: usize = 1_024;
const INTERVAL: Duration = Duration::from_secs(1);

/// Takes entries.
pub(crate) struct AuditLog {
    sender: mpsc::Sender<AuditEntry>,
    left_out: Arc<AtomicU64>,
    clock: Clock,
}

/// Writes them.
pub(crate) struct AuditWriter {
    receiver: mpsc::Receiver<AuditEntry>,
    left_out: Arc<AtomicU64>,
    clock: Clock,
}

/// A log and its writer.
pub(crate) fn audit_log(clock: Clock) -> (AuditLog, AuditWriter) {
    let (sender, receiver) = mpsc::channel(MOST);
    let left_out = Arc::new(AtomicU64::new(0));
    let log = AuditLog { sender, left_out: left_out.clone(), clock: clock.clone() };
    (log, AuditWriter { receiver, left_out, clock })
}

impl AuditLog {
    /// Somebody came without a token that is good.
    pub(crate) fn authentication_failed(&self, from: &str, what: &'static str) {
        let entry = AuditEntry {
            at: self.clock.wall(),
            caller: None,
            action: "authentication_failed".to_owned(),
            detail: what.to_owned(),
            from: from.to_owned(),
        };
        if self.sender.try_send(entry).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AuditWriter {
    /// Writes until it is told to stop, and then what is left.
    pub(crate) async fn run(mut self, inbox: Arc<dyn Inbox>, stop: CancellationToken) {
        let mut entries = Vec::new();
        let mut stopped = false;
        while !stopped {
            stopped = tokio::time::timeout(INTERVAL, stop.cancelled()).await.is_ok();
            self.gather(&mut entries);
            if entries.is_empty() {
                continue;
            }
            match inbox.audit(&entries).await {
                Ok(()) => entries.clear(),
                // They stay for the next second; there is room for only so many.
                Err(fault) => warn!("the audit can't be written now: {fault}"),
            }
        }
    }

    fn gather(&mut self, entries: &mut Vec<AuditEntry>) {
        while entries.len() < MOST
            && let Ok(entry) = self.receiver.try_recv()
        {
            entries.push(entry);
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            entries.push(AuditEntry {
                at: self.clock.wall(),
                caller: None,
                action: "authentication_failed".to_owned(),
                detail: format!("and {left_out} more, of which no more was kept"),
                from: String::new(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_too_many_there_is_one_line() {
        let (log, mut writer) = audit_log(Clock::system());
        for _ in 0..MOST + 7 {
            log.authentication_failed("192.0.2.1", "no token");
        }
        let mut entries = Vec::new();
        writer.gather(&mut entries);
        assert_eq!(entries.len(), MOST + 1);
        assert!(entries[MOST].detail.contains("and 7 more"));
        writer.gather(&mut entries);
        assert_eq!(entries.len(), MOST + 1);
    }
}
