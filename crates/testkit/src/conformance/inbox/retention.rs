//! Old data is deleted, and readers are told.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    AuditEntry, DeliveryFilter, Idempotency, NewMessage, OutboxMost, OutboxPage, Submission,
    Submitted,
};

use super::InboxStore;
use super::trial::{ANNA, BERTA, Trial, cursors, finished, message, secs, submission, success};

const KEEP_S: u64 = 600;

async fn prune(trial: &Trial, most: u32) -> u64 {
    let pruned = trial.store.inbox.prune(secs(KEEP_S), most).await.expect("it is pruned");
    trial.ledger().await;
    pruned
}

/// Oldest first, up to the limit; a reader that is behind is told where to continue.
pub async fn what_is_old_goes_in_order(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(trial.send(ANNA, message(&format!("http://a.test/{n}"))).await);
        trial.end_all(&success("page")).await;
    }
    let ledger = trial.ledger().await;
    assert_eq!(prune(&trial, 100).await, 0, "all are young");
    trial.wait(secs(KEEP_S + 1)).await;
    let young = trial.send(ANNA, message("http://a.test/young")).await;
    trial.end_all(&success("page")).await;
    let waiting = trial.send(BERTA, message("http://a.test/waiting")).await;
    assert_eq!(prune(&trial, 4).await, 4);
    assert_eq!(cursors(&trial.results(ANNA, None).await), [5, 6, 7]);
    assert_eq!(cursors(&trial.results(ANNA, Some(4)).await), [5, 6, 7]);
    let most = OutboxMost { results: 10, bytes: u64::MAX };
    for behind in [0, 3] {
        let page = trial.page(ANNA, Some(behind), most).await;
        assert_eq!(page, OutboxPage::Gone { oldest: 4 });
    }
    assert_eq!(trial.find(ids[3], Some(ANNA)).await, None);
    assert!(trial.find(ids[4], Some(ANNA)).await.is_some());
    assert_eq!(prune(&trial, 100).await, 2);
    assert_eq!(prune(&trial, 100).await, 0);
    assert_eq!(cursors(&trial.results(ANNA, Some(6)).await), [7]);
    trial.wait(secs(KEEP_S + 1)).await;
    assert_eq!(prune(&trial, 100).await, 1);
    let nothing_left = OutboxPage::Results { results: Vec::new(), next: 7 };
    assert_eq!(trial.page(ANNA, None, most).await, nothing_left, "whoever comes now misses none");
    assert!(trial.find(young, None).await.is_none() && trial.find(waiting, None).await.is_some());
    let after = trial.ledger().await;
    assert_eq!((after.accepted, after.done), (ledger.accepted + 2, ledger.done + 1));
    // The cursors of deleted results are not used again.
    assert_eq!(trial.end_all(&success("page")).await, 1);
    assert_eq!(cursors(&trial.results(BERTA, None).await), [1]);
}

/// There are no gaps between the remaining results.
pub async fn a_young_result_keeps_those_after_it(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for n in 0..4 {
        trial.send(ANNA, message(&format!("http://a.test/{n}"))).await;
        trial.end_all(&success("page")).await;
        trial.wait(secs(KEEP_S / 4)).await;
    }
    trial.wait(secs(KEEP_S / 2)).await;
    // They are slightly more than 900, 750, 600 and 450 seconds old.
    let pruned = prune(&trial, 100).await;
    let left = cursors(&trial.results(ANNA, None).await);
    let first = i64::try_from(pruned).unwrap_or(0) + 1;
    assert_eq!(left, (first..=4).collect::<Vec<i64>>());
    assert!((2..=3).contains(&pruned), "{pruned}");
}

/// After that, it can be used for another request.
pub async fn a_name_is_forgotten_with_its_messages(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let named = |body: u8| {
        let idempotency = Some(Idempotency { key: "k".to_owned(), body_hash: [body; 32] });
        Submission { idempotency, ..submission(ANNA, vec![message("http://a.test/")]) }
    };
    trial.try_to_submit(named(1)).await.expect("it is accepted");
    trial.end_all(&success("page")).await;
    trial.wait(secs(KEEP_S - 1)).await;
    prune(&trial, 100).await;
    let other = trial.try_to_submit(named(2)).await.expect("it is answered");
    assert_eq!(other, Submitted::KeyUsedOtherwise);
    trial.wait(secs(2)).await;
    prune(&trial, 100).await;
    let other = trial.try_to_submit(named(2)).await.expect("it is answered");
    assert!(matches!(other, Submitted::Accepted { .. }));
}

