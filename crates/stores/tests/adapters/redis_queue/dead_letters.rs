//! Dead letters: what the outside sees of them, and what can be done about them.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetters, Letters, Revision, SinkThenBury,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement, Sink};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_engine::web::Phases;
use fetchwell_policy::retry::History;
use fetchwell_stores::redis::RedisInstance;
use parking_lot::Mutex;

use super::rig::{DEAD_LIST, Rig, settle, take, urls};

const GONE: &str = "the server answered 404";

fn group(reason: &str, site: &str) -> DeadGroup {
    DeadGroup { reason: reason.to_owned(), site: site.to_owned() }
}

/// A record of a door: a page, or a dead letter with its details.
enum Record {
    Page(&'static str),
    Letter(String),
}

#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl Sink<Record> for Pages {
    async fn write(&self, records: &[&Record]) -> Result<(), StoreError> {
        let mut pages = self.0.lock();
        pages.extend(records.iter().map(|record| match record {
            Record::Page(page) => *page,
            Record::Letter(_) => panic!("a dead letter is nothing for the sink"),
        }));
        Ok(())
    }
}

fn details_of(record: &Record) -> Option<String> {
    match record {
        Record::Page(_) => None,
        Record::Letter(details) => Some(details.clone()),
    }
}

fn finished(lease: &Lease, record: Record, settlement: Settlement) -> Finished<Record> {
    let records = vec![record];
    let phases = Phases::default();
    let share = Share::none();
    Finished { lease: lease.clone(), records, settlement, phases, share }
}

fn details(first_at: &str, last_at: &str) -> String {
    format!(
        r#"{{"failure":"url_specific","reason":"{GONE}","status_code":null,"attempts":1,"first_at":"{first_at}","last_at":"{last_at}"}}"#
    )
}

#[tokio::test]
async fn a_dead_letter_and_its_details_go_in_with_the_settlement() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/", "http://b.test/"]).await;
    let worker = Arc::new(rig.worker().await);
    let mut leases = take(&worker, 10).await;
    leases.sort_by_key(|lease| lease.id);
    let pages = Pages::default();
    let finish =
        SinkThenBury { sink: pages.clone(), instance: worker.clone(), details: details_of };
    let dead = Settlement::Dead { reason: GONE.to_owned() };
    let batch = [
        finished(&leases[0], Record::Page("a page"), Settlement::Done),
        finished(&leases[1], Record::Letter(details("1", "2")), dead),
    ];
    assert_eq!(finish.finish(&batch).await.unwrap(), [Settled::Confirmed; 2]);
    assert_eq!(*pages.0.lock(), ["a page"]);
    assert_eq!(
        rig.ask::<Vec<String>>(&format!("LRANGE {DEAD_LIST} 0 -1")).await,
        ["http://b.test/"]
    );
    let known: String = rig.ask(&format!("HGET {DEAD_LIST}:details http://b.test/")).await;
    assert_eq!(known, details("1", "2"));
    // What was stale wrote nothing.
    assert_eq!(finish.finish(&batch[1..]).await.unwrap(), [Settled::Stale]);
    assert_eq!(rig.ask::<usize>(&format!("LLEN {DEAD_LIST}")).await, 1);
    let letters = rig.queue.dead_letters_of("http://b.test/").await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((&letters[0].group, &letters[0].details), (&group(GONE, "b.test"), &Some(known)));
    assert_eq!(rig.ledger().await, Ledger { accepted: 2, done: 1, dead: 1, ..Ledger::default() });
}

