//! The audit: who did what, on what, from where.

use std::collections::VecDeque;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{AuditEntry, Inbox};
use parking_lot::Mutex;
use tracing::info;

/// Entries that are kept in memory where no store keeps them.
const MOST_IN_MEMORY: usize = 500;

/// Where it is kept.
#[derive(Clone)]
pub enum Trail {
    /// In a store.
    Store(Arc<dyn Inbox>),
    /// In this process, and as lines of its log.
    Process(Arc<Mutex<VecDeque<AuditEntry>>>),
}

/// Writes entries.
pub(crate) struct Scribe<'a> {
    pub(crate) trail: &'a Trail,
    pub(crate) clock: &'a Clock,
}

impl Scribe<'_> {
    /// Somebody did something.
    pub(crate) async fn note(
        &self,
        who: &str,
        action: &str,
        detail: String,
        from: &str,
    ) -> Result<(), StoreError> {
        self.trail.keep(&[entry(self.clock, who, action, detail, from)]).await
    }
}

/// Writes to the audit log of a store that somebody did something.
pub async fn note(
    inbox: &dyn Inbox,
    clock: &Clock,
    who: &str,
    action: &str,
    detail: String,
    from: &str,
) -> Result<(), StoreError> {
    inbox.audit(&[entry(clock, who, action, detail, from)]).await
}

fn entry(clock: &Clock, who: &str, action: &str, detail: String, from: &str) -> AuditEntry {
    AuditEntry {
        at: clock.wall(),
        caller: Some(who.to_owned()),
        action: action.to_owned(),
        detail,
        from: from.to_owned(),
    }
}

impl Trail {
    /// One that ends with this process.
    pub fn of_process() -> Trail {
        Trail::Process(Arc::default())
    }

    /// The latest entries, the newest first.
    pub(crate) async fn latest(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        match self {
            Trail::Store(inbox) => inbox.audit_trail(most).await,
            Trail::Process(entries) => {
                let entries = entries.lock();
                Ok(entries.iter().rev().take(most as usize).cloned().collect())
            }
        }
    }

    /// Keeps entries.
    pub(crate) async fn keep(&self, new: &[AuditEntry]) -> Result<(), StoreError> {
        match self {
            Trail::Store(inbox) => inbox.audit(new).await,
            Trail::Process(entries) => {
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
        let trail = Trail::of_process();
        let clock = Clock::system();
        let scribe = Scribe { trail: &trail, clock: &clock };
        for number in 0..MOST_IN_MEMORY + 3 {
            scribe.note("me", "pause_site", number.to_string(), "::1").await.unwrap();
        }
        let latest = trail.latest(2).await.unwrap();
        let details: Vec<&str> = latest.iter().map(|entry| entry.detail.as_str()).collect();
        assert_eq!(details, [format!("{}", MOST_IN_MEMORY + 2), format!("{}", MOST_IN_MEMORY + 1)]);
        assert_eq!(trail.latest(u32::MAX).await.unwrap().len(), MOST_IN_MEMORY);
    }
}
