//! Equal requests share one result.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, MessageStatus, NewMessage};
use fetchwell_engine::ports::queue::Ledger;
use futures::future::join_all;

use super::InboxStore;
use super::trial::{
    ANNA, DEADLINE, Trial, cursors, failure, finished, message, secs, shared, success,
};

const KIND: u8 = 7;
const URL: &str = "http://a.test/";

/// A result, regardless of which message made the requests.
fn said(result: &FetchResult) -> FetchResult {
    FetchResult { attempts: 0, cached_age: None, ..result.clone() }
}

/// Within its age limit, and with its own entry in the outbox; an older page does not, and neither does a message that
/// did not ask for it.
pub async fn a_stored_page_answers_at_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    // The first message need not be marked as shared.
    trial.send(ANNA, NewMessage { kind: [KIND; 16], ..message(URL) }).await;
    let page = FetchResult { details: Some("{}".to_owned()), ..success("page") };
    trial.end_all(&page).await;
    trial.wait(secs(60)).await;
    let sharing = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let answered = trial.message(sharing).await;
    assert_eq!(answered.status, MessageStatus::Completed);
    let outbox = answered.outbox.expect("a result at once");
    assert_eq!((outbox.cursor, said(&outbox.result)), (2, said(&page)));
    assert_eq!(outbox.result.cached_age, Some(secs(60)), "it says how old the page is");
    assert_eq!(cursors(&trial.results(ANNA, None).await), [1, 2]);
    assert_eq!(trial.ledger().await, Ledger { accepted: 2, done: 2, ..Ledger::default() });

    // The copy has the age of the page.
    trial.wait(secs(1)).await;
    let too_old = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    assert_eq!(trial.message(too_old).await.status, MessageStatus::Queued);
    let other = trial.send(ANNA, shared(URL, KIND + 1, secs(600))).await;
    assert_eq!(trial.message(other).await.status, MessageStatus::Queued);
    let unshared = NewMessage { kind: [KIND; 16], ..message(URL) };
    let unshared = trial.send(ANNA, unshared).await;
    assert_eq!(trial.message(unshared).await.status, MessageStatus::Queued);
    assert_eq!(trial.lease(10).await.len(), 3);
}

/// Readers find the newest page of a kind and its age, whichever message it was fetched for, and never a copy.
pub async fn the_newest_page_of_a_kind_is_found_with_its_age(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    assert_eq!(trial.newest_page([KIND; 16]).await, None);
    trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    trial.end_all(&failure("not found")).await;
    assert_eq!(trial.newest_page([KIND; 16]).await, None, "a failure is no page");
    trial.send(ANNA, NewMessage { kind: [KIND; 16], ..message(URL) }).await;
    trial.end_all(&success("old")).await;
    trial.wait(secs(5)).await;
    let newest = trial.send(ANNA, NewMessage { kind: [KIND; 16], ..message(URL) }).await;
    trial.end_all(&success("new")).await;
    trial.wait(secs(7)).await;
    trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let page = trial.newest_page([KIND; 16]).await.expect("a page");
    assert_eq!((page.outbox.message, page.age), (newest, secs(7)));
    assert_eq!(said(&page.outbox.result), said(&success("new")));
    assert_eq!(trial.newest_page([KIND + 1; 16]).await, None);
}

/// Only a page is reused: failures are tried again.
pub async fn a_failure_answers_nobody_else(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    trial.end_all(&failure("not found")).await;
    let next = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    assert_eq!(trial.message(next).await.status, MessageStatus::Queued);
    assert_eq!(trial.end_all(&success("page")).await, 1);
}

/// The first message, waiting or leased, is fetched; the others get its result at the same time.
pub async fn a_follower_has_its_leaders_result(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let leader = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let early = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let lease = trial.lease_one().await;
    let late = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    assert!(trial.lease(10).await.is_empty(), "followers wait");
    assert_eq!(trial.message(late).await.status, MessageStatus::Queued);
    assert_eq!(trial.end(&lease, success("page")).await, Settled::Confirmed);
    let results = trial.results(ANNA, None).await;
    assert_eq!(cursors(&results), [1, 2, 3]);
    let order: Vec<_> = results.iter().map(|result| result.message).collect();
    assert_eq!(order, [leader, early, late]);
    assert!(results.iter().all(|result| said(&result.result) == said(&success("page"))));
    let none_is_cached = results.iter().all(|result| result.result.cached_age.is_none());
    assert!(none_is_cached, "they share a request that was made for them");
    for id in [leader, early, late] {
        assert_eq!(trial.message(id).await.status, MessageStatus::Completed);
    }
    assert_eq!(trial.ledger().await, Ledger { accepted: 3, done: 3, ..Ledger::default() });
    trial.wait(DEADLINE).await;
    assert!(trial.lease(10).await.is_empty(), "they have ended");
}

