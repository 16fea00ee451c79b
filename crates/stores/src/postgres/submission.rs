//! Accepts submissions in one transaction.

use std::collections::BTreeSet;

use fetchwell_engine::ports::inbox::{BatchId, NewMessage, Submission, Submitted};
use fetchwell_engine::ports::job::{Lane, LeaseId};

use super::ending::Ended;
use super::inbox::put_audit;
use super::lanes::LaneId;
use super::moves::{Moves, QueueId};
use super::names::earlier_answers;
use super::new_row::{MessagePart, NewRow};
use super::sharing::what_is_shared;
use crate::shared::job_state::JobState;
use crate::shared::submit_audit;

impl Moves<'_> {
    /// Accepts all submissions. Returns the answer to each, and the callers that have new results.
    pub(super) async fn accept_all(
        &mut self,
        deliveries: QueueId,
        group: &[&Submission],
    ) -> sqlx::Result<(Vec<Submitted>, BTreeSet<String>)> {
        let answers = earlier_answers(self, group).await?;
        let fresh: Vec<&Submission> = group
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| answer.is_none())
            .map(|(submission, _)| *submission)
            .collect();
        let shared_out = self.put_in_messages(&fresh).await?;
        let callers = self.put_out(deliveries, shared_out, &[]).await?;
        let entries = submit_audit::entries(&fresh, self.now());
        put_audit(&mut self.tx, &entries).await?;
        let created_at = Some(self.now());
        let submitted = group.iter().zip(answers).map(|(submission, answer)| {
            let ids = submission.messages.iter().map(|message| message.id);
            answer.unwrap_or_else(|| Submitted::Accepted { ids: ids.collect(), created_at })
        });
        Ok((submitted.collect(), callers))
    }

    /// Inserts the messages. Returns those that get the result of an earlier one at once.
    async fn put_in_messages(&mut self, group: &[&Submission]) -> sqlx::Result<Vec<Ended>> {
        let messages: Vec<(&NewMessage, &str)> = group
            .iter()
            .flat_map(|one| one.messages.iter().map(|message| (message, one.caller.as_str())))
            .collect();
        let batches: Vec<Option<BatchId>> = group
            .iter()
            .flat_map(|one| std::iter::repeat_n(batch_of(one), one.messages.len()))
            .collect();
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let lanes = messages.iter().map(|(message, caller)| lane_of(message, caller)).collect();
        let lanes = self.lane_ids(self.queue.id, lanes).await?;
        let mut shared = what_is_shared(self, &messages).await?;
        let ids = self.new_ids(messages.len()).await?;
        if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
            self.put_in_batches(group, *first, *last).await?;
        }
        let now = self.now();
        let mut rows = Vec::new();
        for (((new, caller), id), batch) in messages.into_iter().zip(ids).zip(batches) {
            let mut copies = None;
            let mut follows = None;
            if let Some(max_age) = new.max_age {
                let of_kind = shared.entry(new.kind).or_default();
                copies = of_kind.page.filter(|(_, at)| *at >= now - max_age).map(|(job, _)| job);
                if copies.is_none() {
                    follows = of_kind.leader;
                    of_kind.leader = follows.or(Some(id));
                }
            }
            let lane = lanes.get(&lane_of(new, caller)).copied().unwrap_or_default();
            rows.push(self.row_of(id, lane, MessagePart { new, caller, copies, follows, batch }));
        }
        let ended = rows.iter().filter_map(ended_at_once).collect();
        let count = rows.len();
        if self.put_in(rows).await? < count {
            let why = "a message with the same id already exists".to_owned();
            return Err(sqlx::Error::InvalidArgument(why));
        }
        Ok(ended)
    }

    fn row_of<'a>(&self, id: LeaseId, lane: LaneId, message: MessagePart<'a>) -> NewRow<'a> {
        let MessagePart { new, copies, follows, .. } = message;
        let now = self.now();
        let deadline = now + new.deadline_in;
        // A follower is not handed out before its deadline: until then its leader may deliver the result.
        let (state, due) = match (copies, follows) {
            (Some(_), _) => (JobState::Completed, now),
            (None, Some(_)) => (JobState::Delayed, deadline),
            (None, None) => (JobState::Queued, now),
        };
        NewRow {
            id,
            queue: self.queue.id,
            lane,
            key: Some(new.id.0),
            site: new.site.as_str().to_owned(),
            url: new.url.clone(),
            payload: new.options.clone(),
            deadline: Some(deadline),
            due,
            state,
            message: Some(message),
        }
    }
}

fn ended_at_once(row: &NewRow<'_>) -> Option<Ended> {
    let MessagePart { new, caller, copies, batch, .. } = row.message?;
    Some(Ended {
        job: row.id,
        key: new.id.0,
        caller: caller.to_owned(),
        callback_url: new.callback_url.clone(),
        // A copy gets a kind of its own: otherwise later messages would find it, and a page would count as new forever.
        kind: new.id.0,
        copies: Some(copies?),
        is_cached: true,
        batch,
    })
}

/// The id of the batch that a submission forms, if it forms one.
pub(super) fn batch_of(submission: &Submission) -> Option<BatchId> {
    let ids = submission.messages.iter().map(|message| message.id);
    submission.batch.as_ref().and_then(|_| BatchId::of(ids))
}

fn lane_of(message: &NewMessage, caller: &str) -> Lane {
    Lane { group: Some(message.retailer.clone()), party: Some(caller.to_owned()) }
}
