//! The audit log: who did what, on what, from where.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{AuditEntry, Inbox};
use fetchwell_engine::ports::oversight::{Acted, Action};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often entries that were collected are written.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of entries in memory, if no store keeps them.
const MOST_IN_MEMORY: usize = 500;

/// The audit log of a store or of a process. Clones are the same log.
#[derive(Clone)]
pub struct AuditLog {
    entries: Entries,
    clock: Clock,
}

#[derive(Clone)]
enum Entries {
    Store(Arc<dyn Inbox>),
    /// In memory, and as lines in the log of the process.
    Process(Arc<Mutex<VecDeque<AuditEntry>>>),
}

impl AuditLog {
    /// An audit log in the store.
    pub fn of_store(inbox: Arc<dyn Inbox>, clock: Clock) -> AuditLog {
        AuditLog { entries: Entries::Store(inbox), clock }
    }

    /// An audit log that ends with this process.
    pub fn of_process(clock: Clock) -> AuditLog {
        AuditLog { entries: Entries::Process(Arc::default()), clock }
    }

    /// Whether it outlives this process.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.entries, Entries::Store(_))
    }

    /// Records an action.
    pub async fn note(
        &self,
        who: &str,
        action: &str,
        detail: String,
        from: &str,
    ) -> Result<(), StoreError> {
        self.write(&[self.entry(who, action, detail, from)]).await
    }

    /// The entry for an action that happens now, to be committed together with the changes of the action.
    pub fn entry(&self, who: &str, action: &str, detail: String, from: &str) -> AuditEntry {
        let caller = Some(who.to_owned());
        let action = action.to_owned();
        let from = from.to_owned();
        AuditEntry { at: self.clock.wall(), caller, action, detail, from }
    }

    /// Records that messages were retried or cancelled; `what` says which ones.
    pub async fn note_act(
        &self,
        who: &str,
        act: Action,
        acted: &Acted,
        what: &str,
        from: &str,
    ) -> Result<(), StoreError> {
        let action = format!("{}_messages", act.as_str());
        let detail = format!("{} done, {} unchanged: {what}", acted.done, acted.left_alone);
        self.note(who, &action, detail, from).await
    }

    /// The latest entries, newest first.
    pub(crate) async fn latest(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        match &self.entries {
            Entries::Store(inbox) => inbox.audit_trail(most).await,
            Entries::Process(entries) => {
                let entries = entries.lock();
                Ok(entries.iter().rev().take(most as usize).cloned().collect())
            }
        }
    }

    /// Writes the entries that `due` returns until `stop`, then those of `due(true)`, which are all that are left.
    /// `what` names them in the log.
    pub(crate) async fn write_due(
        &self,
        due: impl Fn(bool) -> Vec<AuditEntry>,
        what: &str,
        stop: &CancellationToken,
    ) {
        let mut entries = Vec::new();
        let mut is_stopped = false;
        let mut is_failing = false;
        while !is_stopped {
            is_stopped = tokio::time::timeout(WRITE_INTERVAL, stop.cancelled()).await.is_ok();
            // Entries that could not be written are retried before new ones are added, so that the list does not grow.
            if entries.is_empty() || is_stopped {
                entries.extend(due(is_stopped));
            }
            if entries.is_empty() {
                continue;
            }
            match self.write(&entries).await {
                Ok(()) => {
                    entries.clear();
                    is_failing = false;
                }
                Err(fault) => {
                    if !is_failing {
                        warn!("could not write {what} to the audit log: {fault}");
                    }
                    is_failing = true;
                    if !fault.is_transient() {
                        entries.clear();
                    }
                }
            }
        }
    }

    async fn write(&self, new: &[AuditEntry]) -> Result<(), StoreError> {
        match &self.entries {
            Entries::Store(inbox) => inbox.audit(new).await,
            Entries::Process(entries) => {
                for AuditEntry { caller, action, detail, from, .. } in new {
                    let who = caller.as_deref().unwrap_or("somebody");
                    info!("audit: {who} from {from}: {action} {detail}");
                }
                let mut entries = entries.lock();
                entries.extend(new.iter().cloned());
                let surplus = entries.len().saturating_sub(MOST_IN_MEMORY);
                entries.drain(..surplus);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_keeps_the_latest_of_many() {
        let audit = AuditLog::of_process(Clock::system());
        for number in 0..MOST_IN_MEMORY + 3 {
            audit.note("me", "pause_site", number.to_string(), "::1").await.unwrap();
        }
        let latest = audit.latest(2).await.unwrap();
        let details: Vec<&str> = latest.iter().map(|entry| entry.detail.as_str()).collect();
        assert_eq!(details, [format!("{}", MOST_IN_MEMORY + 2), format!("{}", MOST_IN_MEMORY + 1)]);
        assert_eq!(audit.latest(u32::MAX).await.unwrap().len(), MOST_IN_MEMORY);
    }

    #[tokio::test]
    async fn an_act_on_messages_is_written_with_its_counts() {
        let audit = AuditLog::of_process(Clock::system());
        let acted = Acted { done: 2, left_alone: 1, ..Acted::default() };
        audit.note_act("me", Action::Retry, &acted, "a b c", "::1").await.unwrap();
        let latest = audit.latest(1).await.unwrap();
        assert_eq!(latest[0].caller.as_deref(), Some("me"));
        assert_eq!(latest[0].action, "retry_messages");
        assert_eq!(latest[0].detail, "2 done, 1 unchanged: a b c");
    }
}
