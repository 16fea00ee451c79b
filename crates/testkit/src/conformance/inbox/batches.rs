//! Batches: their messages are counted as they end, and the last one completes the batch, once.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    BatchId, FetchResult, Idempotency, MessageId, NewBatch, NewMessage, OutboxMost, OutboxPage,
    Submission, Submitted,
};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::message_batches::{
    BatchCounts, CANCELLED_AT_ONCE, Completion, MessageBatch, OPEN_AT_ONCE, OpenBatch, ReadUpTo,
    Unanswered,
};
use fetchwell_engine::ports::oversight::Action;
use fetchwell_policy::retry::History;
use futures::future::join_all;

use super::InboxStore;
use super::trial::{
    ANNA, BERTA, Trial, cursors, failure, finished, message, secs, shared, submission, success,
};

const EVERYTHING: OutboxMost = OutboxMost { results: 100_000, bytes: u64::MAX };

fn many(count: usize) -> Vec<NewMessage> {
    (0..count).map(|number| message(&format!("http://a{number}.test/"))).collect()
}

fn batch(caller: &str, messages: Vec<NewMessage>, new: NewBatch) -> Submission {
    Submission { batch: Some(new), ..submission(caller, messages) }
}

fn id_of(messages: &[NewMessage]) -> BatchId {
    BatchId::of(messages.iter().map(|message| message.id)).expect("a batch has messages")
}

fn id_in(lease: &Lease, messages: &[NewMessage]) -> MessageId {
    let found = messages.iter().find(|message| message.url == lease.job.url);
    found.expect("the lease is for one of them").id
}

impl Trial {
    async fn send_batch(&self, caller: &str, messages: Vec<NewMessage>) -> BatchId {
        let id = id_of(&messages);
        let submitted = self.try_to_submit(batch(caller, messages, NewBatch::default())).await;
        assert!(matches!(submitted, Ok(Submitted::Accepted { .. })), "{submitted:?}");
        id
    }

    async fn batch(&self, id: BatchId) -> MessageBatch {
        self.find_batch(id, None).await.expect("the batch is there")
    }

    async fn find_batch(&self, id: BatchId, of: Option<&str>) -> Option<MessageBatch> {
        self.store.batches.batch(id, of).await.expect("batches can be read")
    }

    async fn ended(&self, caller: &str, read: ReadUpTo, until: i64) -> Vec<MessageBatch> {
        let found = self.store.batches.ended_batches(caller, read, until, 1_000).await;
        found.expect("ended batches can be read")
    }

    async fn results_of(&self, id: BatchId, after: Option<i64>, most: u32) -> OutboxPage {
        let most = OutboxMost { results: most, ..EVERYTHING };
        let page = self.store.batches.results(id, Some(ANNA), after, most).await;
        page.expect("results can be read").expect("the batch is there")
    }

    async fn cancel_some(&self, id: BatchId) -> u32 {
        let cancelled = self.store.batches.cancel_some(id).await.expect("messages are cancelled");
        self.ledger().await;
        cancelled
    }

    async fn open_batches(&self, after: Option<BatchId>) -> Vec<OpenBatch> {
        self.store.batches.open(after).await.expect("open batches are found")
    }

    async fn recount(&self, id: BatchId) -> bool {
        let recounted = self.store.batches.recount(id).await.expect("a batch is recounted");
        self.ledger().await;
        recounted
    }

    async fn bury(&self, lease: &Lease) {
        let dead = Settlement::Dead { reason: "no plan".to_owned() };
        assert_eq!(self.finish(vec![finished(lease, dead, None)]).await, [Settled::Confirmed]);
    }
}

/// Each batch of a list has its own messages in flight.
pub async fn the_messages_in_flight_are_counted_for_each_batch(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, message("http://alone.test/")).await;
    trial.send_batch(BERTA, many(4)).await;
    let ended = trial.send_batch(ANNA, many(1)).await;
    trial.end_all(&success("page")).await;
    let large = trial.send_batch(ANNA, many(5)).await;
    let small = trial.send_batch(ANNA, many(2)).await;
    trial.lease(100).await;
    let waiting = trial.send_batch(ANNA, many(3)).await;
    let found = trial.store.batches.batches(ANNA, None, 10).await.expect("batches are listed");
    let found: Vec<_> = found
        .iter()
        .map(|batch| (batch.id, batch.counts.processing, batch.counts.queued()))
        .collect();
    assert_eq!(found, [(waiting, 0, 3), (small, 2, 0), (large, 5, 0), (ended, 0, 0)]);
    assert_eq!(trial.batch(small).await.counts.processing, 2);
}

