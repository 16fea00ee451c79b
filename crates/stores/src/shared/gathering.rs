//! Submissions that come while a transaction is under way gather, and go together in the next one.
//!
//! Tasks of their own do it: whoever submits may be stopped at any time (a client that hangs up), and
//! nobody else shall be harmed by that.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Submission, Submitted};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// The most messages that go in by one transaction, unless one submission has more. A large one writes each
/// page of an index once for many rows; a single message has to wait for it, about 50 ms.
const MAX_MESSAGES_PER_COMMIT: usize = 8_192;
/// A group of so many does not wait for company: what its commit costs by itself is little for each of them.
const ENOUGH_MESSAGES: usize = 1_024;
/// A group waits for company at most this part of the time that the last commit took.
const SHARE_OF_COMMIT_WAITED: u32 = 4;
/// Timers are no finer: a shorter wait would be longer than it is meant to be.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// Submissions that wait for their turn; more than that wait in their callers.
const MAX_WAITING: usize = 1_024;

/// What became of a submission.
pub(crate) type Answer = Result<Submitted, StoreError>;

/// Accepts submissions together.
pub(crate) trait Desk: Send + Sync + 'static {
    /// One answer for each of them, in order; what was accepted is committed. One that can't be accepted
    /// does not harm the others.
    fn accept(&self, group: Vec<Submission>) -> impl Future<Output = Vec<Answer>> + Send;
}

/// Takes submissions. Its tasks end with the last of its clones.
#[derive(Clone)]
pub(crate) struct Submitter {
    waiting: mpsc::Sender<Waiting>,
}

struct Waiting {
    submission: Submission,
    answer: oneshot::Sender<Answer>,
}

impl Submitter {
    /// Begins the tasks: so many groups are accepted at once.
    pub(crate) fn start(desk: impl Desk, at_once: usize) -> Submitter {
        let (waiting, receiver) = mpsc::channel(MAX_WAITING);
        let arrivals = Arc::new(Mutex::new(Arrivals { receiver, held_over: None }));
        let desk = Arc::new(desk);
        for _ in 0..at_once {
            tokio::spawn(serve(desk.clone(), arrivals.clone()));
        }
        Submitter { waiting }
    }

