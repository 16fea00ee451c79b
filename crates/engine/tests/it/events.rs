//! What whoever watches a pipeline is told, on a simulated clock.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::pipeline::{Event, Purpose, Requested, Window};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::rig::{Rig, job};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a rig, and gives all that was told.
async fn told(rig: Rig, urls: Vec<String>) -> Vec<Event> {
    let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
    let ear = heard.clone();
    let rig = rig.with_event_sink(Arc::new(move |event| ear.lock().push(event)));
    rig.enqueue(urls);
    rig.run().await.unwrap();
    heard.lock().clone()
}

fn requests(events: &[Event]) -> Vec<&Requested> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Requested(request) => Some(&**request),
            _ => None,
        })
        .collect()
}

fn windows(events: &[Event]) -> Vec<Window> {
    let window = |event: &Event| match event {
        Event::Window(window) => Some(*window),
        _ => None,
    };
    events.iter().filter_map(window).collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_and_every_lease_is_told_once() {
    let shop = SiteScript::new("shop.test").status("/gone", 404).fails_first("/shaky", 1, 500);
    let urls = ["/1", "/gone", "/shaky"].map(|path| format!("http://shop.test{path}"));
    let events = told(Rig::new([shop]), urls.to_vec()).await;
    let mut seen: Vec<(Purpose, Option<u16>, Option<u32>)> = requests(&events)
        .iter()
        .map(|r| (r.purpose, r.happened.status(), r.lease.map(|lease| lease.attempt)))
        .collect();
    seen.sort();
    let page = |status, attempt| (Purpose::Page, Some(status), Some(attempt));
    let expected = [
        page(200, 1),
        page(200, 2),
        page(404, 1),
        page(500, 1),
        (Purpose::Robots, Some(404), None),
    ];
    assert_eq!(seen, expected);
    let settled = |is: fn(&Settlement) -> bool| {
        let is = |event: &&Event| matches!(event, Event::Settled(told) if is(&told.settlement));
        events.iter().filter(is).count()
    };
    assert_eq!(settled(|end| matches!(end, Settlement::Done)), 3);
    assert_eq!(settled(|end| matches!(end, Settlement::Retry { .. })), 1);
    assert!(!events.iter().any(|event| matches!(event, Event::RateBreach { .. })));
    for request in requests(&events) {
        assert_eq!(request.answer.map(|answer| answer.version), Some(http::Version::HTTP_11));
    }
}

/// The same work: what waits for its site's turn, and what waits for a free place.
#[tokio::test(start_paused = true)]
async fn waiting_for_politeness_is_told_apart_from_waiting_for_a_place() {
    let sum = |events: &[Event], of: fn(&Requested) -> Duration| -> Duration {
        requests(events).into_iter().filter(|r| r.purpose == Purpose::Page).map(of).sum()
    };
    let one_site: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    let events = told(Rig::new([SiteScript::new("a.test")]), one_site).await;
    assert!(sum(&events, |r| r.phases.slot) >= 40 * SECOND, "their turns, one after the other");
    assert!(sum(&events, |r| r.phases.place) < SECOND, "there was always a place");

    let names: Vec<String> = (1..=10).map(site_name).collect();
    let mut rig = Rig::new(names.iter().map(|name| SiteScript::new(name).slow(2 * SECOND)));
    rig.limits.max_in_flight = 1;
    let events = told(rig, names.iter().map(|name| format!("http://{name}/1")).collect()).await;
    let slot = sum(&events, |r| r.phases.slot);
    let place = sum(&events, |r| r.phases.place);
    assert!(place > 40 * SECOND, "{place:?} of {slot:?} was waiting for the one place");
    assert!(place <= slot);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_hand_is_told_about_once_a_second() {
    let names: Vec<String> = (1..=30).map(site_name).collect();
    let rig = Rig::new(names.iter().map(|name| SiteScript::new(name).slow(3 * SECOND)));
    let events = told(rig, names.iter().map(|name| format!("http://{name}/1")).collect()).await;
    let windows = windows(&events);
    let most = |of: fn(&Window) -> usize| windows.iter().map(of).max();
    assert_eq!(most(|window| window.leases), Some(30));
    assert_eq!(most(|window| window.in_flight), Some(30));
    assert_eq!(most(|window| window.sites), Some(30));
    assert_eq!(most(|window| window.sites_known), Some(30));
    let oldest = windows.iter().filter_map(|window| window.oldest).max().unwrap();
    assert!((3 * SECOND..9 * SECOND).contains(&oldest), "{oldest:?}");
    assert!((4..15).contains(&windows.len()), "{} times in about six seconds", windows.len());
}

/// What is not due for long is in the store, and in no hands.
#[tokio::test(start_paused = true)]
async fn what_is_delayed_in_the_store_grows_old_though_nothing_is_in_hand() {
    let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
    let ear = heard.clone();
    let rig = Rig::new([SiteScript::new("a.test")])
        .with_event_sink(Arc::new(move |event| ear.lock().push(event)));
    let due = Some(rig.clock.now() + 3_600 * SECOND);
    rig.queue.enqueue(vec![NewJob { due, ..NewJob::now(job("http://a.test/1")) }]);
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(600 * SECOND).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(rig.run_until(stop.clone()), stopping);
    ended.unwrap();
    let windows = windows(&heard.lock());
    assert!(windows.iter().all(|window| window.leases == 0), "{windows:?}");
    let oldest = windows.last().unwrap().oldest.unwrap();
    assert!((590 * SECOND..=601 * SECOND).contains(&oldest), "{oldest:?}");
}