/// With or without a result: every end counts, once.
pub async fn a_batch_counts_its_messages_as_they_end(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, message("http://alone.test/")).await;
    let expected_in = secs(90);
    let messages = many(6);
    let id = id_of(&messages);
    let new = NewBatch { expected_in, skipped: 3, ..NewBatch::default() };
    trial.try_to_submit(batch(ANNA, messages.clone(), new)).await.expect("it is accepted");
    let counts = BatchCounts { total: 6, ..BatchCounts::default() };
    let fresh = trial.batch(id).await;
    assert_eq!((fresh.counts, fresh.skipped, fresh.completion), (counts, 3, None));
    assert_eq!((fresh.caller.as_str(), fresh.created_at), (ANNA, trial.now()));
    assert_eq!(fresh.expected_at, trial.now() + expected_in);
    assert_eq!(counts.queued(), 6);

    let leases = trial.lease(100).await;
    let of_batch = |lease: &&Lease| lease.job.url != "http://alone.test/";
    let held: Vec<&Lease> = leases.iter().filter(of_batch).collect();
    assert_eq!(trial.batch(id).await.counts, BatchCounts { processing: 6, ..counts });
    trial.end(held[0], success("page")).await;
    trial.end(held[1], failure("gone")).await;
    trial.bury(held[2]).await;
    let again = Settlement::retry(trial.now() + secs(60), History::default());
    trial.finish(vec![finished(held[3], again, None)]).await;
    let some = trial.batch(id).await;
    let expected = BatchCounts { processing: 2, completed: 1, failed: 2, ..counts };
    assert_eq!((some.counts, some.counts.queued(), some.ended_at), (expected, 1, None));
    // What was settled before changes nothing.
    assert_eq!(trial.end(held[0], success("again")).await, Settled::Stale);
    assert_eq!(trial.batch(id).await.counts, expected);

    trial.end(held[4], success("page")).await;
    trial.end(held[5], success("page")).await;
    trial.wait(secs(61)).await;
    assert_eq!(trial.batch(id).await.ended_at, None);
    assert_eq!(trial.end_all(&success("page")).await, 1);
    let done = trial.batch(id).await;
    let expected = BatchCounts { completed: 4, failed: 2, ..counts };
    assert_eq!((done.counts, done.ended_at), (expected, Some(trial.now())));
    assert_eq!(done.completion, Some(Completion { number: 1, cursor: 5 }));
}

/// Two processes that end its messages at the same time complete it once; a caller's batches are numbered without gaps.
pub async fn a_batch_ends_once_whoever_ends_its_messages(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    let mut ids: BTreeSet<BatchId> = BTreeSet::new();
    for round in 0..8 {
        let messages = (0..5).map(|n| message(&format!("http://a{n}.test/{round}"))).collect();
        ids.insert(here.send_batch(ANNA, messages).await);
        let messages = (0..3).map(|n| message(&format!("http://a{n}.test/b{round}"))).collect();
        here.send_batch(BERTA, messages).await;
    }
    let mine = here.lease(32).await;
    let theirs = there.lease(1_000).await;
    assert_eq!((mine.len(), theirs.len()), (32, 32));
    let groups =
        mine.chunks(4).map(|some| (&here, some)).chain(theirs.chunks(4).map(|some| (&there, some)));
    let finish = groups.map(|(trial, leases)| {
        let end = |lease| finished(lease, Settlement::Done, Some(success("page")));
        trial.finish(leases.iter().map(end).collect())
    });
    for settled in join_all(finish).await {
        assert_eq!(settled, [Settled::Confirmed; 4]);
    }
    let ended = here.ended(ANNA, ReadUpTo::Nothing, i64::MAX).await;
    let numbers: Vec<i64> =
        ended.iter().filter_map(|batch| Some(batch.completion?.number)).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    assert_eq!(ended.iter().map(|batch| batch.id).collect::<BTreeSet<_>>(), ids);
    assert!(ended.iter().all(|batch| batch.counts.completed == 5), "{ended:?}");
    assert_eq!(here.ended(BERTA, ReadUpTo::Nothing, i64::MAX).await.len(), 8);
}

