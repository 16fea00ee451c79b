//! Concurrent calls share round trips: calls that arrive while a batch is under way go together in the next one.
//!
//! Tasks of the coalescer run the batches. A caller can be cancelled at any time (a client that disconnects), and the
//! other calls of its batch must not notice.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::ports::error::StoreError;
use crate::ports::inbox::Submission;
use futures::FutureExt;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// A batch waits for more calls at most this part of the time that the last batch took.
const SHARE_OF_BATCH_WAITED: u32 = 4;
/// Timers are no finer: a shorter wait would take longer than intended.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// The capacity of the channel; further calls wait in their callers.
const MAX_WAITING: usize = 1_024;

/// The maximum number of calls in a round trip. A politeness store changes this many sites in one request, so a batch
/// needs only one request unless another process changes the same sites.
pub const MAX_PER_ROUND_TRIP: usize = 500;

/// Runs batches of calls.
pub trait RunBatch<Call, T>: Send + Sync + 'static {
    /// Returns one result for each call, in order. A refused call does not affect the others. If the store fails, all
    /// calls fail.
    fn run(&self, batch: Vec<Call>) -> impl Future<Output = Vec<Result<T, StoreError>>> + Send;
}

/// How calls are put into batches.
pub struct BatchRule<Call> {
    /// The number of concurrent batches.
    at_once: usize,
    weight: fn(&Call) -> usize,
    /// The maximum weight of a batch, unless a single call weighs more.
    max_weight: usize,
    /// A batch of this weight does not wait for more calls.
    enough: usize,
}

impl<Call> BatchRule<Call> {
    /// For calls that cost little besides their round trip: sends everything that has arrived, without waiting for
    /// more.
    pub const ROUND_TRIPS: BatchRule<Call> =
        BatchRule { at_once: 1, weight: |_| 1, max_weight: MAX_PER_ROUND_TRIP, enough: 1 };
}

impl BatchRule<Submission> {
    /// For commits. The weight is the number of messages. A large batch writes each index page once for many rows, but
    /// makes a single message wait for about 50 ms. In a batch of 1,024, the commit itself costs little per message.
    /// While the store writes one batch, the next one is prepared.
    pub const SUBMISSIONS: BatchRule<Submission> = BatchRule {
        at_once: 2,
        weight: |submission| submission.messages.len(),
        max_weight: 8_192,
        enough: 1_024,
    };
}

/// Takes calls, and runs them in batches until it is dropped.
pub struct Coalescer<Call, T> {
    waiting: mpsc::Sender<Waiting<Call, T>>,
}

struct Waiting<Call, T> {
    call: Call,
    result: oneshot::Sender<Result<T, StoreError>>,
}

impl<Call: Send + 'static, T: Send + 'static> Coalescer<Call, T> {
    /// Must be called within a tokio runtime.
    pub fn start(
        runner: &Arc<impl RunBatch<Call, T>>,
        rule: BatchRule<Call>,
    ) -> Coalescer<Call, T> {
        let (waiting, receiver) = mpsc::channel(MAX_WAITING);
        let tasks = rule.at_once;
        let arrivals = Arc::new(Mutex::new(Arrivals { rule, receiver, held_over: None }));
        for _ in 0..tasks {
            tokio::spawn(run_batches(runner.clone(), arrivals.clone()));
        }
        Coalescer { waiting }
    }

    /// Returns once the batch of this call has run.
    pub async fn call(&self, call: Call) -> Result<T, StoreError> {
        let (result, returned) = oneshot::channel();
        let closed = |_| StoreError::transient("the store is being closed");
        self.waiting.send(Waiting { call, result }).await.map_err(closed)?;
        let lost = |_| StoreError::transient("the batch that contained this request did not end");
        returned.await.map_err(lost)?
    }
}

async fn run_batches<Call, T>(
    runner: Arc<impl RunBatch<Call, T>>,
    arrivals: Arc<Mutex<Arrivals<Call, T>>>,
) {
    let mut last = LastBatch::default();
    loop {
        let Some(batch) = arrivals.lock().await.gather(&last).await else { return };
        let (calls, callers): (Vec<Call>, Vec<oneshot::Sender<Result<T, StoreError>>>) =
            batch.into_iter().map(|one| (one.call, one.result)).unzip();
        let began = Instant::now();
        let ran = AssertUnwindSafe(runner.run(calls)).catch_unwind().await;
        // A panic fails only the calls of this batch. It is a bug, so none of them is retried.
        let results = ran.unwrap_or_else(|_| callers.iter().map(|_| Err(panicked())).collect());
        last = LastBatch { calls: callers.len(), took: began.elapsed() };
        for (caller, result) in callers.into_iter().zip(results) {
            drop(caller.send(result)); // The caller may be gone.
        }
    }
}

