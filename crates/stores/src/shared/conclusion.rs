//! How the lease of a message ends. Pure, and the same for every store.

use fetchwell_engine::ports::finish::{Finished, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::{Job, Lane, LeaseId, NewJob};
use fetchwell_policy::url::WebUrl;

use super::job_state::JobState;

/// How one lease ends. `R` is a [`FetchResult`] or a reference to one.
pub(crate) struct Conclusion<R> {
    pub(crate) id: LeaseId,
    pub(crate) settlement: Settlement,
    /// The result that the message ends with.
    pub(crate) result: Option<R>,
    /// The attempt, if it is not the last.
    pub(crate) attempt: Option<R>,
}

impl<'a> Conclusion<&'a FetchResult> {
    /// A message that was settled as done without a result is dead instead: its caller would wait forever.
    pub(crate) fn of(finished: &'a Finished<FetchResult>) -> Conclusion<&'a FetchResult> {
        let id = finished.lease.id;
        let record = finished.records.first();
        let (result, attempt) = match is_final(&finished.settlement) {
            true => (record, None),
            false => (None, record),
        };
        let settlement = match (&finished.settlement, result) {
            (Settlement::Done | Settlement::Skipped, None) => {
                Settlement::Dead { reason: "it ended without a result".to_owned() }
            }
            (settlement, _) => settlement.clone(),
        };
        Conclusion { id, settlement, result, attempt }
    }

    pub(crate) fn cloned(self) -> Conclusion<FetchResult> {
        let Conclusion { id, settlement, result, attempt } = self;
        Conclusion { id, settlement, result: result.cloned(), attempt: attempt.cloned() }
    }
}

/// Whether a message ends with this settlement.
pub(crate) fn is_final(settlement: &Settlement) -> bool {
    matches!(settlement, Settlement::Done | Settlement::Skipped | Settlement::Dead { .. })
}

/// The state of a message that ended with this result.
pub(crate) fn end_state(result: &FetchResult) -> JobState {
    if result.is_success() { JobState::Completed } else { JobState::Failed }
}

/// The delivery of a result to the callback URL of its message.
pub(crate) fn delivery(url: String, message: MessageId, caller: &str) -> NewJob {
    delivery_job(url, message.to_string().into_bytes(), caller)
}

/// The job of a delivery. Its payload is the `webhook-id`.
pub(crate) fn delivery_job(url: String, payload: Vec<u8>, caller: &str) -> NewJob {
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    let lane = Lane { group: None, party: Some(caller.to_owned()) };
    NewJob::now(Job { url, site, lane, deadline: None, payload })
}
