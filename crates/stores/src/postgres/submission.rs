//! Accepts submissions in one transaction.

use std::collections::BTreeSet;

use fetchwell_engine::ports::inbox::{MessageId, NewMessage, Submission, Submitted};
use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_policy::time::Time;

use super::callers;
use super::ending::Ended;
use super::lanes::LaneId;
use super::moves::{Moves, QueueId};
use super::names::earlier_answers;
use super::new_row::{MessagePart, NewRow};
use super::sharing::what_is_shared;
use crate::shared::job_state::JobState;
use crate::shared::submit_audit;

/// The queues that submissions go to.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    pub(super) messages: QueueId,
    pub(super) deliveries: QueueId,
}

/// Accepts all submissions, and commits. Returns the answer to each, and the callers that have new results.
pub(super) async fn accept_all(
    mut moves: Moves,
    queues: Queues,
    group: &[&Submission],
) -> sqlx::Result<(Vec<Submitted>, BTreeSet<String>)> {
    let answers = earlier_answers(&mut moves, group).await?;
    let fresh: Vec<&Submission> = group
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_none())
        .map(|(submission, _)| *submission)
        .collect();
    let shared_out = put_in(&mut moves, queues, &fresh).await?;
    let callers = moves.put_out(queues.deliveries, shared_out, &[]).await?;
    let entries = submit_audit::entries(&fresh, moves.now());
    callers::put_audit(&mut moves.tx, &entries).await?;
    moves.commit().await?;
    let submitted = group.iter().zip(answers).map(|(submission, answer)| {
        answer.unwrap_or_else(|| Submitted::Accepted(ids_of(submission)))
    });
    Ok((submitted.collect(), callers))
}

/// Inserts the messages. Returns those that get the result of an earlier one at once.
async fn put_in(
    moves: &mut Moves,
    queues: Queues,
    group: &[&Submission],
) -> sqlx::Result<Vec<Ended>> {
    let messages: Vec<(&NewMessage, &str)> = group
        .iter()
        .flat_map(|one| one.messages.iter().map(|message| (message, one.caller.as_str())))
        .collect();
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let lanes = messages.iter().map(|(message, caller)| lane_of(message, caller)).collect();
    let lanes = moves.lane_ids(queues.messages, lanes).await?;
    let mut shared = what_is_shared(moves, &messages).await?;
    let ids = moves.new_ids(messages.len()).await?;
    let mut rows = Vec::new();
    let mut ended = Vec::new();
    for ((message, caller), id) in messages.into_iter().zip(ids) {
        let now = moves.now();
        let mut copies = None;
        let mut follows = None;
        if let Some(max_age) = message.max_age {
            let of_kind = shared.entry(message.kind).or_default();
            copies = of_kind.page.filter(|(_, at)| *at >= now - max_age).map(|(job, _)| job);
            if copies.is_none() {
                follows = of_kind.leader;
                of_kind.leader = follows.or(Some(id));
            }
        }
        let lane = lanes.get(&lane_of(message, caller)).copied().unwrap_or_default();
        let standing = Standing { id, lane, copies, follows };
        ended.extend(ended_at_once(message, caller, &standing));
        rows.push(row_of(message, caller, queues.messages, now, &standing));
    }
    let count = rows.len();
    if moves.put_in(rows).await? < count {
        let why = "a message with the same id already exists".to_owned();
        return Err(sqlx::Error::InvalidArgument(why));
    }
    Ok(ended)
}

/// How a new message starts.
struct Standing {
    id: LeaseId,
    lane: LaneId,
    /// The job whose result it gets at once.
    copies: Option<LeaseId>,
    /// The job whose result it waits for.
    follows: Option<LeaseId>,
}

fn row_of<'a>(
    message: &'a NewMessage,
    caller: &'a str,
    queue: QueueId,
    now: Time,
    standing: &Standing,
) -> NewRow<'a> {
    let deadline = now + message.deadline_in;
    // A follower is not handed out before its deadline: until then its leader may deliver the result.
    let (state, due) = match (standing.copies, standing.follows) {
        (Some(_), _) => (JobState::Completed, now),
        (None, Some(_)) => (JobState::Delayed, deadline),
        (None, None) => (JobState::Queued, now),
    };
    NewRow {
        id: standing.id,
        queue,
        lane: standing.lane,
        key: Some(message.id.0),
        site: message.site.as_str().to_owned(),
        url: message.url.clone(),
        payload: message.options.clone(),
        deadline: Some(deadline),
        due,
        state,
        message: Some(MessagePart { new: message, caller, follows: standing.follows }),
    }
}

fn ended_at_once(message: &NewMessage, caller: &str, standing: &Standing) -> Option<Ended> {
    Some(Ended {
        job: standing.id,
        key: message.id.0,
        caller: caller.to_owned(),
        callback_url: message.callback_url.clone(),
        // A copy gets a kind of its own: otherwise later messages would find it, and a page would count as new forever.
        kind: message.id.0,
        copies: Some(standing.copies?),
    })
}

fn lane_of(message: &NewMessage, caller: &str) -> Lane {
    Lane { group: Some(message.retailer.clone()), party: Some(caller.to_owned()) }
}

fn ids_of(submission: &Submission) -> Vec<MessageId> {
    submission.messages.iter().map(|message| message.id).collect()
}
