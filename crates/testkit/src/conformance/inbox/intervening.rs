//! Actions of operators: they affect exactly what they name, once.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, MessageId, MessageStatus, NewMessage};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::oversight::{Action, ActionResult, MessageFilter, MessageState};
use fetchwell_policy::retry::History;

use super::InboxStore;
use super::trial::{
    ANNA, BERTA, DEADLINE, Trial, failure, finished, message, secs, shared, success,
};

impl Trial {
    async fn act(&self, act: Action, id: MessageId) -> ActionResult {
        let deeds = self.store.oversight.act_on(act, &[id], None).await.expect("acts are answered");
        self.ledger().await;
        let recounted = self.store.oversight.recount().await.expect("rows are counted");
        for recount in recounted {
            assert_eq!(recount.difference, None, "{:?}", recount.told);
        }
        assert_eq!(deeds.len(), 1);
        deeds[0]
    }

    /// A message that waits for another attempt.
    async fn delayed(&self, caller: &str, url: &str) -> MessageId {
        let id = self.send(caller, message(url)).await;
        let history = History { site_failures: 1, ..History::default() };
        let again = Settlement::retry(self.now() + secs(600), history);
        self.finish(vec![finished(&self.lease_one().await, again, None)]).await;
        id
    }

    async fn failed(&self, caller: &str, url: &str) -> MessageId {
        let id = self.send(caller, message(url)).await;
        assert_eq!(self.end(&self.lease_one().await, failure("gone")).await, Settled::Confirmed);
        id
    }
}

fn urls(leases: &[Lease]) -> Vec<&str> {
    let mut urls: Vec<&str> = leases.iter().map(|lease| lease.job.url.as_str()).collect();
    urls.sort_unstable();
    urls
}

/// A finished message is sent again as it was, once; its result does not change.
pub async fn what_has_ended_is_tried_anew_as_a_message_of_its_own(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let sent = NewMessage {
        options: b"options".to_vec().into(),
        callback_url: Some("http://hook.test/".to_owned()),
        ..message("http://a.test/")
    };
    let old = trial.send(ANNA, sent.clone()).await;
    trial.end(&trial.lease_one().await, failure("gone")).await;
    let before = trial.results(ANNA, None).await;
    trial.wait(DEADLINE).await;
    let ActionResult::Renewed(new) = trial.act(Action::Retry, old).await else {
        panic!("it has ended")
    };
    assert_eq!(trial.act(Action::Retry, old).await, ActionResult::RetriedBefore(new));
    assert_eq!(trial.results(ANNA, None).await, before);
    let seen = trial.message(new).await;
    assert_eq!(
        (seen.url, seen.retailer, seen.correlation_id, seen.caller, seen.status, seen.attempts),
        (sent.url, sent.retailer, sent.correlation_id, ANNA.to_owned(), MessageStatus::Queued, 0)
    );
    let find = async |id| trial.store.oversight.detail(id).await.expect("a story").expect("known");
    assert_eq!(find(old).await.message.retried_as, Some(new));
    assert_eq!(find(new).await.message.retry_of, Some(old));
    // It has the same time as the first one, counted from now.
    assert_eq!(find(new).await.deadline, Some(trial.now() + DEADLINE));
    let lease = trial.lease_one().await;
    assert_eq!(lease.job.payload, sent.options);
    trial.end(&lease, success("page")).await;
    let results = trial.results(ANNA, Some(1)).await;
    assert_eq!((results.len(), results[0].message), (1, new));
    assert_eq!(trial.deliveries().await.len(), 2);
    // After the retry, it is no longer listed as a failure.
    assert_eq!(trial.store.oversight.failures().await.expect("failures").groups, []);
}