/// Even if there is no page.
pub async fn a_follower_of_a_leader_that_fails_fails_with_it(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let follower = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    trial.end_all(&failure("not found")).await;
    let ended = trial.message(follower).await;
    assert_eq!(ended.status, MessageStatus::Failed);
    let outbox = ended.outbox.expect("it says why");
    assert_eq!(said(&outbox.result), said(&failure("not found")));
}

/// It does not wait for its leader beyond its deadline, and ends once.
pub async fn a_follower_whose_deadline_passes_goes_its_own_way(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let leader = trial.lease_one().await;
    let mut hasty = shared(URL, KIND, secs(60));
    hasty.deadline_in = secs(30);
    let hasty = trial.send(ANNA, hasty).await;
    trial.wait(secs(29)).await;
    assert!(trial.lease(10).await.is_empty());
    trial.wait(secs(1)).await;
    let lease = trial.lease_one().await;
    assert_eq!(lease.job.deadline, Some(trial.now()));
    assert_eq!(trial.end(&leader, success("page")).await, Settled::Confirmed);
    assert_eq!(trial.message(hasty).await.status, MessageStatus::Processing);
    let late = FetchResult { status: "timeout".to_owned(), ..failure("its deadline passed") };
    assert_eq!(trial.end(&lease, late).await, Settled::Confirmed);
    assert_eq!(trial.message(hasty).await.status, MessageStatus::Failed);
    assert_eq!(cursors(&trial.results(ANNA, None).await), [1, 2]);
}

/// In one batch, and in batches that are committed together.
pub async fn of_equal_ones_in_one_batch_the_first_leads(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let three = || (0..3).map(|_| shared(URL, KIND, secs(60))).collect::<Vec<_>>();
    join_all((0..5).map(|_| trial.submit(ANNA, three()))).await;
    let lease = trial.lease_one().await;
    assert_eq!(trial.end(&lease, success("page")).await, Settled::Confirmed);
    let expected = Ledger { accepted: 15, done: 15, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
    assert_eq!(cursors(&trial.results(ANNA, None).await), (1..=15).collect::<Vec<i64>>());
}

/// A message that crashed the process too often has no result to share.
pub async fn a_follower_outlives_a_leader_that_is_given_up(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let leader = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let follower = trial.send(ANNA, shared(URL, KIND, secs(60))).await;
    let dead = Settlement::Dead { reason: "it crashed".to_owned() };
    let lease = trial.lease_one().await;
    assert_eq!(trial.finish(vec![finished(&lease, dead, None)]).await, [Settled::Confirmed]);
    assert_eq!(trial.message(leader).await.status, MessageStatus::Failed);
    // Either at once or after its deadline: it is not lost.
    trial.wait(DEADLINE).await;
    assert_eq!(trial.end_all(&success("page")).await, 1);
    assert_eq!(trial.message(follower).await.status, MessageStatus::Completed);
}

/// A message that arrives while the leader ends either follows it or gets its page: none waits for a leader that has
/// ended.
pub async fn no_follower_is_left_behind_when_its_leader_ends_meanwhile(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    for round in 0..20 {
        here.send(ANNA, shared(URL, round, secs(60))).await;
        let lease = here.lease_one().await;
        let follow = (0..3).map(|_| there.send(ANNA, shared(URL, round, secs(60))));
        let (settled, followers) =
            tokio::join!(here.end(&lease, success("page")), join_all(follow));
        assert_eq!(settled, Settled::Confirmed);
        for follower in followers {
            let message = here.message(follower).await;
            assert_eq!(message.status, MessageStatus::Completed, "round {round}");
        }
    }
    assert_eq!(cursors(&here.results(ANNA, None).await), (1..=80).collect::<Vec<i64>>());
}
