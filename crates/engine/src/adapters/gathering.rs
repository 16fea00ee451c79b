//! Submissions that come while a transaction is under way gather, and go together in the next one.
//!
//! Tasks of their own do it: whoever submits may be stopped at any time (a client that hangs up), and
//! nobody else shall be harmed by that.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};

use crate::inbox::{Submission, Submitted};
use crate::ports::StoreFault;

/// The most messages that go in by one transaction, unless one submission has more.
const MAX_MESSAGES_PER_COMMIT: usize = 4_096;
/// Submissions that wait for their turn; more than that wait in their callers.
const MAX_WAITING: usize = 1_024;

/// What became of a submission.
pub(super) type Answer = Result<Submitted, StoreFault>;

/// Accepts submissions together.
pub(super) trait Desk: Send + Sync + 'static {
    /// One answer for each of them, in order; what was accepted is committed. One that can't be accepted
    /// does not harm the others.
    fn accept(&self, group: Vec<Submission>) -> impl Future<Output = Vec<Answer>> + Send;
}

/// Takes submissions. Its tasks end with the last of its clones.
#[derive(Clone)]
pub(super) struct Submitter {
    waiting: mpsc::Sender<Waiting>,
}

struct Waiting {
    submission: Submission,
    answer: oneshot::Sender<Answer>,
}

impl Submitter {
    /// Begins the tasks: so many groups are accepted at once.
    pub(super) fn start(desk: impl Desk, at_once: usize) -> Submitter {
        let (waiting, receiver) = mpsc::channel(MAX_WAITING);
        let arrivals = Arc::new(Mutex::new(Arrivals { receiver, held_over: None }));
        let desk = Arc::new(desk);
        for _ in 0..at_once {
            tokio::spawn(serve(desk.clone(), arrivals.clone()));
        }
        Submitter { waiting }
    }

    /// Returns once the messages are committed.
    pub(super) async fn submit(&self, submission: Submission) -> Answer {
        let gone = || StoreFault::Unavailable("the store is being closed".to_owned());
        let (answer, answered) = oneshot::channel();
        self.waiting.send(Waiting { submission, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

async fn serve(desk: Arc<impl Desk>, arrivals: Arc<Mutex<Arrivals>>) {
    loop {
        let Some(group) = arrivals.lock().await.gather().await else { return };
        let (submissions, answers): (Vec<Submission>, Vec<oneshot::Sender<Answer>>) =
            group.into_iter().map(|one| (one.submission, one.answer)).unzip();
        for (answer, result) in answers.into_iter().zip(desk.accept(submissions).await) {
            drop(answer.send(result)); // Who has gone does not want to know.
        }
    }
}

/// Submissions that nobody sees to yet.
struct Arrivals {
    receiver: mpsc::Receiver<Waiting>,
    /// One that was too much for the group before.
    held_over: Option<Waiting>,
}

impl Arrivals {
    /// Waits for the first, and takes all that are there by then. `None`: no more will come.
    async fn gather(&mut self) -> Option<Vec<Waiting>> {
        let first = match self.held_over.take() {
            Some(first) => first,
            None => self.receiver.recv().await?,
        };
        // Those who were answered just now have their say first, or the next group would be of one.
        tokio::task::yield_now().await;
        let mut messages = first.submission.messages.len();
        let mut group = vec![first];
        while let Ok(next) = self.receiver.try_recv() {
            messages += next.submission.messages.len();
            if messages > MAX_MESSAGES_PER_COMMIT {
                self.held_over = Some(next);
                break;
            }
            group.push(next);
        }
        Some(group)
    }
}
