//! An inbox with a manual clock, whose ledger is checked after every operation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, FetchResult, Message, MessageId, NewMessage, OutboxMessage, OutboxMost,
    OutboxPage, Role, StoredPage, Submission, Submitted,
};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;

use super::InboxStore;
use crate::conformance::HandClock;

/// The default deadline of messages.
pub(super) const DEADLINE: Duration = Duration::from_secs(3_600);
pub(super) const ANNA: &str = "anna";
pub(super) const BERTA: &str = "berta";
/// More than any case has.
const ALL: OutboxMost = OutboxMost { results: 100_000, bytes: u64::MAX };

/// An inbox under test, as seen by one process.
pub(super) struct Trial {
    pub(super) clock: HandClock,
    pub(super) store: RetrieverStore,
}

impl Trial {
    /// An inbox with two callers and a new clock.
    pub(super) async fn new(place: &dyn InboxStore) -> Trial {
        let trial = Trial::open(place, &HandClock::new()).await;
        for (number, name) in [(1, ANNA), (2, BERTA)] {
            let caller = Caller { name: name.to_owned(), role: Role::Caller };
            let entry = AuditEntry {
                at: trial.now(),
                caller: None,
                action: "add_caller".to_owned(),
                detail: name.to_owned(),
                from: "the test".to_owned(),
            };
            let added = trial.store.inbox.add_caller(&caller, &[number; 32], &entry).await;
            assert!(added.expect("a caller is added"));
        }
        // A case sees only its own entries.
        place.execute("DELETE FROM {}audit").await;
        trial
    }

    /// The inbox, as seen by another process.
    pub(super) async fn beside(&self, place: &dyn InboxStore) -> Trial {
        Trial::open(place, &self.clock).await
    }