/// A reader that knows the last result or the last batch that it saw gets what follows, and nothing else.
pub async fn ended_batches_are_read_in_their_order(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let first = trial.send_batch(ANNA, many(2)).await;
    trial.end_all(&success("page")).await;
    trial.send(ANNA, message("http://alone.test/")).await;
    trial.end_all(&success("page")).await;
    let dead = trial.send_batch(ANNA, many(1)).await;
    trial.bury(&trial.lease_one().await).await;
    let last = trial.send_batch(ANNA, many(1)).await;
    trial.end_all(&success("page")).await;
    let ids = async |read, until| {
        let found = trial.ended(ANNA, read, until).await;
        found.into_iter().map(|batch| batch.id).collect::<Vec<_>>()
    };
    // The results: 1 and 2 of the first batch, 3 alone, 4 of the last batch.
    assert_eq!(ids(ReadUpTo::Nothing, 4).await, [first, dead, last]);
    assert_eq!(ids(ReadUpTo::Nothing, 1).await, []);
    assert_eq!(ids(ReadUpTo::Nothing, 2).await, [first]);
    assert_eq!(ids(ReadUpTo::Nothing, 3).await, [first, dead]);
    assert_eq!(ids(ReadUpTo::Cursor(2), 4).await, [first, dead, last], "it may be unread");
    assert_eq!(ids(ReadUpTo::Cursor(3), 4).await, [dead, last]);
    assert_eq!(ids(ReadUpTo::Number(1), 4).await, [dead, last]);
    assert_eq!(ids(ReadUpTo::Number(3), 4).await, []);
    assert!(trial.ended(BERTA, ReadUpTo::Nothing, 4).await.is_empty());
}

/// The webhook of a batch is called once, when it has ended.
pub async fn the_end_of_a_batch_is_delivered_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let messages = many(2);
    let id = id_of(&messages);
    let callback_url = Some("http://hook.test/x".to_owned());
    let new = NewBatch { callback_url: callback_url.clone(), ..NewBatch::default() };
    trial.try_to_submit(batch(ANNA, messages, new)).await.expect("it is accepted");
    let leases = trial.lease(10).await;
    trial.end(&leases[0], success("page")).await;
    assert!(trial.deliveries().await.is_empty());
    trial.end(&leases[1], failure("gone")).await;
    let deliveries = trial.deliveries().await;
    let told: Vec<_> = deliveries.iter().map(|one| (&one.job.payload, &one.job.url)).collect();
    assert_eq!(told, [(&id.to_string().into_bytes(), &"http://hook.test/x".to_owned())]);
    assert_eq!(deliveries[0].job.lane.party.as_deref(), Some(ANNA));
    assert_eq!(trial.batch(id).await.callback_url, callback_url);
}

/// The cursor of the outbox serves for a batch, too.
pub async fn the_results_of_a_batch_come_in_order_and_no_others(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send_batch(ANNA, many(5)).await;
    let nothing = OutboxPage::Results { results: Vec::new(), next: 0 };
    assert_eq!(trial.results_of(id, None, 10).await, nothing);
    let leases = trial.lease(100).await;
    for lease in &leases {
        trial.end(lease, success(&lease.job.url)).await;
        trial.send(ANNA, message("http://alone.test/")).await;
        trial.end_all(&success("alone")).await;
    }
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let OutboxPage::Results { results, next } = trial.results_of(id, after, 2).await else {
            panic!("nothing is gone");
        };
        if results.is_empty() {
            break;
        }
        assert_eq!(cursors(&results).last(), Some(&next));
        seen.extend(results);
        after = Some(next);
    }
    assert_eq!(cursors(&seen), [1, 3, 5, 7, 9]);
    let urls: Vec<_> = leases.iter().map(|lease| lease.job.url.as_str()).collect();
    assert_eq!(seen.iter().map(|result| result.url.as_str()).collect::<Vec<_>>(), urls);
    let same = trial.results(ANNA, Some(8)).await;
    assert_eq!(seen.last(), same.first());
    assert_eq!(trial.results_of(id, Some(11), 2).await, OutboxPage::Gone { oldest: 0 });
    // One large content ends a page.
    let small = OutboxMost { results: 10, bytes: 1 };
    let page = trial.store.batches.results(id, None, None, small).await.expect("it is read");
    let Some(OutboxPage::Results { results, .. }) = page else { panic!("{page:?}") };
    assert_eq!(cursors(&results), [1]);
}