#[tokio::test]
async fn of_equal_urls_the_last_has_the_word_but_for_when_it_began() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = Arc::new(rig.worker().await);
    let finish =
        SinkThenBury { sink: Pages::default(), instance: worker.clone(), details: details_of };
    for (first_at, last_at) in [("1", "2"), ("3", "4")] {
        rig.push(&["http://a.test/"]).await;
        let lease = take(&worker, 10).await.remove(0);
        let dead = Settlement::Dead { reason: GONE.to_owned() };
        let batch = [finished(&lease, Record::Letter(details(first_at, last_at)), dead)];
        finish.finish(&batch).await.unwrap();
    }
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let key = format!("{DEAD_LIST}:details");
    let known: String = rig.ask(&format!("HGET {key} http://a.test/")).await;
    assert_eq!(read(&known), read(&details("1", "4")));
    assert_eq!(rig.queue.dead_letters_of("http://a.test/").await.unwrap().len(), 2);
    assert_eq!(rig.ask::<usize>(&format!("LLEN {DEAD_LIST}")).await, 2);
    // The details go with the last of them.
    let all = Letters::OfGroup { group: group(GONE, "a.test"), most: 1 };
    assert_eq!(rig.queue.revise(&all, Revision::Drop).await.unwrap(), 1);
    assert_eq!(rig.ask::<usize>(&format!("HLEN {key}")).await, 1);
    assert_eq!(rig.queue.revise(&all, Revision::Drop).await.unwrap(), 1);
    assert_eq!(rig.ask::<usize>(&format!("HLEN {key}")).await, 0);
    assert_eq!(rig.ledger().await, Ledger { accepted: 2, skipped: 2, ..Ledger::default() });
}

#[tokio::test]
async fn a_retry_starts_with_a_clean_record_and_can_die_again() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = rig.worker().await;
    let accepted_at = rig.clock.now();
    rig.kill(&worker, "http://a.test/", GONE).await;
    rig.clock.advance(super::rig::POLL);
    let one = Letters::OfUrl("http://a.test/".to_owned());
    assert_eq!(rig.queue.revise(&one, Revision::Retry).await.unwrap(), 1);
    assert_eq!(rig.queue.revise(&one, Revision::Retry).await.unwrap(), 0);
    assert_eq!(rig.ask::<usize>(&format!("LLEN {DEAD_LIST}")).await, 0);
    assert_eq!(rig.ledger().await, Ledger { accepted: 1, queued: 1, ..Ledger::default() });
    let again = take(&worker, 10).await;
    assert_eq!((urls(&again), again[0].accepted_at), (vec!["http://a.test/"], accepted_at));
    assert_eq!(again[0].history, History::default());
    settle(&worker, &again[0], Settlement::Dead { reason: GONE.to_owned() }).await;
    assert_eq!(rig.queue.revise(&one, Revision::Drop).await.unwrap(), 1);
    assert_eq!(rig.ledger().await, Ledger { accepted: 1, skipped: 1, ..Ledger::default() });
}

#[tokio::test]
async fn pages_of_letters_name_each_once() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = rig.worker().await;
    for url in ["http://a.test/", "http://a.test/", "\0", "http://a.test/\0", "é"] {
        rig.kill(&worker, url, "so").await;
    }
    let mut seen = Vec::new();
    let mut from = None;
    loop {
        let page = rig.queue.dead_letters(from.as_deref(), 2).await.unwrap();
        seen.extend(page.letters.into_iter().map(|letter| letter.url));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["\0", "http://a.test/\0", "http://a.test/", "http://a.test/", "é"]);
    assert_eq!(rig.queue.dead_letters_of("http://a.test/").await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_list_is_as_long_as_others_leave_it() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = rig.worker().await;
    assert_eq!(rig.queue.backlog().await.unwrap().dead, 0);
    rig.kill(&worker, "http://a.test/", GONE).await;
    rig.ask::<()>(&format!("RPUSH {DEAD_LIST} http://b.test/ http://c.test/")).await;
    assert_eq!(rig.queue.backlog().await.unwrap().dead, 3);
    rig.ask::<()>(&format!("DEL {DEAD_LIST}")).await;
    assert_eq!(rig.queue.backlog().await.unwrap().dead, 0);
    assert!(rig.queue.dead_letters(None, 10).await.unwrap().letters.is_empty());
    assert_eq!(rig.ledger().await, Ledger { accepted: 1, skipped: 1, ..Ledger::default() });
}

/// Kills these, with details.
async fn kill_all(rig: &Rig, worker: &Arc<RedisInstance>, urls: &[&str]) {
    let finish =
        SinkThenBury { sink: Pages::default(), instance: worker.clone(), details: details_of };
    rig.push(urls).await;
    let leases = take(worker, urls.len()).await;
    assert_eq!(leases.len(), urls.len());
    let letter = |lease: &Lease| {
        let dead = Settlement::Dead { reason: GONE.to_owned() };
        finished(lease, Record::Letter(details("1", "2")), dead)
    };
    let batch: Vec<_> = leases.iter().map(letter).collect();
    finish.finish(&batch).await.unwrap();
}

