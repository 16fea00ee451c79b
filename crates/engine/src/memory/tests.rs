use std::time::Duration;

use fetchwell_policy::time::Time;

use super::MemoryQueue;
use crate::clock::Clock;
use crate::ports::dead_letters::Revision;
use crate::ports::finish::{Settle, Settlement};
use crate::ports::job::{Job, Lease, LeaseId, NewJob};
use crate::ports::queue::Ledger;
use crate::ports::source::{Demand, Source, Taken};

const NOW: Time = Time::from_secs(1_000);

/// A queue with this many jobs, whose ids count from 1. The last one is delayed.
fn queue(jobs: usize) -> MemoryQueue {
    let queue = MemoryQueue::new(Clock::new(|| NOW), Duration::from_secs(20), false);
    for number in 1..=jobs {
        let job = Job::new(format!("http://a.test/{number}"), Vec::new());
        let due = (number == jobs).then_some(NOW + Duration::from_secs(60));
        queue.enqueue(vec![NewJob { due, ..NewJob::keyed(job) }]);
    }
    queue
}

async fn take(queue: &MemoryQueue) -> (impl Settle + use<>, Vec<Lease>) {
    let instance = queue.instance();
    instance.renew().await.unwrap();
    let demand = Demand { most: 10, most_per_site: 10, ..Demand::default() };
    match instance.take(&demand).await.unwrap() {
        Taken::Jobs(leases) => (instance, leases),
        _ => (instance, Vec::new()),
    }
}

fn ids(leases: &[Lease]) -> Vec<LeaseId> {
    leases.iter().map(|lease| lease.id).collect()
}

#[tokio::test]
async fn a_waiting_job_can_be_ended_and_a_delayed_one_hastened() {
    let queue = queue(3);
    assert!(queue.end_waiting(1) && !queue.end_waiting(1));
    assert!(queue.hasten(3) && !queue.hasten(3) && !queue.hasten(2));
    let (_, leases) = take(&queue).await;
    assert_eq!(ids(&leases), [2, 3]);
    assert!(!queue.end_waiting(2), "it is leased");
    let expected = Ledger { accepted: 3, done: 1, in_flight: 2, ..Ledger::default() };
    assert_eq!(queue.ledger(), expected);
}

#[tokio::test]
async fn a_dead_job_can_be_retried_or_dropped() {
    let queue = queue(3);
    let (instance, mut leases) = take(&queue).await;
    leases[0].history.url_failures = 3;
    let dead = Settlement::Dead { reason: "gone".to_owned() };
    let ends: Vec<_> = leases.iter().map(|lease| (lease, &dead)).collect();
    instance.settle(&ends).await.unwrap();
    assert!(queue.revise(1, Revision::Retry) && !queue.revise(1, Revision::Retry));
    assert!(queue.revise(2, Revision::Drop) && !queue.revise(3, Revision::Drop));
    let (_, leases) = take(&queue).await;
    assert_eq!(ids(&leases), [1]);
    assert_eq!(leases[0].history, Default::default());
    let expected =
        Ledger { accepted: 3, skipped: 1, in_flight: 1, delayed: 1, ..Ledger::default() };
    assert_eq!(queue.ledger(), expected);
}
