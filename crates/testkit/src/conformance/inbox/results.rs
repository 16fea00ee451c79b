//! Results: none is lost or skipped, and each caller gets its own in order.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    FetchResult, MessageStatus, OutboxMessage, OutboxMost, OutboxPage,
};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::retry::History;
use futures::future::join_all;

use super::InboxStore;
use super::trial::{
    ANNA, BERTA, Trial, cursors, failure, finished, message, secs, submission, success,
};

/// It is the same by message and in the outbox, and the message has the matching status.
pub async fn a_result_is_read_back_as_it_was_stored(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let page = FetchResult {
        extracted: Some(r#"{"title":"ä"}"#.to_owned()),
        details: Some(r#"{"final_url":"http://a.test/ä"}"#.to_owned()),
        attempts: 3,
        ..success("<p>page</p>")
    };
    let sent = message("http://a.test/1");
    let correlation_id = sent.correlation_id.clone();
    let good = trial.send(ANNA, sent).await;
    trial.wait(secs(5)).await;
    assert_eq!(trial.end(&trial.lease_one().await, page.clone()).await, Settled::Confirmed);
    let bad = trial.send(ANNA, message("http://a.test/2")).await;
    let lease = trial.lease_one().await;
    let skipped = finished(&lease, Settlement::Skipped, Some(failure("robots.txt")));
    assert_eq!(trial.finish(vec![skipped]).await, [Settled::Confirmed]);

    let results = trial.results(ANNA, None).await;
    let expected = OutboxMessage {
        cursor: 1,
        message: good,
        url: "http://a.test/1".to_owned(),
        retailer: "a-shop".to_owned(),
        correlation_id,
        created_at: trial.now(),
        result: page,
    };
    assert_eq!(results[0], expected);
    assert_eq!((results[1].message, results[1].cursor), (bad, 2));
    assert_eq!(results[1].result, failure("robots.txt"));
    let good = trial.message(good).await;
    let bad = trial.message(bad).await;
    assert_eq!((good.status, good.attempts), (MessageStatus::Completed, 3));
    assert_eq!(good.outbox.as_ref(), Some(&results[0]));
    assert_eq!((bad.status, bad.outbox.as_ref()), (MessageStatus::Failed, Some(&results[1])));
    let ledger = Ledger { accepted: 2, done: 1, skipped: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, ledger);
}

/// Queued or processing, and the number of attempts so far.
pub async fn a_message_shows_where_it_stands(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let stands = async || {
        let message = trial.message(id).await;
        (message.status, message.attempts)
    };
    assert_eq!(stands().await, (MessageStatus::Queued, 0));
    let lease = trial.lease_one().await;
    assert_eq!(stands().await, (MessageStatus::Processing, 0));
    let history = History { url_failures: 1, site_failures: 2, paced: 1, ..History::default() };
    let retry = Settlement::retry(trial.now() + secs(5), history);
    trial.finish(vec![finished(&lease, retry, None)]).await;
    assert_eq!(stands().await, (MessageStatus::Queued, 4));
    trial.clock.advance(secs(5));
    let lease = trial.lease_one().await;
    assert_eq!(stands().await, (MessageStatus::Processing, 4));
    trial.end(&lease, FetchResult { attempts: 5, ..failure("so") }).await;
    assert_eq!(stands().await, (MessageStatus::Failed, 5));
}

/// By number and by size, but never empty if there is a result.
pub async fn a_page_of_the_outbox_is_bounded(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for n in 0..6 {
        trial.send(ANNA, message(&format!("http://a.test/{n}"))).await;
    }
    assert_eq!(trial.end_all(&success(&"x".repeat(100))).await, 6);
    let page = async |after, results, bytes| match trial
        .page(ANNA, after, OutboxMost { results, bytes })
        .await
    {
        OutboxPage::Results { results, .. } => cursors(&results),
        OutboxPage::Gone { .. } => panic!("nothing is gone"),
    };
    assert_eq!(page(None, 4, u64::MAX).await, [1, 2, 3, 4]);
    assert_eq!(page(Some(4), 4, u64::MAX).await, [5, 6]);
    assert_eq!(page(Some(6), 4, u64::MAX).await, [0; 0]);
    assert_eq!(page(None, 6, 1).await, [1]);
    assert_eq!(page(None, 6, 0).await, [1]);
    assert_eq!(page(Some(0), 6, 200).await, [1, 2]);
    assert_eq!(page(Some(2), 6, 201).await, [3, 4, 5]);
    // All long texts count.
    for n in 0..3 {
        trial.send(ANNA, message(&format!("http://a.test/more/{n}"))).await;
    }
    let text = |bytes| Some("x".repeat(bytes));
    let result = FetchResult { extracted: text(300), details: text(200), ..success("") };
    assert_eq!(trial.end_all(&result).await, 3);
    assert_eq!(page(Some(6), 6, 500).await, [7]);
    assert_eq!(page(Some(6), 6, 501).await, [7, 8]);
}

/// It is from another store, or from before this one was restored: a reader that continued there would miss results.
pub async fn a_cursor_beyond_the_newest_result_is_gone(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let most = OutboxMost { results: 10, bytes: u64::MAX };
    let nothing_yet = OutboxPage::Results { results: Vec::new(), next: 0 };
    assert_eq!(trial.page(ANNA, Some(0), most).await, nothing_yet);
    assert_eq!(trial.page(ANNA, Some(1), most).await, OutboxPage::Gone { oldest: 0 });
    assert_eq!(trial.page("nobody", Some(1), most).await, OutboxPage::Gone { oldest: 0 });
    trial.send(ANNA, message("http://a.test/")).await;
    trial.end_all(&success("page")).await;
    let all_read = OutboxPage::Results { results: Vec::new(), next: 1 };
    assert_eq!(trial.page(ANNA, Some(1), most).await, all_read);
    assert_eq!(trial.page(ANNA, Some(2), most).await, OutboxPage::Gone { oldest: 0 });
    assert_eq!(trial.page(BERTA, Some(1), most).await, OutboxPage::Gone { oldest: 0 });
}

/// Results that are stored after it was asked for come after it.
pub async fn the_newest_cursor_is_the_end_of_the_outbox(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let newest =
        async |caller| trial.store.inbox.newest_cursor(caller).await.expect("it is answered");
    assert_eq!((newest(ANNA).await, newest("nobody").await), (0, 0));
    for number in 0..3 {
        trial.send(ANNA, message(&format!("http://a.test/{number}"))).await;
    }
    trial.end_all(&success("page")).await;
    assert_eq!((newest(ANNA).await, newest(BERTA).await), (3, 0));
}

/// Two processes settle messages of two callers at the same time: the cursors of each caller are consecutive.
pub async fn cursors_have_no_gaps_when_two_processes_write(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    send_to_both(&here, 60).await;
    tokio::join!(work_off(&here), work_off(&there));
    for caller in [ANNA, BERTA] {
        let results = here.results(caller, None).await;
        assert_eq!(cursors(&results), (1..=60).collect::<Vec<i64>>());
        let messages: BTreeSet<_> = results.iter().map(|result| result.message).collect();
        assert_eq!(messages.len(), 60);
    }
}

/// A reader that continues from the last cursor during writes gets each result once.
pub async fn a_reader_that_follows_misses_nothing(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    send_to_both(&here, 50).await;
    let read = async {
        let mut seen: Vec<OutboxMessage> = Vec::new();
        for _ in 0..10_000 {
            let after = seen.last().map(|last| last.cursor);
            let more = here.results(ANNA, after).await;
            seen.extend(more);
            if seen.len() >= 50 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        seen
    };
    let (seen, (), ()) = tokio::join!(read, work_off(&here), work_off(&there));
    assert_eq!(cursors(&seen), (1..=50).collect::<Vec<i64>>());
    assert_eq!(seen, here.results(ANNA, None).await);
}

async fn send_to_both(trial: &Trial, count: usize) {
    for caller in [ANNA, BERTA] {
        let messages = (0..count).map(|n| message(&format!("http://a{n}.test/{caller}")));
        trial.submit(caller, messages.collect()).await;
    }
}

/// Takes and settles what is available, in small concurrent batches.
async fn work_off(trial: &Trial) {
    let mut misses = 0;
    while misses < 5 {
        let batches = join_all((0..3).map(|_| trial.lease(4))).await;
        misses = if batches.concat().is_empty() { misses + 1 } else { 0 };
        let end = batches.into_iter().map(|leases| async move {
            let ends = leases
                .iter()
                .map(|lease| finished(lease, Settlement::Done, Some(success(&lease.job.url))));
            for settled in trial.finish(ends.collect()).await {
                assert_eq!(settled, Settled::Confirmed);
            }
        });
        join_all(end).await;
    }
}

/// Text that a store cannot represent is stored as well as possible, and blocks no other result.
pub async fn a_strange_result_harms_no_other(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for n in 0..3 {
        trial.send(ANNA, message(&format!("http://a{n}.test/"))).await;
    }
    let strange = FetchResult {
        error: Some("e\0".to_owned()),
        extracted: Some("x\0".to_owned()),
        details: Some("d\0".to_owned()),
        content_type: Some("t\0".to_owned()),
        ..success("a\0b")
    };
    let results = [success("one"), strange.clone(), success("three")];
    let leases = trial.lease(10).await;
    let ends = leases
        .iter()
        .zip(&results)
        .map(|(lease, result)| finished(lease, Settlement::Done, Some(result.clone())));
    assert_eq!(trial.finish(ends.collect()).await, [Settled::Confirmed; 3]);
    let stored = trial.results(ANNA, None).await;
    assert_eq!((&stored[0].result, &stored[2].result), (&results[0], &results[2]));
    let readable = |text: &Option<String>| text.clone().map(|text| text.replace('\0', "\u{FFFD}"));
    assert_eq!(readable(&stored[1].result.content), readable(&strange.content));
    assert_eq!(readable(&stored[1].result.error), readable(&strange.error));
}

/// Waiting readers in this process are notified.
pub async fn a_new_result_rings_for_its_caller(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let annas = trial.store.results.listen(ANNA);
    let bertas = trial.store.results.listen(BERTA);
    trial.try_to_submit(submission(ANNA, vec![message("http://a.test/")])).await.expect("accepted");
    assert!(!annas.has_changed().expect("the bell is there"));
    trial.end_all(&success("page")).await;
    assert!(annas.has_changed().expect("the bell is there"));
    assert!(!bertas.has_changed().expect("the bell is there"));
}
