//! From a plain list to leases.

use fetchwell_engine::ports::dead_letters::{DeadLetters, Revision};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_policy::url::{Site, WebUrl};
use redis::AsyncCommands;

use super::rig::{DEAD_LIST, LEASE_TTL, LIST, POLL, Rig, at_most, settle, take, urls};

#[tokio::test]
async fn what_producers_push_is_handed_out_by_site_and_counted() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://B.test:80/2", "http://a.test/3"]).await;
    assert_eq!(rig.ledger().await, Ledger::default(), "what is in the list is not accepted yet");
    assert_eq!(rig.queue.waiting().await.unwrap(), 3);
    let worker = rig.worker().await;
    let leases = take(&worker, 10).await;
    assert_eq!(leases.len(), 3);
    for lease in &leases {
        let site = Site::parse(if lease.job.url.contains("a.test") { "a.test" } else { "b.test" });
        assert_eq!(lease.job.site, Some(site.unwrap()));
        assert_eq!(lease.accepted_at, rig.clock.now());
        settle(&worker, lease, Settlement::Done).await;
    }
    assert_eq!(rig.ledger().await, Ledger { accepted: 3, done: 3, ..Ledger::default() });
    assert_eq!(rig.queue.waiting().await.unwrap(), 0);
    let keys: Vec<String> = rig.ask("KEYS *").await;
    for key in keys {
        assert!(
            ["instances", "ledger", "size"].iter().any(|left| key == format!("{LIST}:{left}")),
            "{key}"
        );
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_handed_out_without_a_site_and_dies_as_it_was_queued() {
    let Some(rig) = Rig::if_there().await else { return };
    let bad: [&[u8]; 5] = [b"", b"not a URL", b"\0 \n", b"http://a.test/\xff\xfe", b"gopher://a/"];
    rig.line.clone().rpush::<_, _, ()>(LIST, &bad[..]).await.unwrap();
    rig.push(&["http://a.test/good"]).await;
    let worker = rig.worker().await;
    let leases = take(&worker, 10).await;
    assert_eq!(leases.len(), 6);
    for lease in &leases {
        let is_good = lease.job.url == "http://a.test/good";
        assert_eq!(lease.job.site.is_some(), is_good, "{lease:?}");
        assert_eq!(WebUrl::parse(&lease.job.url).is_ok(), is_good, "{lease:?}");
        let end =
            if is_good { Settlement::Done } else { Settlement::Dead { reason: "bad".into() } };
        settle(&worker, lease, end).await;
    }
    let mut dead: Vec<Vec<u8>> = rig.ask(&format!("LRANGE {DEAD_LIST} 0 -1")).await;
    dead.sort();
    let mut expected = bad.map(<[u8]>::to_vec).to_vec();
    expected.sort();
    assert_eq!(dead, expected);
    assert_eq!(rig.ledger().await, Ledger { accepted: 6, done: 1, dead: 5, ..Ledger::default() });
    // What is listed is no URL that somebody could put in again; and what is tried again is what was queued.
    let listed = rig.queue.dead_letters(None, 10).await.unwrap().letters;
    assert_eq!(listed.len(), 5, "{listed:?}");
    assert!(listed.iter().all(|letter| WebUrl::parse(&letter.url).is_err()), "{listed:?}");
    let ids: Vec<_> = listed.iter().map(|letter| letter.id).collect();
    assert_eq!(rig.queue.take_off(&ids, Revision::Retry).await.unwrap(), 5);
    let again = take(&worker, 10).await;
    assert_eq!(again.len(), 5);
    assert!(again.iter().all(|lease| WebUrl::parse(&lease.job.url).is_err()), "{again:?}");
}

#[tokio::test]
async fn equal_urls_of_the_list_stay_apart() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/"; 3]).await;
    let worker = rig.worker().await;
    let leases = take(&worker, 10).await;
    assert_eq!(urls(&leases), ["http://a.test/"; 3]);
    settle(&worker, &leases[1], Settlement::Done).await;
    assert_eq!(rig.ledger().await.in_flight, 2);
}

#[tokio::test]
async fn a_long_list_of_one_site_holds_up_nobody() {
    let Some(rig) = Rig::if_there().await else { return };
    let many: Vec<String> = (0..2_500).map(|n| format!("http://big.test/{n}")).collect();
    rig.push(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    rig.push(&["http://small.test/"]).await;
    let worker = rig.worker().await;
    assert_eq!(take(&worker, 5).await.len(), 5);
    let until_later = vec![(Site::parse("big.test").unwrap(), rig.clock.now() + LEASE_TTL / 2)];
    let closing = Demand { closed: until_later, ..at_most(5) };
    let mut takes = 0;
    let small = loop {
        takes += 1;
        match worker.take(&closing).await.unwrap() {
            Taken::Jobs(leases) => break leases,
            // It says when to ask again; a poll would be too long.
            Taken::Idle { until } => {
                assert!(until > rig.clock.now() && until < rig.clock.now() + POLL / 100);
                rig.clock.set(until);
            }
            Taken::Exhausted => panic!("something waits"),
        }
    };
    assert_eq!(urls(&small), ["http://small.test/"]);
    assert!(takes <= 11, "{takes} takes moved 2,501 URLs");
    let ledger = rig.ledger().await;
    assert_eq!((ledger.accepted, ledger.in_flight), (2_501, 6));
}

#[tokio::test]
async fn a_queue_that_was_tampered_with_says_so() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let worker = rig.worker().await;
    take(&worker, 1).await;
    rig.ask::<()>(&format!("DEL {LIST}:jobs")).await;
    let fault = worker.take(&at_most(1)).await.unwrap_err().to_string();
    assert!(fault.contains("crawler_queue:jobs has lost job 2"), "{fault}");
}
