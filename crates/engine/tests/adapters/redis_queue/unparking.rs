//! What waits goes back to the list.

use fetchwell_engine::adapters::NewJob;
use fetchwell_engine::ports::{Job, Lane, Ledger, Settlement, Source};
use fetchwell_policy::retry::History;
use fetchwell_policy::url::WebUrl;

use super::rig::{LIST, POLL, Rig, settle, take, urls};

#[tokio::test]
async fn parked_and_delayed_ones_go_back_and_start_anew() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/held", "http://a.test/later", "http://b.test/"]).await;
    let worker = rig.worker().await;
    let leases = take(&worker, 2).await;
    let history = History { url_failures: 2, ..History::default() };
    let later = Settlement::retry(rig.clock.now() + POLL, history);
    settle(&worker, &leases[1], later).await;
    assert_eq!(rig.queue.waiting().await.unwrap(), 2);
    assert_eq!(rig.queue.unpark().await.unwrap(), 2);
    assert_eq!(rig.list().await.len(), 2);
    assert_eq!(rig.queue.waiting().await.unwrap(), 2);
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
    assert_eq!(rig.queue.unpark().await.unwrap(), 2_500);
    let (mut back, mut pushed) = (rig.list().await, many);
    back.sort();
    pushed.sort();
    assert_eq!(back, pushed);
    assert_eq!(rig.ledger().await, Ledger::default());
    for gone in ["jobs", "parked", "sites", "delayed", "unfiled"] {
        assert_eq!(rig.ask::<usize>(&format!("EXISTS {LIST}:{gone}")).await, 0, "{gone}");
    }
}

#[tokio::test]
async fn only_the_last_that_leaves_puts_things_back() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let (first, last) = (rig.worker().await, rig.worker().await);
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
    assert_eq!(rig.queue.unpark().await.unwrap(), 1);
    assert_eq!(rig.list().await, ["http://a.test/plain"]);
    let worker = rig.worker().await;
    assert_eq!(urls(&take(&worker, 10).await).len(), 3);
    rig.ledger().await;
}
