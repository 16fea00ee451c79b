//! Submissions that come while a transaction is under way gather, and go together in the next one.
//!
//! A task of its own does it: whoever submits may be stopped at any time (a client that hangs up), and
//! nobody else shall be harmed by that.

use tokio::sync::{mpsc, oneshot};

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

/// Takes submissions. The task ends with the last of its clones.
#[derive(Clone)]
pub(super) struct Submitter {
    waiting: mpsc::Sender<Waiting>,
}

struct Waiting {
    submission: Submission,
    answer: oneshot::Sender<Answer>,
}

impl Submitter {
    /// Begins the task.
    pub(super) fn start(desk: impl Desk) -> Submitter {
        let (waiting, arrivals) = mpsc::channel(MAX_WAITING);
        tokio::spawn(serve(desk, arrivals));
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

async fn serve(desk: impl Desk, mut arrivals: mpsc::Receiver<Waiting>) {
    let mut held_over = None;
    loop {
        let first = match held_over.take() {
            Some(first) => first,
            None => match arrivals.recv().await {
                Some(first) => first,
                None => return,
            },
        };
        // Those who were answered just now have their say first, or the next group would be of one.
        tokio::task::yield_now().await;
        let mut messages = first.submission.messages.len();
        let mut group = vec![first];
        while let Ok(next) = arrivals.try_recv() {
            messages += next.submission.messages.len();
            if messages > MAX_MESSAGES_PER_COMMIT {
                held_over = Some(next);
                break;
            }
            group.push(next);
        }
        let (submissions, answers): (Vec<Submission>, Vec<oneshot::Sender<Answer>>) =
            group.into_iter().map(|one| (one.submission, one.answer)).unzip();
        for (answer, result) in answers.into_iter().zip(desk.accept(submissions).await) {
            drop(answer.send(result)); // Who has gone does not want to know.
        }
    }
}