/// A caller whose messages have all been deleted can send new ones in the same lane.
pub async fn a_lane_that_was_empty_is_used_again(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for round in 0..3 {
        let id = trial.send(ANNA, message("http://a.test/")).await;
        assert_eq!(prune(&trial, 100).await, 0, "round {round}: it waits");
        let lease = trial.lease_one().await;
        assert_eq!(prune(&trial, 100).await, 0, "round {round}: it is leased");
        assert_eq!(lease.job.lane.group.as_deref(), Some("a-shop"));
        assert_eq!(lease.job.lane.party.as_deref(), Some(ANNA));
        trial.end(&lease, success("page")).await;
        trial.wait(secs(KEEP_S / 2)).await;
        assert_eq!(prune(&trial, 100).await, 0, "round {round}: it is young");
        assert_eq!(trial.message(id).await.retailer, "a-shop");
        trial.wait(secs(KEEP_S)).await;
        assert_eq!(prune(&trial, 100).await, 1);
    }
}

/// Submissions are deleted with their messages; other entries stay for months.
pub async fn the_audit_of_submissions_goes_with_them(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let noted = AuditEntry {
        at: trial.clock.now(),
        caller: None,
        action: "authentication_failed".to_owned(),
        detail: String::new(),
        from: "somewhere".to_owned(),
    };
    trial.store.inbox.audit(&[noted]).await.expect("it is noted");
    for n in 0..3 {
        trial.send(ANNA, message(&format!("http://a.test/{n}"))).await;
    }
    trial.end_all(&success("page")).await;
    let actions = async || {
        let trail = trial.store.inbox.audit_trail(10).await.expect("the audit is read");
        trail.into_iter().map(|entry| entry.action).collect::<Vec<_>>()
    };
    prune(&trial, 100).await;
    assert_eq!(actions().await, ["submit", "submit", "submit", "authentication_failed"]);
    trial.wait(secs(KEEP_S + 1)).await;
    prune(&trial, 100).await;
    assert_eq!(actions().await, ["authentication_failed"]);
    trial.clock.advance(secs(90 * 86_400));
    prune(&trial, 100).await;
    assert!(actions().await.is_empty());
}

/// It is deleted like those with a result, and its lane with it.
pub async fn a_message_without_a_result_goes_too(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let lease = trial.lease_one().await;
    let dead = Settlement::Dead { reason: "no plan".to_owned() };
    assert_eq!(trial.finish(vec![finished(&lease, dead, None)]).await, [Settled::Confirmed]);
    assert_eq!(prune(&trial, 100).await, 0, "it is young");
    trial.wait(secs(KEEP_S + 1)).await;
    assert_eq!(prune(&trial, 100).await, 1);
    assert_eq!(trial.find(id, None).await, None);
    let ledger = trial.ledger().await;
    assert_eq!((ledger.dead, ledger.skipped), (0, 1));
    trial.send(ANNA, message("http://a.test/")).await;
    assert_eq!(trial.end_all(&success("page")).await, 1);
}

/// A delivery can be replayed as long as its result is there.
pub async fn the_log_of_deliveries_goes_with_its_results(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let callback_url = Some("https://hooks.test/".to_owned());
    trial.send(ANNA, NewMessage { callback_url, ..message("http://a.test/") }).await;
    trial.end_all(&success("page")).await;
    let all = DeliveryFilter { status: None, before: None, most: 10 };
    let count = async || {
        let listed = trial.store.inbox.deliveries(ANNA, all).await;
        listed.expect("it is answered").len()
    };
    prune(&trial, 100).await;
    assert_eq!(count().await, 1);
    trial.wait(secs(KEEP_S + 1)).await;
    prune(&trial, 100).await;
    assert_eq!(count().await, 0);
}
