//! Whether events can be published. URLs wait while they can't, so an instance whose Kafka stays away is not ready.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::{Event, EventLog, Published, StoreFault};
use tokio::time::Instant;

/// A log, and since when it fails.
pub(super) struct WatchedLog {
    log: Arc<dyn EventLog>,
    /// Events are not taken.
    publishing: Failing,
    /// The server does not answer, though there may be nothing to publish.
    asking: Failing,
}

/// Since when something fails, and why it did at last.
#[derive(Default)]
struct Failing(Mutex<Option<(Instant, String)>>);

impl WatchedLog {
    pub(super) fn new(log: Arc<dyn EventLog>) -> WatchedLog {
        WatchedLog { log, publishing: Failing::default(), asking: Failing::default() }
    }

    /// The server was asked whether it is there.
    pub(super) fn note_answer(&self, answer: &Result<(), StoreFault>) {
        self.asking.note(answer);
    }

    /// Why nothing could be published for at least that long; `None`: it could.
    pub(super) fn away_for(&self, least: Duration) -> Option<String> {
        self.publishing.for_at_least(least).or_else(|| self.asking.for_at_least(least))
    }
}

#[async_trait]
impl EventLog for WatchedLog {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Published>, StoreFault> {
        let published = self.log.publish(events).await;
        self.publishing.note(&published);
        published
    }
}

impl Failing {
    fn note<T>(&self, result: &Result<T, StoreFault>) {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *failing = match result {
            Ok(_) => None,
            Err(fault) => {
                let since = failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                Some((since, fault.to_string()))
            }
        };
    }

    fn for_at_least(&self, least: Duration) -> Option<String> {
        let failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, reason) = failing.as_ref().filter(|(since, _)| since.elapsed() >= least)?;
        Some(format!("{reason} (for {} s)", since.elapsed().as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// A log that is there or away.
    #[derive(Default)]
    struct Switched {
        is_away: AtomicBool,
    }

    #[async_trait]
    impl EventLog for Switched {
        async fn publish(&self, events: &[Event]) -> Result<Vec<Published>, StoreFault> {
            match self.is_away.load(Ordering::Relaxed) {
                true => Err(StoreFault::Unavailable("Kafka's topic t at k:9092".to_owned())),
                false => Ok(vec![Published::Confirmed; events.len()]),
            }
        }
    }

    fn event() -> Event {
        Event { id: "1".to_owned(), key: [0; 32], value: "{}".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_takes_nothing_for_long_is_away_until_it_takes_something() {
        let switched = Arc::new(Switched::default());
        let log = WatchedLog::new(switched.clone());
        log.publish(&[event()]).await.unwrap();
        switched.is_away.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(log.away_for(LIMIT), None, "not for long enough yet");
            log.publish(&[event()]).await.unwrap_err();
            tokio::time::advance(LIMIT / 3).await;
        }
        let reason = log.away_for(LIMIT).unwrap();
        assert!(reason.contains("k:9092") && reason.contains("for 30 s"), "{reason}");
        switched.is_away.store(false, Ordering::Relaxed);
        log.publish(&[event()]).await.unwrap();
        assert_eq!(log.away_for(Duration::ZERO), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_away_though_nothing_is_published() {
        let log = WatchedLog::new(Arc::new(Switched::default()));
        let away = Err(StoreFault::Unavailable("no answer".to_owned()));
        log.note_answer(&away);
        tokio::time::advance(LIMIT).await;
        // Where there is nothing to publish, nothing else could tell.
        assert!(log.away_for(LIMIT).unwrap().contains("no answer"));
        log.note_answer(&Ok(()));
        assert_eq!(log.away_for(Duration::ZERO), None);
    }
}