    pub(super) async fn open(place: &dyn InboxStore, clock: &HandClock) -> Trial {
        let trial = Trial { clock: clock.clone(), store: place.open(clock.clock()).await };
        trial.renew().await;
        trial
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Advances the clock in steps that keep this process alive.
    pub(super) async fn wait(&self, span: Duration) {
        let end = self.now() + span;
        while self.now() < end {
            self.clock.set((self.now() + super::LEASE_TTL / 2).min(end));
            self.renew().await;
        }
    }

    pub(super) async fn renew(&self) {
        Source::renew(&*self.store.messages.source).await.expect("a lease is renewed or lost");
        Source::renew(&*self.store.deliveries.source).await.expect("a lease is renewed or lost");
        self.ledger().await;
    }

    pub(super) async fn try_to_submit(
        &self,
        submission: Submission,
    ) -> Result<Submitted, StoreError> {
        let submitted = self.store.inbox.submit(submission).await;
        self.ledger().await;
        submitted
    }

    /// Submits messages, which must be accepted.
    pub(super) async fn submit(&self, caller: &str, messages: Vec<NewMessage>) -> Vec<MessageId> {
        let expected: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
        let submitted = self.try_to_submit(submission(caller, messages)).await;
        let submitted = submitted.expect("it is accepted");
        let created_at = Some(self.now());
        assert_eq!(submitted, Submitted::Accepted { ids: expected.clone(), created_at });
        expected
    }

    /// Submits one message.
    pub(super) async fn send(&self, caller: &str, message: NewMessage) -> MessageId {
        self.submit(caller, vec![message]).await[0]
    }

    /// Leases at most `most` messages.
    pub(super) async fn lease(&self, most: usize) -> Vec<Lease> {
        self.lease_from(&*self.store.messages.source, most).await
    }

    /// Leases the deliveries.
    pub(super) async fn deliveries(&self) -> Vec<Lease> {
        self.lease_from(&*self.store.deliveries.source, 100).await
    }

    async fn lease_from(&self, source: &dyn Source, most: usize) -> Vec<Lease> {
        let demand = Demand { most, most_per_site: most, ..Demand::default() };
        let taken = source.take(&demand).await.expect("the inbox gives or says why not");
        self.ledger().await;
        match taken {
            Taken::Jobs(leases) => leases,
            Taken::Idle { .. } | Taken::Exhausted => Vec::new(),
        }
    }

    /// Leases the only message that is due.
    pub(super) async fn lease_one(&self) -> Lease {
        let mut leases = self.lease(2).await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        leases.remove(0)
    }

    /// Settles a message with its result.
    pub(super) async fn end(&self, lease: &Lease, result: FetchResult) -> Settled {
        self.finish(vec![finished(lease, Settlement::Done, Some(result))]).await[0]
    }

    pub(super) async fn finish(&self, batch: Vec<Finished<FetchResult>>) -> Vec<Settled> {
        let settled = self.store.messages.finish.finish(&batch).await;
        self.ledger().await;
        let settled = settled.expect("a batch is answered");
        assert_eq!(settled.len(), batch.len());
        settled
    }

    /// Settles everything that is due with the same result.
    pub(super) async fn end_all(&self, result: &FetchResult) -> usize {
        let leases = self.lease(1_000).await;
        for lease in &leases {
            assert_eq!(self.end(lease, result.clone()).await, Settled::Confirmed);
        }
        leases.len()
    }

    pub(super) async fn find(&self, id: MessageId, of: Option<&str>) -> Option<Message> {
        self.store.inbox.message(id, of).await.expect("messages can be read")
    }

    pub(super) async fn message(&self, id: MessageId) -> Message {
        self.find(id, None).await.expect("the message is there")
    }

    pub(super) async fn newest_page(&self, kind: [u8; 16]) -> Option<StoredPage> {
        self.store.inbox.newest_page(kind).await.expect("pages can be read")
    }

    pub(super) async fn page(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> OutboxPage {
        self.store.inbox.outbox(caller, after, most).await.expect("the outbox can be read")
    }

    /// All results of a caller after this cursor.
    pub(super) async fn results(&self, caller: &str, after: Option<i64>) -> Vec<OutboxMessage> {
        match self.page(caller, after, ALL).await {
            OutboxPage::Results { results, .. } => results,
            OutboxPage::Gone { oldest } => panic!("all up to {oldest} are gone"),
        }
    }

    pub(super) async fn ledger(&self) -> Ledger {
        let ledger = self.store.inbox.ledger().await.expect("the ledger can be read");
        assert!(ledger.balances(), "{ledger:?}");
        ledger
    }
}

/// A new message.
pub(super) fn message(url: &str) -> NewMessage {
    let number = next_number();
    let id = MessageId::new(Time::from_secs(1_700_000_000), u128::from(number));
    let site = WebUrl::parse(url).expect("a URL").site();
    NewMessage {
        retailer: "a-shop".to_owned(),
        correlation_id: format!("number {number}"),
        kind: u128::from(number).to_le_bytes(),
        ..NewMessage::new(id, url.to_owned(), site, DEADLINE)
    }
}

/// A message that shares its result with others of the same kind.
pub(super) fn shared(url: &str, kind: u8, max_age: Duration) -> NewMessage {
    NewMessage { kind: [kind; 16], max_age: Some(max_age), ..message(url) }
}

fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

pub(super) fn submission(caller: &str, messages: Vec<NewMessage>) -> Submission {
    let caller = caller.to_owned();
    let from = "192.0.2.7".to_owned();
    Submission { caller, from, idempotency: None, messages, batch: None }
}

pub(super) fn finished(
    lease: &Lease,
    settlement: Settlement,
    record: Option<FetchResult>,
) -> Finished<FetchResult> {
    Finished {
        lease: lease.clone(),
        records: record.into_iter().collect(),
        settlement,
        phases: Phases::default(),
        share: Share::none(),
    }
}

pub(super) fn success(content: &str) -> FetchResult {
    FetchResult {
        status: FetchResult::SUCCESS.to_owned(),
        content: Some(content.to_owned()),
        content_type: Some("text/html".to_owned()),
        http_status: Some(200),
        attempts: 1,
        ..FetchResult::default()
    }
}

pub(super) fn failure(error: &str) -> FetchResult {
    FetchResult {
        status: "http_error".to_owned(),
        content: None,
        http_status: Some(404),
        error: Some(error.to_owned()),
        ..success("")
    }
}

pub(super) fn cursors(results: &[OutboxMessage]) -> Vec<i64> {
    results.iter().map(|result| result.cursor).collect()
}

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
