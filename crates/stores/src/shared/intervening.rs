//! Decides what an operator's action does, depending on the state of a message. Pure, and the same for every store.

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::time::Time;
use sha2::{Digest, Sha256};

use super::job_state::JobState;

/// The state of a message in the transaction that acts on it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) state: JobState,
    /// Whether it waits for the result of another message.
    pub(crate) follows: bool,
    pub(crate) accepted_at: Time,
    pub(crate) ended_at: Option<Time>,
    pub(crate) retried_as: Option<MessageId>,
    /// Attempts so far.
    pub(crate) attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Renew,
    Hasten,
    Cancel,
    LeaveAlone(ActionResult),
}

impl Standing {
    pub(crate) fn verdict(&self, act: Action, as_of: Option<Time>) -> Verdict {
        let came_later = |as_of: Time| {
            self.accepted_at > as_of || self.ended_at.is_some_and(|ended_at| ended_at > as_of)
        };
        if as_of.is_some_and(came_later) {
            return Verdict::LeaveAlone(ActionResult::CameLater);
        }
        match (act, self.state) {
            (_, JobState::Leased) => Verdict::LeaveAlone(ActionResult::InFlight),
            (Action::Cancel, JobState::Queued | JobState::Delayed) => Verdict::Cancel,
            (Action::Cancel, _) => Verdict::LeaveAlone(ActionResult::HasEnded),
            (Action::Retry, JobState::Queued) => Verdict::LeaveAlone(ActionResult::IsDue),
            (Action::Retry, JobState::Delayed) if self.follows => {
                Verdict::LeaveAlone(ActionResult::Follows)
            }
            (Action::Retry, JobState::Delayed) => Verdict::Hasten,
            (Action::Retry, _) => match self.retried_as {
                Some(new) => Verdict::LeaveAlone(ActionResult::RetriedBefore(new)),
                None => Verdict::Renew,
            },
        }
    }
}

/// The result of a message that was cancelled.
pub(crate) fn cancelled(attempts: u32) -> FetchResult {
    FetchResult {
        status: FetchResult::CANCELLED.to_owned(),
        error: Some("cancelled while it waited, by its caller or an operator".to_owned()),
        attempts,
        ..FetchResult::default()
    }
}

/// The id of a retry, derived from the old id and the time. This is unique, because a message is retried only once.
pub(crate) fn new_name(old: MessageId, now: Time, wall: Time) -> MessageId {
    let digest = Sha256::new().chain_update(old.0).chain_update(now.as_micros().to_be_bytes());
    let [chance, _] = *digest.finalize().as_chunks::<16>().0 else {
        return MessageId::new(wall, u128::from_be_bytes(old.0));
    };
    MessageId::new(wall, u128::from_be_bytes(chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_does_what_the_standing_allows() {
        use JobState::{Completed, Dead, Delayed, Failed, Leased, Queued};
        let other = MessageId([7; 16]);
        let has_ended = |state: JobState| !matches!(state, Queued | Delayed | Leased);
        let at = |state| Standing {
            state,
            follows: false,
            accepted_at: Time::from_secs(10),
            ended_at: has_ended(state).then_some(Time::from_secs(20)),
            retried_as: None,
            attempts: 0,
        };
        let alone = Verdict::LeaveAlone;
        for (standing, retry, cancel) in [
            (at(Queued), alone(ActionResult::IsDue), Verdict::Cancel),
            (at(Delayed), Verdict::Hasten, Verdict::Cancel),
            (
                Standing { follows: true, ..at(Delayed) },
                alone(ActionResult::Follows),
                Verdict::Cancel,
            ),
            (at(Leased), alone(ActionResult::InFlight), alone(ActionResult::InFlight)),
            (at(Dead), Verdict::Renew, alone(ActionResult::HasEnded)),
            (at(Completed), Verdict::Renew, alone(ActionResult::HasEnded)),
            (at(Failed), Verdict::Renew, alone(ActionResult::HasEnded)),
            (
                Standing { retried_as: Some(other), ..at(Failed) },
                alone(ActionResult::RetriedBefore(other)),
                alone(ActionResult::HasEnded),
            ),
        ] {
            assert_eq!(standing.verdict(Action::Retry, None), retry, "{standing:?}");
            let seen = Some(Time::from_secs(20));
            assert_eq!(standing.verdict(Action::Cancel, seen), cancel, "{standing:?}");
            for too_early in
                [Time::from_secs(9), standing.ended_at.map_or(Time::EPOCH, |_| Time::from_secs(19))]
            {
                let verdict = standing.verdict(Action::Retry, Some(too_early));
                assert_eq!(verdict, alone(ActionResult::CameLater), "{standing:?}");
            }
        }
    }

    #[test]
    fn names_of_other_tries_differ() {
        let now = Time::from_secs(5);
        let wall = Time::from_secs(1_700_000_000);
        let one = new_name(MessageId([1; 16]), now, wall);
        assert_ne!(one, new_name(MessageId([2; 16]), now, wall));
        assert_ne!(one, new_name(MessageId([1; 16]), Time::from_secs(6), wall));
        assert_eq!(one.0[..6], MessageId::new(wall, 0).0[..6]);
    }
}