/// A message that timed out in the store and one that ended without a result are retried, too.
pub async fn a_new_try_expires_like_any_message(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let old = trial.send(ANNA, message("http://a.test/")).await;
    let dead = Settlement::Dead { reason: "it panicked".to_owned() };
    trial.finish(vec![finished(&trial.lease_one().await, dead, None)]).await;
    let ActionResult::Renewed(new) = trial.act(Action::Retry, old).await else {
        panic!("it has ended")
    };
    let lease = trial.lease_one().await;
    let far = trial.now() + DEADLINE + secs(9_999);
    trial.finish(vec![finished(&lease, Settlement::HandBack { at: far }, None)]).await;
    assert_eq!(trial.lease(5).await.len(), 0);
    trial.wait(DEADLINE).await;
    assert_eq!(trial.lease_one().await.id, lease.id);
    assert_eq!(trial.message(new).await.status, MessageStatus::Processing);
}

/// A delayed message is due at once and keeps its history.
pub async fn what_waits_for_a_time_is_due_at_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.delayed(ANNA, "http://a.test/").await;
    assert_eq!(trial.lease(5).await.len(), 0);
    assert_eq!(trial.act(Action::Retry, id).await, ActionResult::Hastened);
    assert_eq!(trial.act(Action::Retry, id).await, ActionResult::IsDue);
    let lease = trial.lease_one().await;
    assert_eq!(lease.history.site_failures, 1);
    assert_eq!(trial.act(Action::Retry, id).await, ActionResult::InFlight);
}

/// A waiting message ends with a result that says so, and with a delivery; it is never leased again.
pub async fn what_waits_is_cancelled_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let sent = NewMessage {
        callback_url: Some("http://hook.test/".to_owned()),
        ..message("http://a.test/")
    };
    let queued = trial.send(ANNA, sent).await;
    assert_eq!(trial.act(Action::Cancel, queued).await, ActionResult::Cancelled);
    assert_eq!(trial.act(Action::Cancel, queued).await, ActionResult::HasEnded);
    let delayed = trial.delayed(ANNA, "http://b.test/").await;
    assert_eq!(trial.act(Action::Cancel, delayed).await, ActionResult::Cancelled);
    let results = trial.results(ANNA, None).await;
    let told: Vec<(MessageId, &str)> =
        results.iter().map(|result| (result.message, result.result.status.as_str())).collect();
    assert_eq!(told, [(queued, FetchResult::CANCELLED), (delayed, FetchResult::CANCELLED)]);
    assert_eq!((results[0].result.attempts, results[1].result.attempts), (0, 1));
    assert_eq!(trial.message(queued).await.status, MessageStatus::Failed);
    assert_eq!(trial.deliveries().await.len(), 1);
    assert_eq!(trial.store.oversight.failures().await.expect("failures").groups, []);
    trial.wait(DEADLINE).await;
    assert_eq!(trial.lease(5).await.len(), 0);
    // Other messages of the site continue.
    let next = trial.send(ANNA, message("http://a.test/next")).await;
    assert_eq!(trial.lease_one().await.job.url, trial.message(next).await.url);
}

/// A message in flight is not affected, and ends normally.
pub async fn what_is_in_flight_is_left_alone(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let lease = trial.lease_one().await;
    assert_eq!(trial.act(Action::Cancel, id).await, ActionResult::InFlight);
    assert_eq!(trial.end(&lease, success("page")).await, Settled::Confirmed);
    assert_eq!(trial.act(Action::Cancel, id).await, ActionResult::HasEnded);
    assert_eq!(trial.act(Action::Cancel, MessageId([9; 16])).await, ActionResult::Unknown);
    assert_eq!(trial.results(ANNA, None).await.len(), 1);
}

/// The followers of a cancelled message are fetched by themselves; a follower is not started before its leader.
pub async fn a_cancelled_leader_leaves_its_followers(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let leader = trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    let follower = trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    let other = trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    assert_eq!(trial.act(Action::Retry, follower).await, ActionResult::Follows);
    assert_eq!(trial.act(Action::Cancel, other).await, ActionResult::Cancelled);
    assert_eq!(trial.act(Action::Cancel, leader).await, ActionResult::Cancelled);
    assert_eq!(trial.end(&trial.lease_one().await, success("page")).await, Settled::Confirmed);
    assert_eq!(trial.message(follower).await.status, MessageStatus::Completed);
    assert_eq!(trial.results(ANNA, None).await.len(), 3);
}

