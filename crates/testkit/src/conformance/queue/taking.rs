//! Which jobs are leased, in which order, and when.

use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::source::{Demand, Taken};

use super::QueueStore;
use super::trial::{Trial, job, job_at, secs, site, urls};
use crate::conformance::HandClock;

/// An instance gets jobs only while it is known to be alive.
pub async fn nothing_before_the_first_renewal(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let stranger = trial.stranger();
    assert!(stranger.lease(1).await.is_empty());
    stranger.renew().await;
    assert_eq!(stranger.lease(1).await.len(), 1);
}

/// First in, first out, even over several takes.
pub async fn first_come_first_served_within_a_site(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let expected: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    for url in &expected {
        trial.add(&[url.as_str()]).await;
    }
    let worker = trial.worker().await;
    let mut leases = worker.lease(3).await;
    leases.extend(worker.lease(100).await);
    assert_eq!(urls(&leases), expected);
}

/// `most` applies to all sites together.
pub async fn no_more_than_asked_for(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    for n in 0..10 {
        trial.add(&[&format!("http://a.test/{n}"), &format!("http://b{n}.test/")]).await;
    }
    let worker = trial.worker().await;
    for most in [1, 7, 12] {
        assert_eq!(worker.lease(most).await.len(), most);
    }
    assert!(worker.lease(1).await.is_empty());
}

/// `most_per_site` applies to each site, and leaves room for others.
pub async fn no_more_of_a_site_than_asked_for(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    for n in 0..10 {
        trial.add(&[&format!("http://a.test/{n}"), &format!("http://b.test/{n}")]).await;
    }
    let worker = trial.worker().await;
    let demand = Demand { most: 10, most_per_site: 3, ..Demand::default() };
    let leases = worker.lease_by(&demand).await;
    let of_a = leases.iter().filter(|lease| lease.job.site == Some(site("a.test"))).count();
    assert_eq!((leases.len(), of_a), (6, 3));
}

/// The exact URL, its site, group and payload; an invalid URL has no site.
pub async fn a_job_comes_out_as_it_went_in(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let sensible = Job {
        url: "HTTP://A.test:8080/x?y#z".to_owned(),
        site: Some(site("a.test:8080")),
        lane: Lane { group: Some("a retailer".to_owned()), party: Some("a caller".to_owned()) },
        payload: vec![0, 255, 10, 0],
        deadline: Some(trial.now() + secs(7)),
    };
    let nonsense = Job {
        url: "\u{0}not a URL é".to_owned(),
        site: None,
        lane: Lane::default(),
        payload: Vec::new(),
        deadline: None,
    };
    let jobs = vec![sensible, nonsense];
    trial.enqueue(jobs.iter().cloned().map(NewJob::now).collect()).await;
    let accepted_at = trial.now();
    trial.clock.advance(secs(3));
    let mut leases = trial.worker().await.lease(10).await;
    leases.sort_by_key(|lease| lease.id);
    assert!(leases.iter().all(|lease| lease.accepted_at == accepted_at));
    assert!(leases.iter().all(|lease| lease.interruptions == 0));
    assert!(leases.iter().all(|lease| lease.history == Default::default()));
    assert_eq!(leases.into_iter().map(|lease| lease.job).collect::<Vec<_>>(), jobs);
}

/// The same URL queued three times is three jobs.
pub async fn equal_urls_stay_apart(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/", "http://a.test/", "http://a.test/"]).await;
    let worker = trial.worker().await;
    let leases = worker.lease(10).await;
    assert_eq!(leases.len(), 3);
    assert_eq!(worker.settle(&leases[1], Settlement::Done).await, Settled::Confirmed);
    let ledger = trial.ledger().await;
    assert_eq!((ledger.accepted, ledger.done, ledger.in_flight), (3, 1, 2));
}

/// Thousands of older jobs of one site leave room for one of another site.
pub async fn a_long_queue_of_one_site_does_not_hold_up_another(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let many = (0..5_000).map(|n| job(&format!("http://big.test/{n}"))).collect();
    assert_eq!(trial.enqueue(many).await, 5_000);
    trial.clock.advance(secs(1));
    trial.add(&["http://small.test/"]).await;
    let worker = trial.worker().await;
    let demand = Demand { most: 32, most_per_site: 16, ..Demand::default() };
    let leases = worker.lease_by(&demand).await;
    assert_eq!(leases.len(), 17);
    assert!(urls(&leases).contains(&"http://small.test/"));
    // Once the large site is closed, it takes no room in a demand at all.
    trial.add(&["http://small.test/again"]).await;
    let closed = vec![(site("big.test"), trial.now() + secs(5))];
    let leases =
        worker.lease_by(&Demand { most: 1, most_per_site: 1, closed, ..Demand::default() }).await;
    assert_eq!(urls(&leases), ["http://small.test/again"]);
}

