//! PostgreSQL behind a line that breaks at any moment: nothing is lost, doubled or stuck.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    FetchResult, MessageId, MessageStatus, NewMessage, OutboxMost, OutboxPage, Submission,
    Submitted,
};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::chance::Chance;
use fetchwell_policy::url::WebUrl;
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{Database, open_retriever};
use fetchwell_testkit::conformance::servers::{run_sql, unused_postgres};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};

/// Longer than the test: what is stuck stays so, and shows.
const LEASE_TTL: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(20);
const CALLER: &str = "anna";
const SUBMISSIONS: u64 = 40;
const PER_SUBMISSION: u64 = 5;

/// A process, and the line between it and the server.
struct Process {
    proxy: FaultProxy,
    store: RetrieverStore,
}

impl Process {
    async fn start(address: &str) -> Process {
        let proxy = FaultProxy::start(host_and_port(address).parse().unwrap()).await.unwrap();
        let through = address.replacen(host_and_port(address), &proxy.address().to_string(), 1);
        let store = open(&through).await;
        Process { proxy, store }
    }

    /// Breaks the line every now and then, now in an answer and now between two.
    async fn break_the_line(&self, seed: u64, is_over: &AtomicBool) {
        let mut chance = Chance::seeded(seed);
        while !is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20 + chance.next_u64() % 100)).await;
            match chance.next_u64() % 3 {
                0 => self.proxy.cut(Cut::Reset),
                1 => self.proxy.down(Faults::cut_after(chance.next_u64() % 3_000, Cut::Close)),
                _ => self.proxy.up(Faults::cut_after(chance.next_u64() % 3_000, Cut::Reset)),
            }
            tokio::time::sleep(Duration::from_millis(chance.next_u64() % 50)).await;
            self.proxy.heal();
        }
        self.proxy.heal();
    }

    /// Submits until each submission was accepted. Returns what was.
    async fn submit_all(&self, salt: u64) -> Vec<MessageId> {
        let mut accepted = Vec::new();
        for number in 0..SUBMISSIONS {
            for attempt in 0.. {
                let messages = (0..PER_SUBMISSION).map(|n| {
                    let unique =
                        (u128::from(salt) << 64) | u128::from(number << 16 | n << 8 | attempt);
                    message(number, unique)
                });
                let caller = CALLER.to_owned();
                let from = "192.0.2.7".to_owned();
                let messages = messages.collect();
                let one = Submission { caller, from, idempotency: None, messages, batch: None };
                if let Ok(Submitted::Accepted { ids, .. }) = self.store.inbox.submit(one).await {
                    accepted.extend(ids);
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        accepted
    }

    /// Takes and ends messages, each batch as often as it takes, until `is_over`.
    async fn work(&self, is_over: &AtomicBool) {
        let source = &self.store.messages.source;
        while Source::renew(&**source).await.is_err() {}
        let demand = Demand { most: 7, most_per_site: 3, ..Demand::default() };
        while !is_over.load(Ordering::Relaxed) {
            let Ok(Taken::Jobs(leases)) = source.take(&demand).await else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let batch: Vec<Finished<FetchResult>> = leases.into_iter().map(end_of).collect();
            while self.store.messages.finish.finish(&batch).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

async fn open(address: &str) -> RetrieverStore {
    let db = Database::open(address).await.unwrap();
    open_retriever(db, StoreClock::Server(Clock::system()), LEASE_TTL, POLL).await.unwrap()
}

fn host_and_port(address: &str) -> &str {
    let rest = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn message(site: u64, unique: u128) -> NewMessage {
    let url = format!("http://site{}.test/{unique}", site % 9);
    let id = MessageId(unique.to_be_bytes());
    let its_site = WebUrl::parse(&url).unwrap().site();
    NewMessage {
        retailer: format!("shop-{}", site % 3),
        correlation_id: unique.to_string(),
        callback_url: Some("https://hooks.test/".to_owned()),
        kind: [u8::try_from(site % 200).unwrap(); 16],
        max_age: site.is_multiple_of(4).then_some(Duration::from_secs(1)),
        ..NewMessage::new(id, url, its_site, Duration::from_secs(3_600))
    }
}

fn end_of(lease: Lease) -> Finished<FetchResult> {
    let result = FetchResult {
        status: FetchResult::SUCCESS.to_owned(),
        content: Some(lease.job.url.clone()),
        http_status: Some(200),
        attempts: 1,
        ..FetchResult::default()
    };
    Finished {
        lease,
        records: vec![result],
        settlement: Settlement::Done,
        phases: Phases::default(),
        share: Share::none(),
    }
}

#[tokio::test]
async fn a_line_that_breaks_at_any_moment_loses_doubles_and_sticks_nothing() {
    let Some(address) = unused_postgres().await else { return };
    let observer = open(&address).await;
    let one = Process::start(&address).await;
    let other = Process::start(&address).await;
    let lines_hold = AtomicBool::new(false);
    let work_is_done = AtomicBool::new(false);
    let submit_then_wait = async {
        let (some, more) = tokio::join!(one.submit_all(1), other.submit_all(2));
        lines_hold.store(true, Ordering::Relaxed);
        eventually_ok("the end of all messages", async || {
            let ledger = observer.inbox.ledger().await.unwrap();
            assert!(ledger.balances(), "{ledger:?}");
            let open = ledger.unfinished();
            if open == 0 { Ok(()) } else { Err(format!("something is stuck: {ledger:?}")) }
        })
        .await;
        work_is_done.store(true, Ordering::Relaxed);
        [some, more].concat()
    };
    let (accepted, ..) = tokio::join!(
        submit_then_wait,
        one.break_the_line(1, &lines_hold),
        other.break_the_line(2, &lines_hold),
        one.work(&work_is_done),
        other.work(&work_is_done),
    );

    let ledger = observer.inbox.ledger().await.unwrap();
    assert_eq!(ledger.accepted, ledger.done, "something is stuck: {ledger:?}");
    for id in &accepted {
        let message = observer.inbox.message(*id, Some(CALLER)).await.unwrap();
        let message = message.expect("what was accepted is there");
        assert_eq!(message.status, MessageStatus::Completed);
    }
    let most = OutboxMost { results: 100_000, bytes: u64::MAX };
    let page = observer.inbox.outbox(CALLER, None, most).await.unwrap();
    let OutboxPage::Results { results, .. } = page else { panic!("nothing is gone") };
    let cursors: Vec<i64> = results.iter().map(|result| result.cursor).collect();
    assert_eq!(cursors, (1..=ledger.accepted).collect::<Vec<i64>>());
    let messages: BTreeSet<MessageId> = results.iter().map(|result| result.message).collect();
    assert_eq!(messages.len(), results.len());
    println!(
        "{} accepted, {} told so, {} connections",
        ledger.accepted,
        accepted.len(),
        one.proxy.accepted() + other.proxy.accepted()
    );
}

/// Two messages that were fetched. PostgreSQL cannot store NUL, so it rejects the result of the first one.
async fn one_refused_and_one_sound(store: &RetrieverStore) -> Vec<Finished<FetchResult>> {
    let caller = CALLER.to_owned();
    let from = "192.0.2.7".to_owned();
    let messages = vec![message(1, 1), message(2, 2)];
    let submission = Submission { caller, from, idempotency: None, messages, batch: None };
    store.inbox.submit(submission).await.unwrap();
    let source = &store.messages.source;
    Source::renew(&**source).await.unwrap();
    let demand = Demand { most: 2, most_per_site: 1, ..Demand::default() };
    let mut batch: Vec<Finished<FetchResult>> = Vec::new();
    while batch.len() < 2 {
        let leases = eventually_ok("the messages", async || match source.take(&demand).await {
            Ok(Taken::Jobs(leases)) => Ok(leases),
            other => Err(format!("{other:?}")),
        });
        batch.extend(leases.await.into_iter().map(end_of));
    }
    batch[0].records[0].status = "no\0word".to_owned();
    batch
}

#[tokio::test]
async fn a_message_whose_result_is_refused_has_a_result_that_says_so() {
    let Some(address) = unused_postgres().await else { return };
    let store = open(&address).await;
    let batch = one_refused_and_one_sound(&store).await;
    let settled = store.messages.finish.finish(&batch).await.unwrap();
    assert_eq!(settled, [Settled::Confirmed, Settled::Confirmed]);

    let most = OutboxMost { results: 10, bytes: u64::MAX };
    let page = store.inbox.outbox(CALLER, None, most).await.unwrap();
    let OutboxPage::Results { results, .. } = page else { panic!("nothing is gone") };
    let result_of = |finished: &Finished<FetchResult>| {
        let found = results.iter().find(|result| result.url == finished.lease.job.url);
        found.expect("it has a result").result.clone()
    };
    let refused = result_of(&batch[0]);
    assert_eq!((refused.status.as_str(), refused.attempts), (FetchResult::INTERNAL_ERROR, 1));
    assert_eq!(refused.error.as_deref(), Some("its result could not be stored"));
    assert_eq!(result_of(&batch[1]).status, FetchResult::SUCCESS);
    let ledger = store.inbox.ledger().await.unwrap();
    assert_eq!((ledger.done, ledger.dead), (2, 0), "{ledger:?}");
}

#[tokio::test]
async fn a_message_whose_substitute_is_refused_too_ends_without_a_result() {
    let Some(address) = unused_postgres().await else { return };
    let store = open(&address).await;
    let batch = one_refused_and_one_sound(&store).await;
    let refuse = "ALTER TABLE fetchwell_outbox ADD CHECK (status <> 'internal_error')";
    run_sql(&address, refuse).await;
    let settled = store.messages.finish.finish(&batch).await.unwrap();
    assert_eq!(settled, [Settled::Confirmed, Settled::Confirmed]);
    let ledger = store.inbox.ledger().await.unwrap();
    assert_eq!((ledger.done, ledger.dead), (1, 1), "{ledger:?}");
}