fn panicked() -> StoreError {
    StoreError::bug("a batch of store calls panicked")
}

/// The size and duration that the next batch is expected to have: callers that got their results call again.
#[derive(Default)]
struct LastBatch {
    calls: usize,
    took: Duration,
}

/// Calls that are not in a batch yet.
struct Arrivals<Call, T> {
    rule: BatchRule<Call>,
    receiver: mpsc::Receiver<Waiting<Call, T>>,
    /// A call that did not fit into the previous batch.
    held_over: Option<Waiting<Call, T>>,
}

impl<Call, T> Arrivals<Call, T> {
    /// Waits for the first call, takes all that have arrived by then, and waits a little for as many calls as last
    /// time: a commit on a slow disk is too expensive for only the fastest callers. A lone call never waits. `None` if
    /// no more calls can come.
    async fn gather(&mut self, last: &LastBatch) -> Option<Vec<Waiting<Call, T>>> {
        let first = match self.held_over.take() {
            Some(first) => first,
            None => self.receiver.recv().await?,
        };
        // Lets callers that just got their results call again; otherwise the next batch would have a single call.
        tokio::task::yield_now().await;
        let wait = last.took / SHARE_OF_BATCH_WAITED;
        let until = Instant::now() + if wait < LEAST_WAIT { Duration::ZERO } else { wait };
        let mut weight = (self.rule.weight)(&first.call);
        let mut batch = vec![first];
        loop {
            let expected = batch.len() < last.calls && weight < self.rule.enough;
            let Some(next) = self.next(expected, until).await else { break };
            weight += (self.rule.weight)(&next.call);
            if weight > self.rule.max_weight {
                self.held_over = Some(next);
                break;
            }
            batch.push(next);
        }
        Some(batch)
    }

