//! Accepts batches of submissions.

use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{ResultNotifier, Submission, Submitted};
use tokio::sync::Notify;

use super::database::Database;
use super::errors::is_about_the_values;
use super::moment::StoreClock;
use super::moves::Moves;
use super::submission::{Queues, accept_all};
use crate::shared::coalescer::RunBatch;

type Answer = Result<Submitted, StoreError>;

pub(super) struct Desk {
    pub(super) db: Database,
    pub(super) clock: StoreClock,
    pub(super) queues: Queues,
    pub(super) messages_news: Arc<Notify>,
    pub(super) deliveries_news: Arc<Notify>,
    pub(super) results: ResultNotifier,
}

impl RunBatch<Submission, Submitted> for Desk {
    async fn run(&self, group: Vec<Submission>) -> Vec<Answer> {
        let all: Vec<&Submission> = group.iter().collect();
        match self.try_to_accept(&all).await {
            Ok(Ok(submitted)) => submitted.into_iter().map(Ok).collect(),
            // The server refuses the values of one submission: the others must not fail with it.
            Ok(Err(error)) if is_about_the_values(&error) && group.len() > 1 => {
                let mut answers = Vec::new();
                for submission in all {
                    answers.push(self.accept_alone(submission).await);
                }
                answers
            }
            Ok(Err(error)) => vec![Err(self.db.fault(error)); group.len()],
            Err(fault) => vec![Err(fault); group.len()],
        }
    }
}

impl Desk {
    async fn accept_alone(&self, submission: &Submission) -> Answer {
        let submitted = self.try_to_accept(&[submission]).await?;
        let submitted = submitted.map_err(|error| self.db.fault(error))?;
        let nothing = || StoreError::bug("a submission was not answered");
        submitted.into_iter().next().ok_or_else(nothing)
    }

    /// Runs one transaction. The inner error is the server's response to a statement.
    async fn try_to_accept(
        &self,
        group: &[&Submission],
    ) -> Result<sqlx::Result<Vec<Submitted>>, StoreError> {
        let moves = Moves::begin(&self.db, &self.clock).await?;
        let accepted = accept_all(moves, self.queues, group).await;
        Ok(accepted.map(|(submitted, callers)| {
            self.messages_news.notify_one();
            if !callers.is_empty() {
                self.deliveries_news.notify_one();
            }
            for caller in callers {
                self.results.notify(&caller);
            }
            submitted
        }))
    }
}
