//! Records reads of stored pages in the audit log: one entry per caller and minute, because a caller may read thousands
//! of pages per second.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The reads of a caller within this time make one entry.
const WINDOW: Duration = Duration::from_secs(60);

/// Reads that are not in the audit log yet, by caller. Only operators add callers, so there are few.
pub(crate) struct CachedReads {
    clock: Clock,
    callers: Mutex<BTreeMap<String, Reads>>,
}

struct Reads {
    began: Instant,
    count: u64,
    last: Time,
    /// The address of the last one.
    from: String,
}

impl CachedReads {
    pub(crate) fn new(clock: Clock) -> CachedReads {
        CachedReads { clock, callers: Mutex::default() }
    }

    /// Records that a caller read a stored page.
    pub(crate) fn note(&self, caller: &str, from: &str) {
        let at = self.clock.wall();
        let mut callers = self.callers.lock();
        if let Some(reads) = callers.get_mut(caller) {
            reads.count += 1;
            reads.last = at;
            from.clone_into(&mut reads.from);
            return;
        }
        let from = from.to_owned();
        let reads = Reads { began: Instant::now(), count: 1, last: at, from };
        callers.insert(caller.to_owned(), reads);
    }

    /// The entries to write now.
    pub(crate) fn due(&self, all: bool) -> Vec<AuditEntry> {
        let mut entries = Vec::new();
        self.callers.lock().retain(|caller, reads| {
            let is_due = all || reads.began.elapsed() >= WINDOW;
            if is_due {
                entries.push(reads.entry(caller));
            }
            !is_due
        });
        entries
    }
}

impl Reads {
    fn entry(&self, caller: &str) -> AuditEntry {
        let pages = if self.count == 1 { "page" } else { "pages" };
        AuditEntry {
            at: self.last,
            caller: Some(caller.to_owned()),
            action: "read_stored_pages".to_owned(),
            detail: format!("{} {pages}", self.count),
            from: self.from.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_reads_of_a_minute_are_one_entry_per_caller() {
        let reads = CachedReads::new(Clock::system());
        for _ in 0..1_000 {
            reads.note("anna", "10.0.0.1");
        }
        reads.note("bert", "10.0.0.2");
        assert!(reads.due(false).is_empty());
        tokio::time::advance(WINDOW).await;
        let entries = reads.due(false);
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.caller.as_deref().unwrap(), entry.detail.as_str()))
            .collect();
        assert_eq!(told, [("anna", "1000 pages"), ("bert", "1 page")]);
        assert!(reads.due(true).is_empty());
        reads.note("anna", "10.0.0.1");
        assert_eq!(reads.due(true).len(), 1, "a stop writes the rest");
    }
}
