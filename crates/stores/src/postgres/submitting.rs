//! Accepts batches of submissions.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Submission, Submitted};

use super::errors::refused_values;
use super::inbox::PostgresRetriever;
use super::moves::Moves;
use fetchwell_engine::coalescer::RunBatch;

impl RunBatch<Submission, Submitted> for PostgresRetriever {
    async fn run(&self, group: Vec<Submission>) -> Vec<Result<Submitted, StoreError>> {
        let all: Vec<&Submission> = group.iter().collect();
        let accepted = self.accept(&all).await;
        let is_refused = accepted.as_ref().is_err_and(|error| refused_values(error).is_some());
        if !is_refused || group.len() < 2 {
            return one_each(accepted, group.len());
        }
        // The server refuses the values of one submission: the others must not fail with it.
        let mut answers = Vec::new();
        for submission in all {
            answers.extend(one_each(self.accept(&[submission]).await, 1));
        }
        answers
    }
}

impl PostgresRetriever {
    /// Runs one transaction.
    async fn accept(&self, group: &[&Submission]) -> Result<Vec<Submitted>, StoreError> {
        let mut moves = Moves::begin(&self.messages).await?;
        let accepted = moves.accept_all(self.deliveries.id, group).await;
        let (submitted, callers) = moves.end(accepted).await?;
        self.messages.news.notify_one();
        self.notify(&callers);
        Ok(submitted)
    }
}

fn one_each(
    accepted: Result<Vec<Submitted>, StoreError>,
    count: usize,
) -> Vec<Result<Submitted, StoreError>> {
    match accepted {
        Ok(submitted) => submitted.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error); count],
    }
}