    /// A call that has arrived, or that arrives in time if more are expected.
    async fn next(&mut self, expected: bool, until: Instant) -> Option<Waiting<Call, T>> {
        match self.receiver.try_recv() {
            Ok(next) => Some(next),
            Err(_) if expected && Instant::now() < until => {
                timeout_at(until, self.receiver.recv()).await.ok().flatten()
            }
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ports::error::StoreErrorKind;
    use crate::ports::inbox::{MessageId, NewMessage, Submitted};
    use fetchwell_policy::url::Site;
    use tokio::task::JoinHandle;
    use tokio::time::sleep;

    use super::*;

    const COMMIT: Duration = Duration::from_millis(40);
    const ROUND_TRIP: Duration = Duration::from_secs(1);

    /// A slow store. It records when each batch arrived, and how many calls it contained.
    struct SlowStore {
        batches: parking_lot::Mutex<Vec<(Duration, usize)>>,
        began: Instant,
    }

    impl RunBatch<Submission, Submitted> for SlowStore {
        async fn run(&self, batch: Vec<Submission>) -> Vec<Result<Submitted, StoreError>> {
            self.batches.lock().push((self.began.elapsed(), batch.len()));
            sleep(COMMIT).await;
            batch.iter().map(|_| Err(StoreError::transient(String::new()))).collect()
        }
    }

    fn submission(messages: usize) -> Submission {
        let site = Site::parse("a.test").unwrap();
        let message = NewMessage::new(MessageId([0; 16]), String::new(), site, Duration::ZERO);
        Submission {
            caller: String::new(),
            from: String::new(),
            idempotency: None,
            messages: vec![message; messages],
            batch: None,
        }
    }

    /// The batches of callers that submit three times each and pause for `thinking` after each result. Each caller
    /// starts a little later than the one before.
    async fn batches(callers: u32, messages: usize, thinking: Duration) -> Vec<(Duration, usize)> {
        let store = SlowStore { batches: parking_lot::Mutex::default(), began: Instant::now() };
        let store = Arc::new(store);
        let rule = BatchRule { at_once: 1, ..BatchRule::SUBMISSIONS };
        let coalescer = Arc::new(Coalescer::start(&store, rule));
        let submitting = (0..callers).map(|caller| {
            let coalescer = coalescer.clone();
            tokio::spawn(async move {
                for _ in 0..3 {
                    drop(coalescer.call(submission(messages)).await);
                    sleep(thinking * caller).await;
                }
            })
        });
        for submitted in submitting.collect::<Vec<_>>() {
            submitted.await.unwrap();
        }
        store.batches.lock().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_for_the_callers_of_the_last_one() {
        let found = batches(4, 1, Duration::from_millis(2)).await;
        let sizes: Vec<usize> = found.iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_at_most_a_quarter_of_the_last_one() {
        let found = batches(2, 1, COMMIT).await;
        assert_eq!(found[0], (Duration::ZERO, 2));
        let waited = found[1].0 - COMMIT;
        assert_eq!((waited.as_millis(), found[1].1), (10, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heavy_call_does_not_wait_for_others() {
        let enough = BatchRule::SUBMISSIONS.enough;
        let found = batches(2, enough, COMMIT / 8).await;
        assert_eq!((found[0], found[1]), ((Duration::ZERO, 2), (COMMIT, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_too_heavy_together_go_one_after_the_other() {
        let most = BatchRule::SUBMISSIONS.max_weight;
        let found = batches(2, most, Duration::ZERO).await;
        let sizes: Vec<usize> = found.iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [1; 6]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_alone_does_not_wait() {
        let found = batches(1, 1, Duration::ZERO).await;
        let starts: Vec<Duration> = found.iter().map(|(start, _)| *start).collect();
        assert_eq!(starts, [Duration::ZERO, COMMIT, COMMIT * 2]);
    }

    /// A server that multiplies by ten, and panics at 0. It records the contents of each batch.
    #[derive(Default)]
    struct Server {
        batches: parking_lot::Mutex<Vec<Vec<u32>>>,
    }

    impl RunBatch<u32, u32> for Server {
        async fn run(&self, batch: Vec<u32>) -> Vec<Result<u32, StoreError>> {
            self.batches.lock().push(batch.clone());
            sleep(ROUND_TRIP).await;
            assert!(!batch.contains(&0), "a batch with a 0 panics");
            batch.iter().map(|number| Ok(number * 10)).collect()
        }
    }

    fn start(server: &Arc<Server>) -> Arc<Coalescer<u32, u32>> {
        Arc::new(Coalescer::start(server, BatchRule::ROUND_TRIPS))
    }

    fn call(
        coalescer: &Arc<Coalescer<u32, u32>>,
        number: u32,
    ) -> JoinHandle<Result<u32, StoreError>> {
        let coalescer = coalescer.clone();
        tokio::spawn(async move { coalescer.call(number).await })
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_arrive_during_a_round_trip_share_the_next_one() {
        let server = Arc::new(Server::default());
        let coalescer = start(&server);
        let first = call(&coalescer, 1);
        sleep(ROUND_TRIP / 2).await;
        let others: Vec<_> = (2..=4).map(|number| call(&coalescer, number)).collect();
        assert_eq!(first.await.unwrap().unwrap(), 10);
        for (number, other) in (2..=4).zip(others) {
            assert_eq!(other.await.unwrap().unwrap(), number * 10);
        }
        assert_eq!(*server.batches.lock(), [vec![1], vec![2, 3, 4]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_call_does_not_harm_the_others_of_its_batch() {
        let server = Arc::new(Server::default());
        let coalescer = start(&server);
        let first = call(&coalescer, 1);
        let second = call(&coalescer, 2);
        sleep(ROUND_TRIP / 2).await;
        first.abort();
        assert_eq!(second.await.unwrap().unwrap(), 20);
        assert_eq!(call(&coalescer, 3).await.unwrap().unwrap(), 30);
        assert_eq!(*server.batches.lock(), [vec![1, 2], vec![3]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_fails_its_batch_and_no_later_one() {
        let coalescer = start(&Arc::default());
        let fails = call(&coalescer, 0);
        let shares_its_batch = call(&coalescer, 1);
        assert_eq!(fails.await.unwrap().unwrap_err().kind(), StoreErrorKind::Bug);
        let error = shares_its_batch.await.unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "this is a bug in Fetchwell: a batch of store calls panicked"
        );
        assert_eq!(call(&coalescer, 2).await.unwrap().unwrap(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_trip_has_a_bounded_number_of_calls() {
        let server = Arc::new(Server::default());
        let coalescer = start(&server);
        let calls: Vec<_> = (1..=1_200).map(|number| call(&coalescer, number)).collect();
        for called in calls {
            called.await.unwrap().unwrap();
        }
        let batches = server.batches.lock();
        assert!(batches.iter().all(|batch| batch.len() <= MAX_PER_ROUND_TRIP), "{batches:?}");
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 1_200);
    }
}
