//! Deliveries to callback URLs.

use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{
    DeliveryAttempt, DeliveryFilter, DeliveryLogEntry, DeliveryRecord, DeliveryStatus, MessageId,
    NewMessage, ReplayRange, ReplayedOne,
};
use fetchwell_engine::ports::job::{Lane, Lease};
use fetchwell_engine::web::Phases;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use futures::future::join;

use super::InboxStore;
use super::trial::{ANNA, BERTA, Trial, message, secs, shared, success};

const CALLBACK: &str = "https://hooks.test:8443/anna";

fn called_back(message: NewMessage) -> NewMessage {
    NewMessage { callback_url: Some(CALLBACK.to_owned()), ..message }
}

fn messages_of(deliveries: &[Lease]) -> Vec<MessageId> {
    let id = |lease: &Lease| {
        let text = std::str::from_utf8(&lease.job.payload).expect("the payload is text");
        text.parse().expect("the payload is a message's id")
    };
    deliveries.iter().map(id).collect()
}

/// With its result, not earlier, not twice, and only if there is a callback URL.
pub async fn a_callback_is_delivered_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    trial.send(ANNA, message("http://a.test/2")).await;
    let leases = trial.lease(10).await;
    assert!(trial.deliveries().await.is_empty());
    for lease in &leases {
        assert_eq!(trial.end(lease, success("page")).await, Settled::Confirmed);
        assert_eq!(trial.end(lease, success("page")).await, Settled::Stale);
    }
    let deliveries = trial.deliveries().await;
    assert_eq!(messages_of(&deliveries), [id]);
    let job = &deliveries[0].job;
    assert_eq!((job.url.as_str(), &job.deadline), (CALLBACK, &None));
    assert_eq!(job.site, Site::parse("hooks.test:8443").ok());
    assert_eq!(job.lane, Lane { group: None, party: Some(ANNA.to_owned()) });
    let delivered = Finished {
        lease: deliveries[0].clone(),
        records: Vec::new(),
        settlement: Settlement::Done,
        phases: Phases::default(),
        share: Share::none(),
    };
    let settled = trial.store.deliveries.finish.finish(&[delivered]).await;
    assert_eq!(settled.expect("it is settled"), [Settled::Confirmed]);
    trial.wait(secs(60)).await;
    assert!(trial.deliveries().await.is_empty());
}

/// The message that is fetched, its followers, and those that are answered from the stored page.
pub async fn those_who_share_a_result_are_each_told(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.push(trial.send(ANNA, called_back(shared("http://a.test/", 1, secs(60)))).await);
    }
    trial.end_all(&success("page")).await;
    sent.push(trial.send(ANNA, called_back(shared("http://a.test/", 1, secs(60)))).await);
    let mut told = messages_of(&trial.deliveries().await);
    told.sort();
    assert_eq!(told, sent);
}

fn finished(
    lease: &Lease,
    settlement: Settlement,
    records: Vec<DeliveryRecord>,
) -> Finished<DeliveryRecord> {
    let lease = lease.clone();
    Finished { lease, records, settlement, phases: Phases::default(), share: Share::none() }
}

/// The record of an attempt at a delivery of Anna's.
fn record(trial: &Trial, id: MessageId, status: DeliveryStatus, answer: u16) -> DeliveryRecord {
    let error = (status != DeliveryStatus::Delivered).then_some("refused");
    DeliveryRecord {
        webhook: id.to_string(),
        caller: ANNA.to_owned(),
        url: CALLBACK.to_owned(),
        status,
        attempt: DeliveryAttempt::new(trial.now(), Some(answer), error),
    }
}

/// Ends all deliveries that are due, with this status.
async fn end_deliveries(trial: &Trial, status: DeliveryStatus) -> Vec<MessageId> {
    let leases = trial.deliveries().await;
    let ids = messages_of(&leases);
    for (lease, id) in leases.iter().zip(&ids) {
        let (settlement, answer) = match status {
            DeliveryStatus::Failed => (Settlement::Dead { reason: "refused".to_owned() }, 410),
            _ => (Settlement::Done, 204),
        };
        let one = finished(lease, settlement, vec![record(trial, *id, status, answer)]);
        let settled = trial.store.deliveries.finish.finish(&[one]).await;
        assert_eq!(settled.expect("it is settled"), [Settled::Confirmed]);
    }
    ids
}

async fn list(trial: &Trial, caller: &str, filter: DeliveryFilter) -> Vec<DeliveryLogEntry> {
    trial.store.inbox.deliveries(caller, filter).await.expect("it is answered")
}

const ALL: DeliveryFilter = DeliveryFilter { status: None, before: None, most: 100 };