/// A closed site stays closed for later takes and for other instances, too; after that time it gives jobs again.
pub async fn a_closed_site_gives_nothing_before_its_time(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2", "http://b.test/"]).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let closed = vec![(site("a.test"), trial.now() + secs(5))];
    let demand = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    assert_eq!(urls(&one.lease_by(&demand).await), ["http://b.test/"]);
    trial.clock.advance(Duration::from_micros(4_999_999));
    assert!(other.lease(10).await.is_empty());
    trial.clock.advance(Duration::from_micros(1));
    assert_eq!(urls(&other.lease(10).await), ["http://a.test/1", "http://a.test/2"]);
}

/// Jobs that are added, come back or are rescued meanwhile wait for the site, too. Otherwise each new URL of a busy
/// site would make the whole site available again, at the expense of others.
pub async fn news_do_not_open_a_closed_site(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let worker = trial.worker().await;
    let unlucky = trial.worker().await;
    let lost = unlucky.lease(1).await;
    let mut held = worker.lease(1).await;
    trial.clock.advance(secs(15));
    worker.renew().await;
    let closed = vec![(site("a.test"), trial.now() + secs(30))];
    let demand = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    assert!(worker.lease_by(&demand).await.is_empty());

    trial.add(&["http://a.test/4"]).await;
    assert!(worker.lease(10).await.is_empty(), "what came in opened it");
    let at = trial.now();
    let returned = held.remove(0);
    assert_eq!(worker.settle(&returned, Settlement::HandBack { at }).await, Settled::Confirmed);
    assert!(worker.lease(10).await.is_empty(), "what was handed back opened it");
    trial.clock.advance(secs(10));
    worker.renew().await;
    assert_eq!(trial.ledger().await.in_flight, 0, "{lost:?} is rescued");
    assert!(worker.lease(10).await.is_empty(), "what was rescued opened it");
    trial.clock.advance(secs(19));
    worker.renew().await;
    assert!(worker.lease(10).await.is_empty());
    trial.clock.advance(secs(1));
    assert_eq!(worker.lease(10).await.len(), 4);
}

/// A site that was closed for long, because it was down, can be given up at once.
pub async fn the_last_word_on_a_closed_site_holds(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1"]).await;
    let later = trial.now() + secs(2);
    trial.enqueue(vec![job_at("http://a.test/2", later)]).await;
    let worker = trial.worker().await;
    let until = |at| Demand {
        most: 10,
        most_per_site: 10,
        closed: vec![(site("a.test"), at)],
        ..Demand::default()
    };
    assert!(worker.lease_by(&until(trial.now() + secs(600))).await.is_empty());
    assert!(worker.lease_by(&until(trial.now() + secs(1))).await.is_empty());
    assert_eq!(urls(&worker.lease_by(&until(trial.now())).await), ["http://a.test/1"]);
    // A job that is not due yet does not come earlier because of that.
    assert!(worker.lease_by(&until(trial.now())).await.is_empty());
    trial.clock.set(later);
    assert_eq!(urls(&worker.lease(10).await), ["http://a.test/2"]);
}

/// Neither a microsecond early nor late; a due time in the past is ignored.
pub async fn a_due_time_ahead_is_delayed_and_comes_at_its_time(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let now = trial.now();
    let ahead = job_at("http://a.test/ahead", now + secs(10));
    trial.enqueue(vec![ahead, job_at("http://a.test/passed", now - secs(10))]).await;
    let ledger = trial.ledger().await;
    assert_eq!((ledger.queued, ledger.delayed), (1, 1));
    let worker = trial.worker().await;
    assert_eq!(urls(&worker.lease(10).await), ["http://a.test/passed"]);
    trial.clock.set(now + secs(10) - Duration::from_micros(1));
    assert!(worker.lease(10).await.is_empty());
    trial.clock.advance(Duration::from_micros(1));
    assert_eq!(urls(&worker.lease(10).await), ["http://a.test/ahead"]);
    let ledger = trial.ledger().await;
    assert_eq!((ledger.delayed, ledger.in_flight), (0, 2));
}

