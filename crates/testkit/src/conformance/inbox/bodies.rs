//! Bodies of responses: stored with their results, within the quota of their callers, until they expire.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    FetchResult, KeptBody, MessageBody, MessageId, NewBody, NewMessage, ResultBody,
};
use fetchwell_engine::ports::job::Lease;
use futures::future::join_all;

use super::trial::{
    ANNA, BERTA, Trial, failure, finished, message, secs, shared, submission, success,
};
use super::{InboxStore, LEASE_TTL};

const KEEP: Duration = secs(600);
/// More than any case stores.
const ENOUGH: u64 = 1 << 30;

/// An error page with this body.
fn with_body(bytes: &[u8], quota_bytes: u64) -> FetchResult {
    let bytes = Bytes::copy_from_slice(bytes);
    let body = ResultBody::New(NewBody { bytes, keep: KEEP, quota_bytes });
    FetchResult { body, ..failure("not found") }
}

fn found(bytes: &[u8]) -> Option<MessageBody> {
    let content_type = Some("text/html".to_owned());
    Some(MessageBody::Found { content_type, bytes: bytes.to_vec() })
}

async fn body(trial: &Trial, id: MessageId, of: Option<&str>) -> Option<MessageBody> {
    trial.store.inbox.body(id, of).await.expect("bodies can be read")
}

async fn result_body(trial: &Trial, id: MessageId) -> ResultBody {
    trial.message(id).await.outbox.expect("a result").result.body
}

async fn prune(trial: &Trial, most: u32) -> u64 {
    trial.store.inbox.prune_bodies(most).await.expect("bodies are pruned")
}

/// Sends a message, and ends it with this result.
async fn ended(trial: &Trial, caller: &str, result: FetchResult) -> MessageId {
    let id = trial.send(caller, message("http://a.test/")).await;
    assert_eq!(trial.end(&trial.lease_one().await, result).await, Settled::Confirmed);
    id
}

/// To the byte, by its message and for its caller; the result has the size and the end.
pub async fn a_body_is_read_back_as_it_was_stored(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let id = trial.send(ANNA, message("http://a.test/")).await;
    assert_eq!(body(&trial, id, Some(ANNA)).await, Some(MessageBody::NoResult));
    let result = with_body(&bytes, ENOUGH);
    assert_eq!(trial.end(&trial.lease_one().await, result).await, Settled::Confirmed);
    let expires_at = trial.now() + KEEP;
    assert_eq!(body(&trial, id, Some(ANNA)).await, found(&bytes));
    assert_eq!(body(&trial, id, None).await, found(&bytes));
    let kept = ResultBody::Kept(KeptBody { bytes: 100_000, expires_at });
    assert_eq!(result_body(&trial, id).await, kept);
    assert_eq!(trial.results(ANNA, None).await[0].result.body, kept);
    let shown = trial.store.oversight.detail(id).await.expect("it is shown").expect("it is there");
    assert_eq!(shown.outbox.expect("a result").result.body, kept);

    // Another caller's is as unknown as one that never was.
    assert_eq!(body(&trial, id, Some(BERTA)).await, None);
    assert_eq!(body(&trial, MessageId([9; 16]), Some(BERTA)).await, None);
}

/// It is not stored twice, and has no end of its own.
pub async fn a_body_that_is_the_content_is_read_from_it(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let page = FetchResult { body: ResultBody::Content, ..success("<p>pägé</p>") };
    let id = ended(&trial, ANNA, page).await;
    assert_eq!(result_body(&trial, id).await, ResultBody::Content);
    assert_eq!(body(&trial, id, Some(ANNA)).await, found("<p>pägé</p>".as_bytes()));
    let none = ended(&trial, ANNA, success("page")).await;
    assert_eq!(result_body(&trial, none).await, ResultBody::Absent);
    assert_eq!(body(&trial, none, Some(ANNA)).await, Some(MessageBody::Absent));
    trial.wait(KEEP + secs(1)).await;
    assert_eq!(prune(&trial, 100).await, 0);
    assert_eq!(result_body(&trial, id).await, ResultBody::Content);
}