#[tokio::test]
async fn an_instance_at_work_forgets_what_others_pop_with_its_details() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = Arc::new(rig.worker().await);
    kill_all(&rig, &worker, &["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let popped: String = rig.ask(&format!("LPOP {DEAD_LIST}")).await;
    // Nobody looks at dead letters; the next heartbeat finds it out.
    worker.renew().await.unwrap();
    let mut known: Vec<String> = rig.ask(&format!("HKEYS {DEAD_LIST}:details")).await;
    known.sort();
    let mut listed: Vec<String> = rig.ask(&format!("LRANGE {DEAD_LIST} 0 -1")).await;
    listed.sort();
    assert_eq!(known, listed);
    assert!(!known.contains(&popped), "{known:?}");
    let expected = Ledger { accepted: 3, dead: 2, skipped: 1, ..Ledger::default() };
    assert_eq!(rig.ledger().await, expected);
}

/// The length says nothing then.
#[tokio::test]
async fn one_letter_in_exchange_for_another_is_seen() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = Arc::new(rig.worker().await);
    kill_all(&rig, &worker, &["http://a.test/ours"]).await;
    rig.ask::<()>(&format!("LPOP {DEAD_LIST}")).await;
    rig.ask::<()>(&format!("RPUSH {DEAD_LIST} http://b.test/theirs")).await;
    let letters = rig.queue.dead_letters(None, 10).await.unwrap().letters;
    let found: Vec<_> = letters.iter().map(|letter| (&*letter.url, &*letter.group.site)).collect();
    assert_eq!(found, [("http://b.test/theirs", "b.test")]);
    assert_eq!(rig.ask::<usize>(&format!("HLEN {DEAD_LIST}:details")).await, 0);
    rig.ledger().await;
}

#[tokio::test]
async fn what_others_put_on_the_list_can_be_tried_or_dropped() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = rig.worker().await;
    for url in ["http://b.test/1", "http://b.test/1", "nonsense", "http://b.test/2"] {
        rig.ask::<()>(&format!("RPUSH {DEAD_LIST} {url}")).await;
    }
    let groups = rig.queue.dead_groups().await.unwrap();
    let sizes: Vec<u64> = groups.values().map(|group| group.letters).collect();
    assert_eq!(sizes, [1, 3], "{groups:?}");
    assert!(groups.keys().all(|group| group.reason.contains("another program")), "{groups:?}");
    // A second look makes no more of them.
    assert_eq!(rig.queue.dead_letters(None, 10).await.unwrap().letters.len(), 4);
    let one = Letters::OfUrl("http://b.test/2".to_owned());
    assert_eq!(rig.queue.revise(&one, Revision::Drop).await.unwrap(), 1);
    assert_eq!(rig.queue.revise(&Letters::All, Revision::Retry).await.unwrap(), 3);
    assert_eq!(rig.ask::<usize>(&format!("LLEN {DEAD_LIST}")).await, 0);
    let mut leases = take(&worker, 10).await;
    leases.sort_by_key(|lease| lease.job.url.clone());
    assert_eq!(urls(&leases), ["http://b.test/1", "http://b.test/1", "nonsense"]);
    let expected = Ledger { accepted: 4, in_flight: 3, skipped: 1, ..Ledger::default() };
    assert_eq!(rig.ledger().await, expected);
}

#[tokio::test]
async fn a_long_list_that_others_drained_in_part_is_followed() {
    let Some(rig) = Rig::if_there().await else { return };
    let worker = Arc::new(rig.worker().await);
    let many: Vec<String> = (0..2_600).map(|n| format!("http://a.test/{n:04}")).collect();
    for urls in many.chunks(200) {
        kill_all(&rig, &worker, &urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let popped: Vec<String> = rig.ask(&format!("LPOP {DEAD_LIST} 1500")).await;
    assert_eq!(popped.len(), 1_500);
    let revised = rig.queue.revise(&Letters::All, Revision::Drop).await.unwrap();
    assert_eq!(revised, 1_100);
    assert_eq!(rig.ask::<usize>(&format!("EXISTS {DEAD_LIST}:details")).await, 0);
    assert_eq!(rig.ledger().await, Ledger { accepted: 2_600, skipped: 2_600, ..Ledger::default() });
}
