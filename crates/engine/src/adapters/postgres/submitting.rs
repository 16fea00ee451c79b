//! Submissions that come while a transaction is under way gather, and go together in the next one.
//!
//! A task of its own does it: whoever submits may be stopped at any time (a client that hangs up), and
//! nobody else shall be harmed by that.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot};

use super::database::{Database, may_pass};
use super::moment::StoreClock;
use super::moves::Moves;
use super::submission::{Queues, accept_all};
use crate::inbox::{Bell, Submission, Submitted};
use crate::ports::StoreFault;

/// The most messages that go in by one transaction.
const MAX_MESSAGES_PER_COMMIT: usize = 4_096;
/// Submissions that wait for their turn; more than that wait in their callers.
const MAX_WAITING: usize = 1_024;

type Answer = Result<Submitted, StoreFault>;

/// Takes submissions. The task ends with the last of its clones.
#[derive(Clone)]
pub(super) struct Submitter {
    waiting: mpsc::Sender<Waiting>,
}

struct Waiting {
    submission: Submission,
    answer: oneshot::Sender<Answer>,
}

/// What the task works with.
pub(super) struct Desk {
    pub(super) db: Database,
    pub(super) clock: StoreClock,
    pub(super) queues: Queues,
    pub(super) messages_news: Arc<Notify>,
    pub(super) deliveries_news: Arc<Notify>,
    pub(super) results: Bell,
}

impl Submitter {
    /// Begins the task.
    pub(super) fn start(desk: Desk) -> Submitter {
        let (waiting, arrivals) = mpsc::channel(MAX_WAITING);
        tokio::spawn(desk.serve(arrivals));
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

impl Desk {
    async fn serve(self, mut arrivals: mpsc::Receiver<Waiting>) {
        let mut held_over = None;
        loop {
            let first = match held_over.take() {
                Some(first) => first,
                None => match arrivals.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
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
            for (answer, result) in answers.into_iter().zip(self.accept(&submissions).await) {
                drop(answer.send(result)); // Who has gone does not want to know.
            }
        }
    }

    async fn accept(&self, group: &[Submission]) -> Vec<Answer> {
        let all: Vec<&Submission> = group.iter().collect();
        match self.try_to_accept(&all).await {
            Ok(Ok(submitted)) => submitted.into_iter().map(Ok).collect(),
            // One of them is such that the server refuses it: the others shall not share its fate.
            Ok(Err(error)) if !may_pass(&error) && group.len() > 1 => {
                let mut answers = Vec::new();
                for submission in all {
                    answers.push(self.accept_alone(submission).await);
                }
                answers
            }
            Ok(Err(error)) => vec![Err(self.db.fault(&error)); group.len()],
            Err(fault) => vec![Err(fault); group.len()],
        }
    }

    async fn accept_alone(&self, submission: &Submission) -> Answer {
        let submitted = self.try_to_accept(&[submission]).await?;
        let submitted = submitted.map_err(|error| self.db.fault(&error))?;
        let nothing = || StoreFault::Damaged("a submission was not answered".to_owned());
        submitted.into_iter().next().ok_or_else(nothing)
    }

    /// One transaction. The inner fault is the server's word on a statement.
    async fn try_to_accept(
        &self,
        group: &[&Submission],
    ) -> Result<sqlx::Result<Vec<Submitted>>, StoreFault> {
        let moves = Moves::begin(&self.db, &self.clock).await?;
        let accepted = accept_all(moves, self.queues, group).await;
        Ok(accepted.map(|(submitted, callers)| {
            self.messages_news.notify_one();
            if !callers.is_empty() {
                self.deliveries_news.notify_one();
            }
            for caller in callers {
                self.results.ring(&caller);
            }
            submitted
        }))
    }
}
