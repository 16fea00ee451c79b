//! Searches a store with millions of messages in bounded steps, starting with the newest.

use fetchwell_engine::ports::oversight::{MessageFilter, MessageState};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;

use super::job_state::JobState;

/// The maximum number of rows that one query reads.
pub(crate) const ROWS_PER_LOOK: i64 = 50_000;
/// The maximum number of failures that one query reads; an index covers all their columns.
pub(crate) const FAILURES_PER_LOOK: i64 = 20_000;
/// If more messages than this are waiting or leased, all rows are searched: the wanted ones are not rare there.
pub(crate) const FEW: i64 = 5_000;
/// The maximum number of failure groups in one answer.
pub(crate) const MOST_GROUPS: i64 = 200;

/// What to look for, and as of when.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) filter: MessageFilter,
    /// The time given in the filter, or the start of the search.
    pub(crate) as_of: Time,
}

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// All messages.
    All,
    /// Messages with a reason, by their index.
    Failed,
    /// The few waiting messages.
    Waiting,
    /// The few leased messages.
    Leased,
}

impl Look {
    /// The narrowest place that contains all matches.
    pub(crate) fn among(&self, ledger: &Ledger) -> Among {
        use MessageState::{Delayed, Failed, Processing, Queued};
        match (&self.filter.reason, self.filter.state) {
            (Some(_), _) | (None, Some(Failed)) => Among::Failed,
            (None, Some(Queued | Delayed)) if ledger.waiting() <= FEW => Among::Waiting,
            (None, Some(Processing)) if ledger.in_flight <= FEW => Among::Leased,
            _ => Among::All,
        }
    }

    /// The stored states that the filter selects: one (given twice) or two; `None` for any.
    pub(crate) fn states(&self) -> Option<(JobState, JobState)> {
        self.filter.state.map(|state| match state {
            MessageState::Queued => (JobState::Queued, JobState::Queued),
            MessageState::Delayed => (JobState::Delayed, JobState::Delayed),
            MessageState::Processing => (JobState::Leased, JobState::Leased),
            MessageState::Completed => (JobState::Completed, JobState::Completed),
            MessageState::Failed => (JobState::Dead, JobState::Failed),
        })
    }
}

/// The number of matches, if the ledger knows it: the filter has only a state, and no time.
pub(crate) fn told_by_ledger(look: &Look, ledger: &Ledger) -> Option<u64> {
    let state = look.filter.state?;
    if look.filter != (MessageFilter { state: Some(state), ..MessageFilter::default() }) {
        return None;
    }
    let told = match state {
        MessageState::Queued => ledger.queued,
        MessageState::Delayed => ledger.delayed,
        MessageState::Processing => ledger.in_flight,
        MessageState::Completed | MessageState::Failed => return None,
    };
    u64::try_from(told).ok()
}

/// The state that users see.
pub(crate) fn state_of(stored: JobState) -> MessageState {
    match stored {
        JobState::Queued => MessageState::Queued,
        JobState::Delayed => MessageState::Delayed,
        JobState::Leased => MessageState::Processing,
        JobState::Completed => MessageState::Completed,
        JobState::Dead | JobState::Failed => MessageState::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(filter: MessageFilter) -> Look {
        Look { filter, as_of: Time::EPOCH }
    }

    #[test]
    fn what_is_rare_is_looked_for_where_it_is() {
        let few = Ledger { queued: 1, in_flight: 2, delayed: 3, ..Ledger::default() };
        let many = Ledger { queued: FEW, in_flight: FEW + 1, delayed: 1, ..few };
        let reason =
            || MessageFilter { reason: Some("timeout".to_owned()), ..MessageFilter::default() };
        let state = |state| MessageFilter { state: Some(state), ..MessageFilter::default() };
        for (filter, ledger, among) in [
            (MessageFilter::default(), few, Among::All),
            (reason(), many, Among::Failed),
            (state(MessageState::Failed), many, Among::Failed),
            (state(MessageState::Queued), few, Among::Waiting),
            (state(MessageState::Delayed), many, Among::All),
            (state(MessageState::Processing), few, Among::Leased),
            (state(MessageState::Processing), many, Among::All),
            (state(MessageState::Completed), few, Among::All),
        ] {
            assert_eq!(look(filter.clone()).among(&ledger), among, "{filter:?} {ledger:?}");
        }
    }

    #[test]
    fn the_counters_answer_for_a_state_alone() {
        let ledger = Ledger { queued: 7, delayed: 8, ..Ledger::default() };
        let queued =
            MessageFilter { state: Some(MessageState::Queued), ..MessageFilter::default() };
        assert_eq!(told_by_ledger(&look(queued.clone()), &ledger), Some(7));
        let of_a_site = MessageFilter { site: Some("a.test".to_owned()), ..queued.clone() };
        let of_yesterday = MessageFilter { as_of: Some(Time::EPOCH), ..queued };
        for filter in [of_a_site, of_yesterday, MessageFilter::default()] {
            assert_eq!(told_by_ledger(&look(filter.clone()), &ledger), None, "{filter:?}");
        }
    }
}
