//! Jobs that are not worth having for ever.

use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::source::{Demand, Taken};

use super::QueueStore;
use super::trial::{Trial, Worker, job, site};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A job of a.test that is worth having for so long.
fn until(trial: &Trial, url: &str, in_s: u64) -> NewJob {
    let mut new = job(url);
    new.job.deadline = Some(trial.now() + secs(in_s));
    new
}

/// The site gives nothing for a long time: what comes is what is overdue.
async fn close(trial: &Trial, worker: &Worker<'_>) {
    let closed = vec![(site("a.test"), trial.now() + secs(9_000))];
    let closing = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    assert!(matches!(worker.take(&closing).await, Taken::Idle { .. }));
}

/// Lets time pass while the instance lives.
async fn pass(trial: &Trial, worker: &Worker<'_>, in_s: u64) {
    for _ in 0..in_s {
        trial.clock.advance(secs(1));
        worker.renew().await;
    }
}

async fn urls(worker: &Worker<'_>, most: usize) -> Vec<String> {
    worker.lease(most).await.into_iter().map(|lease| lease.job.url).collect()
}

/// Those that came together have deadlines of their own.
pub async fn each_comes_when_its_own_deadline_passes(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let jobs = [("http://a.test/30", 30), ("http://a.test/10", 10), ("http://a.test/20", 20)];
    let mut jobs: Vec<NewJob> = jobs.iter().map(|(url, in_s)| until(&trial, url, *in_s)).collect();
    jobs.insert(1, job("http://a.test/never"));
    trial.enqueue(jobs).await;
    let worker = trial.worker().await;
    close(&trial, &worker).await;
    pass(&trial, &worker, 9).await;
    assert!(urls(&worker, 10).await.is_empty());
    pass(&trial, &worker, 1).await;
    assert_eq!(urls(&worker, 10).await, ["http://a.test/10"]);
    pass(&trial, &worker, 20).await;
    assert_eq!(urls(&worker, 10).await, ["http://a.test/20", "http://a.test/30"]);
    assert!(urls(&worker, 10).await.is_empty());
}

/// More of them than are asked for come bit by bit, and none twice.
pub async fn many_that_are_overdue_come_in_turn(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let named: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    trial.enqueue(named.iter().map(|url| until(&trial, url, 5)).collect()).await;
    let worker = trial.worker().await;
    close(&trial, &worker).await;
    pass(&trial, &worker, 5).await;
    let mut came = Vec::new();
    for most in [4, 4, 2] {
        let some = urls(&worker, most).await;
        assert_eq!(some.len(), most);
        came.extend(some);
    }
    came.sort();
    assert_eq!(came, named);
    assert!(urls(&worker, 10).await.is_empty());
}

/// A deadline that passes while a job is leased counts when it comes back, by whoever it does.
pub async fn what_comes_back_late_is_overdue(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let jobs = ["http://a.test/1", "http://a.test/2"];
    trial.enqueue(jobs.iter().map(|url| until(&trial, url, 3)).collect()).await;
    let worker = trial.worker().await;
    let dying = trial.worker().await;
    let held = worker.lease(1).await;
    assert_eq!((held.len(), dying.lease(1).await.len()), (1, 1));
    pass(&trial, &worker, 4).await;
    assert!(urls(&worker, 10).await.is_empty());
    let back = Settlement::HandBack { at: trial.now() + secs(1_000) };
    assert_eq!(worker.settle(&held[0], back).await, Settled::Confirmed);
    assert_eq!(urls(&worker, 10).await, [held[0].job.url.clone()]);
    close(&trial, &worker).await;
    pass(&trial, &worker, 60).await;
    assert_eq!(urls(&worker, 10).await.len(), 1, "what the dead instance held");
}

/// A queue that waits says when a deadline passes, and not when one passed of what is done.
pub async fn idle_until_the_first_deadline_of_what_waits(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let short = until(&trial, "http://b.test/", 1);
    let long = until(&trial, "http://a.test/", 2);
    let deadline = long.job.deadline.expect("it has one");
    trial.enqueue(vec![short, long]).await;
    let worker = trial.worker().await;
    let done = worker.lease(10).await;
    for lease in &done {
        let settlement = match lease.job.url.as_str() {
            "http://b.test/" => Settlement::Done,
            _ => Settlement::HandBack { at: trial.now() + secs(1_000) },
        };
        worker.settle(lease, settlement).await;
    }
    let demand = Demand { most: 10, most_per_site: 10, ..Demand::default() };
    let taken = worker.take(&demand).await;
    assert!(matches!(taken, Taken::Idle { until } if until <= deadline), "{taken:?}");
}