/// Followers of a message, and messages that its page answers later, have the same body, as long as it is there.
pub async fn those_who_share_a_result_share_its_body(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let shared = || shared("http://a.test/", 7, secs(3_600));
    let mut ids = vec![trial.send(ANNA, shared()).await, trial.send(ANNA, shared()).await];
    let page = FetchResult { content: None, ..success("") };
    let FetchResult { body: new, .. } = with_body(b"\x89PNG", ENOUGH);
    assert_eq!(trial.end_all(&FetchResult { body: new, ..page }).await, 1);
    trial.wait(secs(60)).await;
    ids.push(trial.send(ANNA, shared()).await);
    for id in &ids {
        assert_eq!(body(&trial, *id, Some(ANNA)).await, found(b"\x89PNG"), "{id}");
    }
    let first = result_body(&trial, ids[0]).await;
    assert!(matches!(first, ResultBody::Kept(_)), "{first:?}");
    assert_eq!(result_body(&trial, ids[2]).await, first, "a copy has no longer time");
    trial.wait(KEEP).await;
    assert_eq!(prune(&trial, 100).await, 1, "it was stored once");
    ids.push(trial.send(ANNA, shared()).await);
    for id in &ids {
        assert_eq!(result_body(&trial, *id).await, ResultBody::Deleted, "{id}");
        assert_eq!(body(&trial, *id, Some(ANNA)).await, Some(MessageBody::Deleted), "{id}");
    }

    // The same for a text that is its own body.
    let other = || NewMessage { kind: [8; 16], ..shared() };
    trial.send(ANNA, other()).await;
    let page = FetchResult { body: ResultBody::Content, ..success("page") };
    assert_eq!(trial.end_all(&page).await, 1);
    let copy = trial.send(ANNA, other()).await;
    assert_eq!(body(&trial, copy, Some(ANNA)).await, found(b"page"));
}

/// Whether its result is still there or not, and no earlier.
pub async fn a_body_expires(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let old = ended(&trial, ANNA, with_body(b"old", ENOUGH)).await;
    let others = ended(&trial, BERTA, with_body(b"another", ENOUGH)).await;
    trial.wait(KEEP / 2).await;
    let young = ended(&trial, ANNA, with_body(b"young", ENOUGH)).await;
    trial.wait(KEEP / 2).await;
    assert_eq!(prune(&trial, 100).await, 0, "not before its time");
    trial.wait(secs(1)).await;
    let mut pruned = 0;
    loop {
        match prune(&trial, 1).await {
            0 => break,
            count => pruned += count,
        }
    }
    assert_eq!(pruned, 2);
    for id in [old, others] {
        assert_eq!(body(&trial, id, None).await, Some(MessageBody::Deleted));
        assert_eq!(result_body(&trial, id).await, ResultBody::Deleted);
    }
    assert_eq!(body(&trial, young, None).await, found(b"young"));
    // A body outlives its message only until it expires.
    trial.wait(secs(1)).await;
    let deleted = trial.store.inbox.prune(Duration::ZERO, 100).await;
    assert_eq!(deleted.expect("messages are pruned"), 3);
    assert_eq!(body(&trial, young, None).await, None);
    trial.wait(KEEP).await;
    assert_eq!(prune(&trial, 100).await, 1);
}

