//! Jobs with deadlines.

use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::source::{Demand, Taken};

use super::QueueStore;
use super::trial::{Trial, Worker, job, site};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A job of a.test with a deadline in this many seconds.
fn until(trial: &Trial, url: &str, in_s: u64) -> NewJob {
    let mut new = job(url);
    new.job.deadline = Some(trial.now() + secs(in_s));
    new
}

/// Closes the site for a long time, so that only overdue jobs are leased.
async fn close(trial: &Trial, worker: &Worker<'_>) {
    let closed = vec![(site("a.test"), trial.now() + secs(9_000))];
    let closing = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    assert!(matches!(worker.take(&closing).await, Taken::Idle { .. }));
}

/// Advances the time while the instance stays alive.
async fn pass(trial: &Trial, worker: &Worker<'_>, in_s: u64) {
    for _ in 0..in_s {
        trial.clock.advance(secs(1));
        worker.renew().await;
    }
}

async fn urls(worker: &Worker<'_>, most: usize) -> Vec<String> {
    worker.lease(most).await.into_iter().map(|lease| lease.job.url).collect()
}

/// Jobs that were added together have separate deadlines.
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

/// If there are more than requested, they come in several takes, none twice.
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

/// If the deadline passes while a job is leased, the job is overdue when it comes back, in whatever way.
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

/// Jobs with one deadline that are requeued in two steps: leasing some must not lose the others.
pub async fn jobs_requeued_after_their_shared_deadline_are_all_overdue(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let named: Vec<String> = (0..4).map(|n| format!("http://a.test/{n}")).collect();
    trial.enqueue(named.iter().map(|url| until(&trial, url, 3)).collect()).await;
    let worker = trial.worker().await;
    let held = worker.lease(10).await;
    pass(&trial, &worker, 4).await;
    assert!(urls(&worker, 10).await.is_empty());
    let back = Settlement::HandBack { at: trial.now() + secs(1_000) };
    for some in [[0, 2], [1, 3]] {
        let batch: Vec<_> = some.iter().map(|n| (&held[*n], &back)).collect();
        worker.settle_all(&batch).await;
    }
    let mut came = urls(&worker, 1).await;
    came.extend(urls(&worker, 10).await);
    came.sort();
    assert_eq!(came, named);
}

/// Each job is leased once, even if several deadlines passed during an outage.
pub async fn jobs_with_several_expired_deadlines_are_leased_once(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let jobs = [("http://a.test/1", 10), ("http://a.test/2", 20), ("http://a.test/3", 10)];
    trial.enqueue(jobs.iter().map(|(url, in_s)| until(&trial, url, *in_s)).collect()).await;
    let worker = trial.worker().await;
    close(&trial, &worker).await;
    pass(&trial, &worker, 30).await;
    let mut came = urls(&worker, 10).await;
    came.sort();
    assert_eq!(came, jobs.map(|(url, _)| url));
}

/// An idle queue reports the next deadline, and not the deadlines of finished jobs.
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
