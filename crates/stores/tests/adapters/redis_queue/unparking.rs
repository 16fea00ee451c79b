//! What waits goes back to the list.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::url_queue::Unparked;
use fetchwell_policy::retry::History;
use fetchwell_policy::url::WebUrl;
use fetchwell_stores::redis::UnparkStep;

use super::rig::{LEASE_TTL, LIST, POLL, Rig, settle, take, urls};

#[tokio::test]
async fn parked_and_delayed_ones_go_back_and_start_anew() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/held", "http://a.test/later", "http://b.test/"]).await;
    let worker = rig.worker().await;
    let leases = take(&worker, 2).await;
    let history = History { url_failures: 2, ..History::default() };
    let later = Settlement::retry(rig.clock.now() + POLL, history);
    settle(&worker, &leases[1], later).await;
    assert_eq!(rig.queue.waiting().await.unwrap(), 3);
    assert_eq!(rig.unpark(&[&worker]).await, Unparked { urls: 2, at_work: 1, held: 1 });
    assert_eq!(rig.list().await.len(), 2);
    assert_eq!(rig.queue.waiting().await.unwrap(), 3, "one is leased, and not under way");
    assert_eq!(rig.ledger().await, Ledger { accepted: 1, in_flight: 1, ..Ledger::default() });
    let again = take(&worker, 10).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|lease| lease.history == History::default()));
}

#[tokio::test]
async fn many_go_back_in_steps_and_leave_nothing_behind() {
    let Some(rig) = Rig::if_there().await else { return };
    let many: Vec<String> = (0..2_500).map(|n| format!("http://s{}.test/{n}", n % 9)).collect();
    rig.push(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let worker = rig.worker().await;
    while !rig.list().await.is_empty() {
        take(&worker, 0).await;
    }
    assert_eq!(rig.ledger().await.queued, 2_500);
    assert_eq!(rig.unpark(&[]).await.urls, 2_500);
    let mut back = rig.list().await;
    let mut pushed = many;
    back.sort();
    pushed.sort();
    assert_eq!(back, pushed);
    assert_eq!(rig.ledger().await, Ledger::default());
    for gone in ["jobs", "parked", "sites", "delayed", "unfiled", "accepted", "under_way"] {
        assert_eq!(rig.ask::<usize>(&format!("EXISTS {LIST}:{gone}")).await, 0, "{gone}");
    }
}

#[tokio::test]
async fn only_the_last_that_leaves_puts_things_back() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let first = rig.worker().await;
    let last = rig.worker().await;
    assert_eq!(take(&first, 1).await.len(), 1);
    first.leave().await.unwrap();
    assert_eq!(rig.ledger().await.queued, 2);
    assert_eq!(take(&last, 1).await.len(), 1);
    last.leave().await.unwrap();
    assert_eq!(rig.list().await, ["http://a.test/1", "http://a.test/2"]);
    assert_eq!(rig.ledger().await, Ledger::default());
}

#[tokio::test]
async fn what_a_list_cannot_hold_stays() {
    let Some(rig) = Rig::if_there().await else { return };
    let job = |url: &str, payload: &[u8]| Job {
        url: url.to_owned(),
        site: WebUrl::parse(url).ok().map(|url| url.site()),
        lane: Lane::default(),
        deadline: None,
        payload: payload.to_vec(),
    };
    let keyed = NewJob { key: Some([1; 16]), ..NewJob::now(job("http://a.test/keyed", b"")) };
    let jobs = vec![
        keyed,
        NewJob::now(job("http://a.test/data", b"x")),
        NewJob::now(job("http://a.test/plain", b"")),
    ];
    rig.queue.enqueue(jobs).await.unwrap();
    assert_eq!(rig.unpark(&[]).await.urls, 1);
    assert_eq!(rig.list().await, ["http://a.test/plain"]);
    let worker = rig.worker().await;
    assert_eq!(urls(&take(&worker, 10).await).len(), 3);
    rig.ledger().await;
}

#[tokio::test]
async fn what_a_dead_instance_holds_goes_back_when_its_lease_has_ended() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let dead = rig.worker().await;
    let leases = take(&dead, 2).await;
    dead.started(&[leases[0].id]).await.unwrap();
    // Its lease has ended long ago, and nobody was there to rescue what it held.
    rig.clock.advance(LEASE_TTL * 3);
    let step = rig.queue.unparking(false).step().await.unwrap();
    let all = Unparked { urls: 3, ..Unparked::default() };
    assert_eq!(step, UnparkStep::Over(all), "there is nothing to wait for");
    assert_eq!(rig.list().await.len(), 3);
    assert_eq!((rig.size().await, rig.ledger().await), (3, Ledger::default()));
}

#[tokio::test]
async fn leases_that_have_not_ended_are_waited_for_unless_they_are_renewed() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let dead = rig.worker().await;
    let alive = rig.worker().await;
    assert_eq!((take(&dead, 1).await.len(), take(&alive, 1).await.len()), (1, 1));
    let mut unparking = rig.queue.unparking(false);
    let UnparkStep::Wait { instances, held, at_most } = unparking.step().await.unwrap() else {
        panic!("nobody can know yet which of the two is dead")
    };
    assert_eq!((instances, held, at_most), (2, 2, LEASE_TTL));
    let unparked = rig.unpark(&[&alive]).await;
    assert_eq!(unparked, Unparked { urls: 1, at_work: 1, held: 1 });
    assert_eq!(rig.list().await.len(), 1);
}

#[tokio::test]
async fn the_last_that_leaves_waits_for_what_the_dead_hold() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let dead = rig.worker().await;
    let last = rig.worker().await;
    assert_eq!((take(&dead, 1).await.len(), take(&last, 1).await.len()), (1, 1));
    last.leave().await.unwrap();
    assert!(rig.list().await.is_empty(), "the other may be alive");
    assert_eq!(rig.unpark_when_alone(&[]).await.urls, 3);
    assert_eq!((rig.list().await.len(), rig.ledger().await), (3, Ledger::default()));
}

#[tokio::test]
async fn one_that_is_not_the_last_leaves_everything_to_the_others() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let stays = rig.worker().await;
    let leaves = rig.worker().await;
    assert_eq!(take(&leaves, 1).await.len(), 1);
    leaves.leave().await.unwrap();
    let unparked = rig.unpark_when_alone(&[&stays]).await;
    assert_eq!(unparked, Unparked { urls: 0, at_work: 1, held: 0 });
    assert_eq!(rig.ledger().await.queued, 2);
    // One that comes meanwhile is as good as one that stayed.
    stays.leave().await.unwrap();
    assert_eq!(rig.list().await.len(), 2);
    let silent = rig.worker().await;
    assert!(take(&silent, 0).await.is_empty(), "it only moves what is on the list");
    let mut unparking = rig.queue.unparking(true);
    assert!(matches!(unparking.step().await.unwrap(), UnparkStep::Wait { .. }));
    let _newcomer = rig.worker().await;
    assert!(matches!(unparking.step().await.unwrap(), UnparkStep::Over(Unparked { urls: 0, .. })));
}