/// Newest first, pending ones included, and each attempt once, even if a batch is repeated.
pub async fn a_delivery_is_listed_with_its_attempts_for_its_caller_alone(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let first = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    trial.end_all(&success("page")).await;
    trial.clock.advance(secs(1));
    let second = trial.send(ANNA, called_back(message("http://a.test/2"))).await;
    trial.send(BERTA, message("http://a.test/3")).await;
    trial.end_all(&success("page")).await;
    let listed = list(&trial, ANNA, ALL).await;
    let ids: Vec<String> = listed.iter().map(|entry| entry.webhook.clone()).collect();
    assert_eq!(ids, [second.to_string(), first.to_string()]);
    assert!(listed.iter().all(|entry| entry.status == DeliveryStatus::Pending));
    assert_eq!((listed[1].url.as_str(), listed[1].attempts), (CALLBACK, 0));
    assert!(list(&trial, BERTA, ALL).await.is_empty());

    let leases = trial.deliveries().await;
    let lease = leases.iter().find(|lease| messages_of(std::slice::from_ref(lease)) == [first]);
    let refused = record(&trial, first, DeliveryStatus::Pending, 500);
    let retry = Settlement::retry(trial.now() + secs(5), lease.expect("it is due").history);
    let batch = [finished(lease.expect("it is due"), retry, vec![refused.clone()])];
    for expected in [Settled::Confirmed, Settled::Stale] {
        let settled = trial.store.deliveries.finish.finish(&batch).await;
        assert_eq!(settled.expect("it is settled"), [expected]);
    }
    trial.clock.advance(secs(5));
    assert_eq!(end_deliveries(&trial, DeliveryStatus::Delivered).await, [first]);
    let delivered = DeliveryFilter { status: Some(DeliveryStatus::Delivered), ..ALL };
    let listed = list(&trial, ANNA, delivered).await;
    assert_eq!((listed.len(), listed[0].attempts), (1, 2), "{listed:?}");
    let accepted = DeliveryAttempt::new(trial.now(), Some(204), None);
    assert_eq!(listed[0].last_attempts, [refused.attempt, accepted]);
    let pending = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..ALL };
    assert_eq!(list(&trial, ANNA, pending).await.len(), 1);
    let newest = list(&trial, ANNA, DeliveryFilter { most: 1, ..ALL }).await;
    let rest = DeliveryFilter { before: Some(newest[0].position), ..ALL };
    let rest = list(&trial, ANNA, rest).await;
    assert_eq!(
        (newest[0].webhook.clone(), rest[0].webhook.clone()),
        (second.to_string(), first.to_string())
    );
    assert_eq!(rest.len(), 1);
}

/// A pending one is left alone, and one of another caller is as unknown as one that never was.
pub async fn a_delivery_that_ended_is_replayed_with_its_id(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &trial.store.inbox;
    let id = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    trial.end_all(&success("page")).await;
    let replay =
        async |caller: &str, id: &str| inbox.replay_one(caller, id).await.expect("it is answered");
    let name = id.to_string();
    assert_eq!(replay(ANNA, &name).await, ReplayedOne::StillPending);
    for status in [DeliveryStatus::Delivered, DeliveryStatus::Failed] {
        assert_eq!(end_deliveries(&trial, status).await, [id]);
        assert!(trial.deliveries().await.is_empty());
        assert_eq!(replay(BERTA, &name).await, ReplayedOne::Unknown);
        assert_eq!(replay(ANNA, "msg_x\0").await, ReplayedOne::Unknown);
        assert_eq!(replay(ANNA, &name).await, ReplayedOne::Again);
        assert_eq!(replay(ANNA, &name).await, ReplayedOne::StillPending);
        trial.clock.advance(secs(1));
    }
    assert_eq!(end_deliveries(&trial, DeliveryStatus::Delivered).await, [id]);
    assert_eq!(list(&trial, ANNA, ALL).await[0].attempts, 3);
}

/// All of them are listed, in their order, and other deliveries that end with them are, too.
pub async fn several_attempts_of_one_delivery_end_at_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let first = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    let second = trial.send(ANNA, called_back(message("http://a.test/2"))).await;
    trial.end_all(&success("page")).await;
    let leases = trial.deliveries().await;
    let ids = messages_of(&leases);
    let refused = record(&trial, first, DeliveryStatus::Pending, 500);
    let end = |lease: &Lease, id: MessageId| {
        let accepted = record(&trial, id, DeliveryStatus::Delivered, 204);
        let records = match id == first {
            true => vec![refused.clone(), accepted],
            false => vec![accepted],
        };
        finished(lease, Settlement::Done, records)
    };
    let batch: Vec<_> = leases.iter().zip(&ids).map(|(lease, id)| end(lease, *id)).collect();
    let settled = trial.store.deliveries.finish.finish(&batch).await;
    assert_eq!(settled.expect("it is settled"), [Settled::Confirmed; 2]);
    let listed = list(&trial, ANNA, ALL).await;
    let of = |id: MessageId| {
        let entry = listed.iter().find(|entry| entry.webhook == id.to_string());
        entry.expect("it is listed")
    };
    assert_eq!((of(first).status, of(first).attempts), (DeliveryStatus::Delivered, 2));
    let accepted = DeliveryAttempt::new(trial.now(), Some(204), None);
    assert_eq!(of(first).last_attempts, [refused.attempt, accepted.clone()]);
    assert_eq!((of(second).attempts, &of(second).last_attempts), (1, &vec![accepted]));
}