/// A page that is not text, and a failure without a status of the site; but not a 404 or a 304.
pub async fn the_unanswered_pages_of_a_batch_are_told_apart(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let messages = many(9);
    let id = trial.send_batch(ANNA, messages.clone()).await;
    let result = |status: &str, http_status, content: Option<&str>| FetchResult {
        status: status.to_owned(),
        http_status,
        content: content.map(str::to_owned),
        error: Some(format!("why {status}")),
        ..FetchResult::default()
    };
    let leases = trial.lease(100).await;
    let results = [
        result("success", Some(200), Some("page")),
        result("success", Some(200), None),
        result("success", Some(304), None),
        result("http_error", Some(404), None),
        result("http_error", Some(200), None),
        result("http_error", Some(503), None),
        result("timeout", None, None),
        result("refused_by_robots", None, None),
        result("success", Some(200), Some("")),
    ];
    for (lease, result) in leases.iter().zip(results) {
        trial.end(lease, result).await;
    }
    let read = async |of: Option<&str>, after: i64, most: u32| {
        let found = trial.store.batches.unanswered(id, of, after, most).await;
        let found = found.expect("they can be read");
        found.into_iter().map(|one| (one.cursor, one.status)).collect::<Vec<_>>()
    };
    let row = |cursor: i64, status: &str| (cursor, status.to_owned());
    let all =
        [row(2, "success"), row(5, "http_error"), row(7, "timeout"), row(8, "refused_by_robots")];
    assert_eq!(read(Some(ANNA), 0, 100).await, all);
    assert_eq!(read(None, 2, 2).await, all[1..3]);
    assert_eq!(read(Some(BERTA), 0, 100).await, []);
    let found = trial.store.batches.unanswered(id, None, 5, 1).await.expect("it is read");
    let expected = Unanswered {
        cursor: 7,
        message: id_in(&leases[6], &messages),
        url: leases[6].job.url.clone(),
        created_at: trial.now(),
        status: "timeout".to_owned(),
        error: Some("why timeout".to_owned()),
    };
    assert_eq!(found, [expected]);
}