/// The oldest ones of the same caller, and no more of them than necessary.
pub async fn the_oldest_bodies_make_room(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let others = ended(&trial, BERTA, with_body(&[1; 400], 1_000)).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(ended(&trial, ANNA, with_body(&[1; 400], 1_000)).await);
        trial.wait(secs(1)).await;
    }
    let are_there = async |ids: &[MessageId]| {
        let bodies = join_all(ids.iter().map(|id| body(&trial, *id, None))).await;
        let is_there = |body: Option<MessageBody>| match body.expect("the message is there") {
            MessageBody::Found { .. } => true,
            MessageBody::Deleted => false,
            other => panic!("{other:?}"),
        };
        bodies.into_iter().map(is_there).collect::<Vec<bool>>()
    };
    assert_eq!(are_there(&ids).await, [true, true]);
    ids.push(ended(&trial, ANNA, with_body(&[1; 201], 1_000)).await);
    assert_eq!(are_there(&ids).await, [false, true, true]);
    trial.wait(secs(1)).await;
    ids.push(ended(&trial, ANNA, with_body(&[1; 999], 1_000)).await);
    assert_eq!(are_there(&ids).await, [false, false, false, true]);
    assert_eq!(are_there(&[others]).await, [true]);
    // What expired makes room, too, and is counted once.
    trial.wait(KEEP + secs(1)).await;
    while prune(&trial, 100).await > 0 {}
    let full = [ended(&trial, ANNA, with_body(&[1; 500], 1_000)).await];
    ended(&trial, ANNA, with_body(&[1; 500], 1_000)).await;
    assert_eq!(are_there(&full).await, [true]);
    // One transaction may bring more than there is room for.
    for _ in 0..4 {
        trial.send(ANNA, message("http://a.test/")).await;
    }
    let leases = trial.lease(10).await;
    let end = |lease| finished(lease, Settlement::Done, Some(with_body(&[1; 500], 1_000)));
    trial.finish(leases.iter().map(end).collect()).await;
    let results = trial.results(ANNA, None).await;
    let kept = results.iter().filter(|one| matches!(one.result.body, ResultBody::Kept(_)));
    assert_eq!(kept.count(), 2);
}

/// Several processes that end messages of one caller at the same time keep to its quota, and use all of it.
pub async fn a_quota_holds_when_two_processes_write(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    let messages = (0..60).map(|n| message(&format!("http://a.test/{n}"))).collect();
    let submitted = here.try_to_submit(submission(ANNA, messages)).await;
    submitted.expect("it is accepted");
    let leases = (here.lease(30).await, there.lease(30).await);
    assert_eq!((leases.0.len(), leases.1.len()), (30, 30));
    let end = |trial: &'_ Trial, leases: Vec<Lease>| {
        let finish = trial.store.messages.finish.clone();
        async move {
            for three in leases.chunks(3) {
                let end =
                    |lease| finished(lease, Settlement::Done, Some(with_body(&[1; 100], 1_000)));
                let batch: Vec<_> = three.iter().map(end).collect();
                let settled = finish.finish(&batch).await.expect("a batch is answered");
                assert_eq!(settled, [Settled::Confirmed; 3]);
            }
        }
    };
    tokio::join!(end(&here, leases.0), end(&there, leases.1));
    let results = here.results(ANNA, None).await;
    let kept = results.iter().filter(|one| matches!(one.result.body, ResultBody::Kept(_)));
    assert_eq!((results.len(), kept.count()), (60, 10));
}

/// A process that slept past its lease stores no body, and neither does a settlement that is repeated.
pub async fn a_body_is_stored_with_its_result_only(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let lost = trial.lease_one().await;
    trial.clock.advance(LEASE_TTL);
    assert_eq!(trial.end(&lost, with_body(b"too late", ENOUGH)).await, Settled::Stale);
    trial.renew().await;
    let lease = trial.lease_one().await;
    assert_eq!(body(&trial, id, None).await, Some(MessageBody::NoResult));
    assert_eq!(trial.end(&lease, with_body(b"in time", ENOUGH)).await, Settled::Confirmed);
    assert_eq!(trial.end(&lease, with_body(b"again", ENOUGH)).await, Settled::Stale);
    assert_eq!(body(&trial, id, None).await, found(b"in time"));
}