/// An instance that has lost its lease may record an attempt after another one ended the delivery. Its attempt is
/// listed, but the delivery can still be replayed.
pub async fn a_late_attempt_leaves_a_delivery_ended(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    trial.end_all(&success("page")).await;
    let lost = trial.deliveries().await;
    let beside = trial.beside(place).await;
    for _ in 0..3 {
        trial.clock.advance(super::LEASE_TTL / 2);
        beside.renew().await;
    }
    assert_eq!(end_deliveries(&beside, DeliveryStatus::Delivered).await, [id]);
    let refused = record(&trial, id, DeliveryStatus::Pending, 500);
    let retry = Settlement::retry(trial.now() + secs(5), lost[0].history);
    let late = [finished(&lost[0], retry, vec![refused.clone()])];
    let settled = trial.store.deliveries.finish.finish(&late).await;
    assert_eq!(settled.expect("it is answered"), [Settled::Stale]);
    let listed = list(&beside, ANNA, ALL).await;
    assert_eq!((listed[0].status, listed[0].attempts), (DeliveryStatus::Delivered, 2));
    assert_eq!(listed[0].last_attempts.last(), Some(&refused.attempt));
    let replayed = beside.store.inbox.replay_one(ANNA, &id.to_string()).await;
    assert_eq!(replayed.expect("it is answered"), ReplayedOne::Again);
}

/// Attempts are recorded in the order of their ids, and a time range is replayed in that of its times: neither may
/// block the other.
pub async fn attempts_and_replays_at_the_same_time_do_no_harm(place: &dyn InboxStore) {
    const COUNT: u32 = 100;
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    let new = |number| called_back(message(&format!("http://a{number}.test/")));
    here.submit(ANNA, (0..COUNT).map(new).collect()).await;
    let mut leases = here.lease(1_000).await;
    leases.sort_by_key(|lease| std::cmp::Reverse(lease.id));
    for lease in &leases {
        assert_eq!(here.end(lease, success("page")).await, Settled::Confirmed);
        here.clock.advance(Duration::from_micros(1));
    }
    let until = here.now() + secs(1);
    let range = ReplayRange { since: Time::EPOCH, until, status: None, after: None, most: COUNT };
    let trial = &here;
    for _ in 0..20 {
        let leases = here.deliveries().await;
        let attempts = |status, settlement: Settlement| {
            let attempt = move |lease: &Lease| {
                let id = messages_of(std::slice::from_ref(lease))[0];
                finished(lease, settlement.clone(), vec![record(trial, id, status, 204)])
            };
            leases.iter().map(attempt).collect::<Vec<_>>()
        };
        let ended = attempts(DeliveryStatus::Delivered, Settlement::Done);
        here.store.deliveries.finish.finish(&ended).await.expect("they are settled");
        here.clock.advance(Duration::from_micros(1));
        let late = attempts(DeliveryStatus::Pending, Settlement::Done);
        let (recorded, replayed) =
            join(there.store.deliveries.finish.finish(&late), here.store.inbox.replay(ANNA, range))
                .await;
        assert_eq!(recorded.expect("it is answered").len(), leases.len());
        assert_eq!(replayed.expect("it is answered").count, COUNT);
    }
}

/// Those of other times, other callers and another status are left alone.
pub async fn a_time_range_is_replayed_in_bounded_parts(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let send = async |caller: &str, count: usize| {
        let new = |number| called_back(message(&format!("http://a.test/{number}")));
        let ids = trial.submit(caller, (0..count).map(new).collect()).await;
        trial.end_all(&success("page")).await;
        ids
    };
    let before = send(ANNA, 1).await;
    trial.wait(secs(10)).await;
    let since = trial.now();
    let mut wanted = send(ANNA, 5).await;
    send(BERTA, 1).await;
    trial.wait(secs(10)).await;
    let until = trial.now();
    let after = send(ANNA, 1).await;
    assert_eq!(end_deliveries(&trial, DeliveryStatus::Delivered).await.len(), 8);
    let failed = Some(DeliveryStatus::Failed);
    let mut range = ReplayRange { since, until, status: failed, after: None, most: 2 };
    let replay = async |range| trial.store.inbox.replay(ANNA, range).await.expect("answered");
    assert_eq!((replay(range).await.count, replay(range).await.next), (0, None));
    range.status = None;
    let mut counts = Vec::new();
    loop {
        let replayed = replay(range).await;
        counts.push(replayed.count);
        range.after = replayed.next;
        if range.after.is_none() {
            break;
        }
    }
    assert_eq!(counts, [2, 2, 1]);
    let mut again = messages_of(&trial.deliveries().await);
    again.sort();
    wanted.sort();
    assert_eq!(again, wanted);
    assert!(!again.contains(&before[0]) && !again.contains(&after[0]));
}