/// If it is asked again at the time that it states, a queue gives the job exactly when it is due.
pub async fn idle_says_when_something_is_due(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let due = trial.now() + Duration::from_millis(7_300);
    trial.enqueue(vec![job_at("http://a.test/", due)]).await;
    let worker = trial.worker().await;
    let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
    for _ in 0..100 {
        match worker.take(&demand).await {
            Taken::Idle { until } => {
                assert!(until > trial.now() && until <= due, "{until} at {}", trial.now());
                trial.clock.set(until);
            }
            Taken::Jobs(leases) => {
                assert_eq!((leases.len(), trial.now()), (1, due));
                return;
            }
            Taken::Exhausted => panic!("something waits"),
        }
    }
    panic!("it was asked a hundred times within eight seconds");
}

/// Waiting, delayed and leased jobs keep a run going, even if another instance holds them.
pub async fn exhausted_only_when_nobody_has_anything_left(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
    assert!(matches!(one.take(&demand).await, Taken::Exhausted), "it is empty");
    trial.add(&["http://a.test/"]).await;
    let lease = other.lease_one().await;
    assert!(matches!(one.take(&demand).await, Taken::Idle { .. }), "another holds one");
    let at = trial.now() + secs(2);
    other.settle(&lease, Settlement::HandBack { at }).await;
    assert!(matches!(one.take(&demand).await, Taken::Idle { .. }), "one is delayed");
    trial.clock.set(at);
    let lease = one.lease_one().await;
    one.settle(&lease, Settlement::Dead { reason: "so".to_owned() }).await;
    assert!(matches!(one.take(&demand).await, Taken::Exhausted), "the dead do not count");
}

/// A queue to which jobs may be added at any time never ends.
pub async fn a_queue_that_goes_on_is_never_exhausted(store: &dyn QueueStore) {
    let trial = Trial::open(store, &HandClock::new(), false).await;
    let worker = trial.worker().await;
    let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
    let Taken::Idle { until } = worker.take(&demand).await else { panic!("it goes on") };
    assert!(until > trial.now(), "it would be asked without end");
}

/// A closed site holds back due jobs, but not overdue ones.
pub async fn what_is_overdue_comes_although_its_site_is_closed(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let deadline = trial.now() + secs(60);
    let patient = job("http://a.test/patient");
    let mut urgent = job("http://a.test/urgent");
    urgent.job.deadline = Some(deadline);
    trial.enqueue(vec![patient, urgent]).await;
    let worker = trial.worker().await;
    let closed = vec![(site("a.test"), trial.now() + secs(900))];
    let closing = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    assert!(matches!(worker.take(&closing).await, Taken::Idle { .. }));
    for _ in 0..4 {
        trial.clock.advance(secs(15));
        worker.renew().await;
    }
    let leases = worker.lease(10).await;
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].job.url, "http://a.test/urgent");
    assert_eq!(leases[0].job.deadline, Some(deadline));
}

/// A job that is delayed for long is not leased, but it still counts as the oldest. A finished one does not.
pub async fn the_oldest_that_waits_counts_however_long_it_is_delayed(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let first = trial.now();
    assert_eq!(trial.worker().await.oldest_waiting().await, None);
    trial.enqueue(vec![job_at("http://a.test/later", first + secs(3_600))]).await;
    trial.clock.advance(secs(60));
    let second = trial.now();
    trial.add(&["http://b.test/"]).await;
    let worker = trial.worker().await;
    assert_eq!(worker.oldest_waiting().await, Some(first));
    let lease = worker.lease_one().await;
    assert_eq!(lease.job.url, "http://b.test/");
    assert_eq!(worker.oldest_waiting().await, Some(first));
    // Even though it is postponed beyond the other one, it is still the younger one.
    worker.settle(&lease, Settlement::HandBack { at: first + secs(9_000) }).await;
    trial.clock.advance(secs(3_600));
    worker.renew().await;
    let lease = worker.lease_one().await;
    worker.settle(&lease, Settlement::Done).await;
    assert_eq!(worker.oldest_waiting().await, Some(second));
    trial.clock.advance(secs(9_000));
    worker.renew().await;
    let lease = worker.lease_one().await;
    worker.settle(&lease, Settlement::Dead { reason: "so".to_owned() }).await;
    assert_eq!(worker.oldest_waiting().await, None);
}

/// The ids of two processes are not in order of acceptance.
pub async fn the_oldest_waiting_job_is_found_across_processes(store: &dyn QueueStore) {
    let here = Trial::new(store).await;
    let there = here.beside(store).await;
    here.add(&["http://a.test/done"]).await;
    there.add(&["http://a.test/done-too"]).await;
    let worker = here.worker().await;
    for lease in worker.lease(2).await {
        worker.settle(&lease, Settlement::Done).await;
    }
    let first = here.now();
    there.add(&["http://a.test/older"]).await;
    here.clock.advance(secs(10));
    here.add(&["http://a.test/younger"]).await;
    assert_eq!(worker.oldest_waiting().await, Some(first));
}