/// By filter: it affects what matched at that moment and nothing that arrived or ended later, page by page.
pub async fn an_act_by_filter_hits_what_was_seen(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.push(trial.failed(ANNA, &format!("http://a.test/{n}")).await);
    }
    let others = [
        trial.failed(BERTA, "http://a.test/berta").await,
        trial.failed(ANNA, "http://b.test/").await,
        trial.delayed(ANNA, "http://a.test/delayed").await,
    ];
    let ends_later = trial.send(ANNA, message("http://a.test/ends-later")).await;
    let filter = MessageFilter {
        state: Some(MessageState::Failed),
        site: Some("a.test".to_owned()),
        caller: Some(ANNA.to_owned()),
        ..MessageFilter::default()
    };
    let count = trial.store.oversight.count(&filter).await.expect("a count");
    assert_eq!((count.found, count.is_exact), (5, true));
    trial.wait(secs(1)).await;
    assert_eq!(trial.end(&trial.lease_one().await, failure("gone")).await, Settled::Confirmed);
    let later = trial.failed(ANNA, "http://a.test/later").await;

    let seen = MessageFilter { as_of: Some(count.as_of), ..filter.clone() };
    let canary = trial.store.oversight.act(Action::Retry, &seen, 1).await.expect("a canary");
    assert_eq!((canary.done, canary.left_alone, canary.deeds[0].0), (1, 0, expected[4]));
    let acted = trial.store.oversight.act(Action::Retry, &seen, usize::MAX).await.expect("an act");
    // The canary has already been retried, and is not retried again.
    assert_eq!((acted.done, acted.left_alone), (4, 1));
    trial.ledger().await;
    let leases = trial.lease(100).await;
    let expected: Vec<String> = (0..5).map(|n| format!("http://a.test/{n}")).collect();
    assert_eq!(urls(&leases), expected);
    for id in others.into_iter().chain([ends_later, later]) {
        let found = trial.store.oversight.detail(id).await.expect("a story").expect("known");
        assert_eq!(found.message.retried_as, None, "{}", found.message.url);
    }
    let acted =
        trial.store.oversight.act(Action::Cancel, &filter, usize::MAX).await.expect("an act");
    assert_eq!(acted.done, 0);
}

/// With more than one page, all are affected, each once.
pub async fn an_act_by_filter_goes_on_to_the_end(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let many = |n: usize| message(&format!("http://s{}.test/{n}", n % 7));
    trial.submit(ANNA, (0..450).map(many).collect()).await;
    trial.submit(BERTA, (0..20).map(many).collect()).await;
    let of_anna = MessageFilter { caller: Some(ANNA.to_owned()), ..MessageFilter::default() };
    let acted =
        trial.store.oversight.act(Action::Cancel, &of_anna, usize::MAX).await.expect("an act");
    assert_eq!((acted.done, acted.left_alone, acted.deeds.len()), (450, 0, 200));
    assert_eq!(trial.results(ANNA, None).await.len(), 450);
    assert_eq!(trial.lease(1_000).await.len(), 20);
    let ledger = trial.ledger().await;
    assert_eq!((ledger.accepted, ledger.done, ledger.in_flight), (470, 450, 20));
}

/// Two operators at once, and a repeated request: it is done once.
pub async fn what_is_asked_for_twice_is_done_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let beside = trial.beside(place).await;
    let failed = trial.failed(ANNA, "http://a.test/").await;
    let queued = trial.send(ANNA, message("http://b.test/")).await;
    for (act, id) in [(Action::Retry, failed), (Action::Cancel, queued)] {
        let one = &trial.store.oversight;
        let other = &beside.store.oversight;
        let ids = [id, id];
        let (one, other) = tokio::join!(one.act_on(act, &ids, None), other.act_on(act, &ids, None));
        let deeds = [one.expect("an act"), other.expect("an act")].concat();
        assert_eq!(deeds.iter().filter(|deed| deed.is_done()).count(), 1, "{deeds:?}");
    }
    trial.ledger().await;
    assert_eq!(urls(&trial.lease(10).await), ["http://a.test/"]);
    assert_eq!(trial.results(ANNA, None).await.len(), 2);
}