    /// Returns once the messages are committed.
    pub(crate) async fn submit(&self, submission: Submission) -> Answer {
        let gone = || StoreError::transient("the store is being closed");
        let (answer, answered) = oneshot::channel();
        self.waiting.send(Waiting { submission, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

async fn serve(desk: Arc<impl Desk>, arrivals: Arc<Mutex<Arrivals>>) {
    let mut last = LastGroup::default();
    loop {
        let Some(group) = arrivals.lock().await.gather(&last).await else { return };
        let (submissions, answers): (Vec<Submission>, Vec<oneshot::Sender<Answer>>) =
            group.into_iter().map(|one| (one.submission, one.answer)).unzip();
        let began = Instant::now();
        let results = desk.accept(submissions).await;
        last = LastGroup { submissions: answers.len(), took: began.elapsed() };
        for (answer, result) in answers.into_iter().zip(results) {
            drop(answer.send(result)); // Who has gone does not want to know.
        }
    }
}

/// What the next group is expected to be like: those who were answered ask again.
#[derive(Default)]
struct LastGroup {
    submissions: usize,
    took: Duration,
}

/// Submissions that nobody sees to yet.
struct Arrivals {
    receiver: mpsc::Receiver<Waiting>,
    /// One that was too much for the group before.
    held_over: Option<Waiting>,
}

impl Arrivals {
    /// Waits for the first, takes all that are there by then, and waits a little for as many as there were
    /// last time: a commit on a slow disk is too dear for the few who are quickest. Who is alone never
    /// waits. `None`: no more will come.
    async fn gather(&mut self, last: &LastGroup) -> Option<Vec<Waiting>> {
        let first = match self.held_over.take() {
            Some(first) => first,
            None => self.receiver.recv().await?,
        };
        // Those who were answered just now have their say first, or the next group would be of one.
        tokio::task::yield_now().await;
        let wait = last.took / SHARE_OF_COMMIT_WAITED;
        let until = Instant::now() + if wait < LEAST_WAIT { Duration::ZERO } else { wait };
        let mut messages = first.submission.messages.len();
        let mut group = vec![first];
        loop {
            let expected = group.len() < last.submissions && messages < ENOUGH_MESSAGES;
            let Some(next) = self.next(expected, until).await else { break };
            messages += next.submission.messages.len();
            if messages > MAX_MESSAGES_PER_COMMIT {
                self.held_over = Some(next);
                break;
            }
            group.push(next);
        }
        Some(group)
    }

    /// One that is there, or that comes in time if more are expected.
    async fn next(&mut self, expected: bool, until: Instant) -> Option<Waiting> {
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
    use fetchwell_engine::ports::inbox::{MessageId, NewMessage};
    use fetchwell_policy::url::Site;
    use tokio::time::sleep;

    use super::*;

    const COMMIT: Duration = Duration::from_millis(40);

    /// Takes its time, and notes how large each group was and when it came.
    #[derive(Clone)]
    struct SlowDesk {
        groups: Arc<parking_lot::Mutex<Vec<(Duration, usize)>>>,
        began: Instant,
    }

    impl Desk for SlowDesk {
        async fn accept(&self, group: Vec<Submission>) -> Vec<Answer> {
            self.groups.lock().push((self.began.elapsed(), group.len()));
            sleep(COMMIT).await;
            group.iter().map(|_| Err(StoreError::transient(String::new()))).collect()
        }
    }

    fn submission(messages: usize) -> Submission {
        let message = NewMessage {
            id: MessageId([0; 16]),
            url: String::new(),
            site: Site::parse("a.test").unwrap(),
            retailer: String::new(),
            correlation_id: String::new(),
            deadline_in: Duration::ZERO,
            callback_url: None,
            options: Vec::new(),
            kind: [0; 16],
            max_age: None,
        };
        Submission {
            caller: String::new(),
            from: String::new(),
            idempotency: None,
            messages: vec![message; messages],
        }
    }

    /// Callers who each ask three times, `thinking` after their answer, each a little later than the one
    /// before; what groups became of it.
    async fn groups(callers: u32, messages: usize, thinking: Duration) -> Vec<(Duration, usize)> {
        let desk = SlowDesk { groups: Arc::default(), began: Instant::now() };
        let submitter = Submitter::start(desk.clone(), 1);
        let asking = (0..callers).map(|caller| {
            let submitter = submitter.clone();
            tokio::spawn(async move {
                for _ in 0..3 {
                    drop(submitter.submit(submission(messages)).await);
                    sleep(thinking * caller).await;
                }
            })
        });
        for asked in asking.collect::<Vec<_>>() {
            asked.await.unwrap();
        }
        desk.groups.lock().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_answered_together_is_waited_for() {
        let found = groups(4, 1, Duration::from_millis(2)).await;
        let sizes: Vec<usize> = found.iter().map(|(_, size)| *size).collect();
        assert_eq!(sizes, [4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_longer_than_a_quarter_of_a_commit() {
        let found = groups(2, 1, COMMIT).await;
        assert_eq!(found[0], (Duration::ZERO, 2));
        let waited = found[1].0 - COMMIT;
        assert_eq!((waited.as_millis(), found[1].1), (10, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_brings_many_waits_for_nobody() {
        let found = groups(2, ENOUGH_MESSAGES, COMMIT / 8).await;
        assert_eq!((found[0], found[1]), ((Duration::ZERO, 2), (COMMIT, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_does_not_wait() {
        let found = groups(1, 1, Duration::ZERO).await;
        let starts: Vec<Duration> = found.iter().map(|(start, _)| *start).collect();
        assert_eq!(starts, [Duration::ZERO, COMMIT, COMMIT * 2]);
    }
}
