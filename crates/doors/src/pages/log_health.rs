//! Whether events can be published. URLs wait while they cannot, so an instance whose Kafka stays down is not ready.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published};
use parking_lot::Mutex;
use tokio::time::Instant;

/// An event log, and since when it has failed.
pub struct WatchedLog {
    log: Arc<dyn EventLog>,
    /// Fails when events are not accepted.
    publishing: CallWatch,
    /// Fails when the server does not respond, even with nothing to publish.
    asking: CallWatch,
}

/// Since when calls have failed.
#[derive(Default)]
struct CallWatch(Mutex<CallHistory>);

#[derive(Default)]
struct CallHistory {
    last_success: Option<Instant>,
    /// When the first failed call began, and the error of the latest one.
    failure: Option<(Instant, String)>,
}

impl WatchedLog {
    pub fn new(log: Arc<dyn EventLog>) -> WatchedLog {
        WatchedLog { log, publishing: CallWatch::default(), asking: CallWatch::default() }
    }

    /// Checks whether the server responds.
    pub(super) async fn ask(&self, question: impl Future<Output = Result<(), StoreError>>) {
        drop(self.asking.watch(question).await);
    }

    /// Why nothing could be published for at least this long, if so.
    pub fn away_for(&self, least: Duration) -> Option<String> {
        self.publishing.for_at_least(least).or_else(|| self.asking.for_at_least(least))
    }
}

#[async_trait]
impl EventLog for WatchedLog {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        self.publishing.watch(self.log.publish(events)).await
    }
}

impl CallWatch {
    async fn watch<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let result = call.await;
        let mut history = self.0.lock();
        match &result {
            Ok(_) => *history = CallHistory { last_success: Some(Instant::now()), failure: None },
            Err(fault) => {
                let since = match &history.failure {
                    Some((since, _)) => *since,
                    // This call may have begun before a later one succeeded.
                    None => history.last_success.map_or(begun, |success| success.max(begun)),
                };
                history.failure = Some((since, fault.to_string()));
            }
        }
        drop(history);
        result
    }

    fn for_at_least(&self, least: Duration) -> Option<String> {
        let history = self.0.lock();
        let (since, reason) = history.failure.as_ref()?;
        let elapsed = since.elapsed();
        (elapsed >= least).then(|| format!("{reason} (for {} s)", elapsed.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// How long a log that is away takes to say so.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// A log that is there or away.
    #[derive(Default)]
    struct Switched {
        is_away: AtomicBool,
    }

    #[async_trait]
    impl EventLog for Switched {
        async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
            if self.is_away.load(Ordering::Relaxed) {
                tokio::time::sleep(PATIENCE).await;
                return Err(StoreError::transient("Kafka's topic t at k:9092"));
            }
            Ok(vec![Published::Confirmed; events.len()])
        }
    }

    fn event() -> LogEvent {
        LogEvent { id: "1".to_owned(), key: [0; 32], value: "{}".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_takes_nothing_for_long_is_away_until_it_takes_something() {
        let switched = Arc::new(Switched::default());
        let log = WatchedLog::new(switched.clone());
        log.publish(&[event()]).await.unwrap();
        switched.is_away.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(log.away_for(LIMIT), None, "not for long enough yet");
            // The wait for an answer counts, too.
            log.publish(&[event()]).await.unwrap_err();
        }
        let reason = log.away_for(LIMIT).unwrap();
        assert!(reason.contains("k:9092") && reason.contains("for 30 s"), "{reason}");
        switched.is_away.store(false, Ordering::Relaxed);
        log.publish(&[event()]).await.unwrap();
        assert_eq!(log.away_for(Duration::ZERO), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_counts_though_an_earlier_call_fails_after_it() {
        let switched = Arc::new(Switched::default());
        let log = WatchedLog::new(switched.clone());
        switched.is_away.store(true, Ordering::Relaxed);
        let success = async {
            tokio::time::sleep(PATIENCE / 2).await;
            switched.is_away.store(false, Ordering::Relaxed);
            log.publish(&[event()]).await.unwrap();
        };
        let events = [event()];
        let (failure, ()) = tokio::join!(log.publish(&events), success);
        failure.unwrap_err();
        assert_eq!(log.away_for(PATIENCE), None);
        assert!(log.away_for(PATIENCE / 2).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_away_though_nothing_is_published() {
        let log = WatchedLog::new(Arc::new(Switched::default()));
        log.ask(async { Err(StoreError::transient("no answer")) }).await;
        tokio::time::advance(LIMIT).await;
        // Where there is nothing to publish, nothing else could tell.
        assert!(log.away_for(LIMIT).unwrap().contains("no answer"));
        log.ask(async { Ok(()) }).await;
        assert_eq!(log.away_for(Duration::ZERO), None);
    }
}