/// Nothing tells a caller that a batch of another one exists.
pub async fn anothers_batch_is_as_unknown_as_one_that_never_was(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let first = trial.send_batch(ANNA, many(2)).await;
    let second = trial.send_batch(ANNA, many(1)).await;
    let never = id_of(&many(1));
    let batches = &trial.store.batches;
    for (id, of) in [(first, BERTA), (never, ANNA)] {
        assert_eq!(trial.find_batch(id, Some(of)).await, None);
        let results = batches.results(id, Some(of), None, EVERYTHING).await;
        assert_eq!(results.expect("it is answered"), None);
        assert!(!batches.cancel(id, Some(of)).await.expect("it is answered"));
    }
    assert_eq!(trial.batch(first).await.cancelled_at, None);
    assert!(trial.find_batch(first, Some(ANNA)).await.is_some());
    let ids = async |caller, after, most| {
        let found = batches.batches(caller, after, most).await.expect("batches are listed");
        found.into_iter().map(|batch| batch.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(ANNA, None, 10).await, [second, first]);
    assert_eq!(ids(ANNA, None, 1).await, [second]);
    assert_eq!(ids(ANNA, Some(second), 10).await, [first]);
    assert_eq!(ids(ANNA, Some(first), 10).await, []);
    assert_eq!(ids(BERTA, None, 10).await, []);
}

/// What waits is cancelled; what is in flight ends, or is cancelled when it comes back to wait.
pub async fn a_cancelled_batch_ends(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let messages = many(6);
    let id = trial.send_batch(ANNA, messages.clone()).await;
    let beside = trial.send_batch(ANNA, vec![message("http://z.test/")]).await;
    let held = trial.lease(3).await;
    let in_batch: Vec<&Lease> =
        held.iter().filter(|lease| lease.job.url != "http://z.test/").collect();
    assert_eq!(trial.cancel_some(id).await, 0, "it is not cancelled yet");
    assert!(trial.store.batches.cancel(id, Some(ANNA)).await.expect("it is cancelled"));
    assert_eq!(trial.batch(id).await.cancelled_at, Some(trial.now()));
    let waiting = u32::try_from(6 - in_batch.len()).expect("a few");
    assert_eq!(trial.cancel_some(id).await, waiting);
    assert_eq!(trial.cancel_some(id).await, 0);
    let open = trial.open_batches(None).await;
    let open: Vec<_> = open.iter().map(|batch| (batch.id, batch.is_cancelled)).collect();
    assert_eq!(open, [(id, true), (beside, false)]);
    let counts = trial.batch(id).await.counts;
    assert_eq!((counts.failed, counts.cancelled, counts.queued()), (waiting, waiting, 0));

    let back = Settlement::HandBack { at: trial.now() };
    trial.finish(vec![finished(in_batch[0], back, None)]).await;
    for lease in &in_batch[1..] {
        trial.end(lease, success("page")).await;
    }
    assert_eq!(trial.batch(id).await.ended_at, None);
    assert_eq!(trial.cancel_some(id).await, 1);
    let done = trial.batch(id).await;
    assert_eq!((done.counts.cancelled, done.counts.ended()), (waiting + 1, 6));
    assert!(done.ended_at.is_some());
    assert_eq!(trial.ended(ANNA, ReadUpTo::Nothing, i64::MAX).await.len(), 1);
    let cancelled = trial.message(id_in(in_batch[0], &messages)).await.outbox.expect("a result");
    assert_eq!(cancelled.result.status, FetchResult::CANCELLED);
    assert_eq!(cancelled.result.error.as_deref(), Some("cancelled with its batch"));
    // A batch that has ended stays as it is, and so does the other one.
    assert!(trial.store.batches.cancel(id, None).await.expect("it is answered"));
    assert_eq!(trial.batch(id).await, done);
    assert_eq!(trial.batch(beside).await.counts.cancelled, 0);
}

/// However large a batch is, one call is a short transaction.
pub async fn a_large_batch_is_cancelled_in_parts(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let part = usize::try_from(CANCELLED_AT_ONCE).expect("it fits");
    let id = trial.send_batch(ANNA, many(part + 7)).await;
    trial.store.batches.cancel(id, None).await.expect("it is cancelled");
    assert_eq!(trial.cancel_some(id).await, CANCELLED_AT_ONCE);
    assert_eq!(trial.batch(id).await.ended_at, None);
    assert_eq!(trial.cancel_some(id).await, 7);
    let done = trial.batch(id).await;
    assert!(done.ended_at.is_some() && done.counts.cancelled == done.counts.total, "{done:?}");
    assert_eq!(trial.results(ANNA, None).await.len(), part + 7);
}

/// An operator's retry is a new message, which belongs to no batch.
pub async fn a_retried_message_reopens_no_batch(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let messages = many(2);
    let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
    let id = trial.send_batch(ANNA, messages).await;
    let act = async |act, id| {
        let deeds = trial.store.oversight.act_on(act, &[id], None).await.expect("it is answered");
        deeds[0]
    };
    // A cancelled message counts, whoever cancelled it.
    act(Action::Cancel, ids[0]).await;
    let lease = trial.lease_one().await;
    trial.end(&lease, failure("gone")).await;
    let done = trial.batch(id).await;
    assert_eq!((done.counts.failed, done.counts.cancelled), (2, 1));
    assert!(done.ended_at.is_some());
    for id in ids {
        assert!(act(Action::Retry, id).await.another_try().is_some());
    }
    assert_eq!(trial.end_all(&success("page")).await, 2);
    assert_eq!(trial.batch(id).await, done);
    let OutboxPage::Results { results, .. } = trial.results_of(id, None, 10).await else {
        panic!("nothing is gone");
    };
    assert_eq!(results.len(), 2);
    assert_eq!(trial.ended(ANNA, ReadUpTo::Nothing, i64::MAX).await.len(), 1);
}

/// A stored page ends a message with its submission, and a leader ends its followers.
pub async fn shared_results_count_in_their_batches(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    trial.end_all(&success("page")).await;
    let at_once =
        vec![shared("http://a.test/", 1, secs(60)), shared("http://a.test/", 1, secs(60))];
    let id = trial.send_batch(ANNA, at_once).await;
    let done = trial.batch(id).await;
    assert_eq!((done.counts.completed, done.ended_at), (2, Some(trial.now())));
    let followers = (0..3).map(|_| shared("http://b.test/", 2, secs(60))).collect();
    let id = trial.send_batch(ANNA, followers).await;
    let lease = trial.lease_one().await;
    assert_eq!(trial.batch(id).await.counts.processing, 1);
    trial.end(&lease, failure("gone")).await;
    let done = trial.batch(id).await;
    assert_eq!((done.counts.failed, done.ended_at), (3, Some(trial.now())));
    let numbers: BTreeMap<i64, i64> = trial
        .ended(ANNA, ReadUpTo::Nothing, i64::MAX)
        .await
        .iter()
        .filter_map(|batch| Some((batch.completion?.number, batch.completion?.cursor)))
        .collect();
    assert_eq!(numbers, BTreeMap::from([(1, 3), (2, 6)]));
}

/// A batch is there as long as a result of it is, and then it is gone.
pub async fn a_batch_goes_with_its_results(place: &dyn InboxStore) {
    const KEEP_S: u64 = 1_000;
    let trial = Trial::new(place).await;
    let prune = async |most| {
        trial.store.inbox.prune(secs(KEEP_S), most).await.expect("old data is removed")
    };
    let id = trial.send_batch(ANNA, many(3)).await;
    let empty = trial.send_batch(BERTA, many(1)).await;
    let leases = trial.lease(100).await;
    for lease in leases {
        match lease.job.lane.party.as_deref() {
            Some(ANNA) => drop(trial.end(&lease, success("page")).await),
            _ => trial.bury(&lease).await,
        }
    }
    let running = trial.send_batch(ANNA, many(1)).await;
    trial.wait(secs(KEEP_S + 1)).await;
    assert_eq!(prune(2).await, 2);
    assert!(trial.find_batch(id, None).await.is_some());
    assert_eq!(trial.results_of(id, Some(1), 10).await, OutboxPage::Gone { oldest: 2 });
    let OutboxPage::Results { results, .. } = trial.results_of(id, None, 10).await else {
        panic!("one is left");
    };
    assert_eq!(cursors(&results), [3]);
    prune(100).await;
    prune(100).await;
    assert_eq!(trial.find_batch(id, None).await, None);
    assert_eq!(trial.find_batch(empty, None).await, None, "it had no results");
    assert!(trial.find_batch(running, None).await.is_some(), "it has not ended");
    assert!(trial.ended(ANNA, ReadUpTo::Nothing, i64::MAX).await.is_empty());
    // Numbers are not used again.
    trial.end_all(&success("page")).await;
    let completion = trial.batch(running).await.completion;
    assert_eq!(completion, Some(Completion { number: 2, cursor: 4 }));
}

/// An instance of an earlier release on the same store ends messages and knows nothing of their batch.
pub async fn what_an_earlier_release_ended_is_counted_in_the_end(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let messages = many(5);
    let id = id_of(&messages);
    let callback_url = Some("http://hook.test/x".to_owned());
    let new = NewBatch { callback_url, ..NewBatch::default() };
    trial.try_to_submit(batch(ANNA, messages, new)).await.expect("it is accepted");
    let leases = trial.lease(10).await;
    trial.end(&leases[0], success("page")).await;
    place.execute("UPDATE {}job SET batch = NULL").await;
    trial.end(&leases[1], success("page")).await;
    trial.end(&leases[2], failure("gone")).await;
    trial.bury(&leases[3]).await;
    place.execute("UPDATE {}job SET batch = (SELECT id FROM {}message_batch)").await;
    let open = OpenBatch { id, is_cancelled: false, has_messages_left: true };
    assert_eq!(trial.open_batches(None).await, [open]);
    assert!(!trial.recount(id).await, "one is left");

    trial.end(&leases[4], success("page")).await;
    let counted = trial.batch(id).await;
    assert_eq!((counted.counts.ended(), counted.ended_at), (2, None));
    let open = OpenBatch { has_messages_left: false, ..open };
    assert_eq!(trial.open_batches(None).await, [open]);
    assert!(trial.deliveries().await.is_empty());
    assert!(trial.recount(id).await);
    assert!(!trial.recount(id).await, "it has ended");
    let done = trial.batch(id).await;
    let counts = BatchCounts { total: 5, completed: 3, failed: 2, ..BatchCounts::default() };
    assert_eq!((done.counts, done.ended_at), (counts, Some(trial.now())));
    assert_eq!(done.completion, Some(Completion { number: 1, cursor: 4 }));
    assert_eq!(trial.ended(ANNA, ReadUpTo::Nothing, i64::MAX).await, [done]);
    let OutboxPage::Results { results, .. } = trial.results_of(id, None, 10).await else {
        panic!("nothing is gone");
    };
    assert_eq!(cursors(&results), [1, 2, 3, 4]);
    assert_eq!(trial.deliveries().await.len(), 1);
    assert!(trial.open_batches(None).await.is_empty());
}

/// An earlier release deletes results, and leaves their entries in the batch behind.
pub async fn a_batch_goes_when_an_earlier_release_deleted_its_results(place: &dyn InboxStore) {
    const KEEP_S: u64 = 1_000;
    let trial = Trial::new(place).await;
    let id = trial.send_batch(ANNA, many(2)).await;
    trial.end_all(&success("page")).await;
    trial.wait(secs(KEEP_S + 1)).await;
    for statement in
        ["DELETE FROM {}outbox", "DELETE FROM {}job", "UPDATE {}caller SET pruned = results"]
    {
        place.execute(statement).await;
    }
    trial.store.inbox.prune(secs(KEEP_S), 100).await.expect("old data is removed");
    assert_eq!(trial.find_batch(id, None).await, None);
}

/// However many there are, one call returns few, and the next one continues.
pub async fn open_batches_are_found_in_parts(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let part = usize::try_from(OPEN_AT_ONCE).expect("it fits");
    let mut ids = Vec::new();
    for _ in 0..part + 3 {
        ids.push(trial.send_batch(ANNA, many(1)).await);
    }
    let mut found = trial.open_batches(None).await;
    assert_eq!(found.len(), part);
    found.extend(trial.open_batches(found.last().map(|last| last.id)).await);
    let found: Vec<BatchId> = found.iter().map(|batch| batch.id).collect();
    ids.sort();
    assert_eq!(found, ids);
}

/// What was stored with the first submission answers the second one.
pub async fn a_repeated_batch_is_the_same_batch(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let named = |told: &str| {
        let idempotency = Some(Idempotency { key: "k".to_owned(), body_hash: [1; 32] });
        let skipped_told = Some(told.to_owned());
        let new = NewBatch { skipped: 1, skipped_told, ..NewBatch::default() };
        Submission { idempotency, ..batch(ANNA, many(3), new) }
    };
    let first = trial.try_to_submit(named("first")).await.expect("it is accepted");
    let second = trial.try_to_submit(named("second")).await.expect("it is answered");
    let Submitted::Accepted { ids, .. } = first else { panic!("{first:?}") };
    assert_eq!(second, Submitted::Accepted { ids: ids.clone(), created_at: None });
    let id = BatchId::of(ids).expect("it has messages");
    let told = trial.store.batches.skipped_told(id).await.expect("it is read");
    assert_eq!(told.as_deref(), Some("first"));
    assert_eq!(trial.batch(id).await.counts.total, 3);
    let listed = trial.store.batches.batches(ANNA, None, 10).await.expect("batches are listed");
    assert_eq!(listed.len(), 1);
}
