//! How much waits for a site, by each store that has queues.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::Queue as _;
use fetchwell_engine::ports::sites::Waiting;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{self, PostgresQueue};
use fetchwell_stores::redis::{QueueNames, RedisQueue};
use fetchwell_stores::sqlite::{self, SqliteQueue};
use fetchwell_testkit::conformance::servers::{server_url, unique};

const TTL: Duration = Duration::from_secs(60);

/// A queue with its name, as far as this is about.
#[async_trait]
trait Queue: Send + Sync {
    async fn put(&self, jobs: Vec<NewJob>);
    fn source(&self) -> Box<dyn Source>;
}

macro_rules! queue {
    ($type:ty) => {
        #[async_trait]
        impl Queue for $type {
            async fn put(&self, jobs: Vec<NewJob>) {
                self.enqueue(jobs).await.unwrap();
            }

            fn source(&self) -> Box<dyn Source> {
                Box::new(self.instance())
            }
        }
    };
}
queue!(SqliteQueue);
queue!(PostgresQueue);
queue!(RedisQueue);

fn job(site: &Site, page: usize, due: Option<Time>) -> NewJob {
    let url = format!("http://{site}/{page}");
    let lane = Lane::default();
    let payload = Vec::new();
    let deadline = None;
    let job = Job { url, site: Some(site.clone()), lane, payload, deadline };
    NewJob { job, key: None, due }
}

/// What waits and what is put off counts, what is in somebody's hands does not, and neither does what waits
/// for a site whose name only begins like this one's.
async fn counts_what_waits(queue: &dyn Queue, waiting: &dyn Waiting, now: Time) {
    let name = format!("s{}", unique());
    let site = |end: &str| Site::parse(&format!("{name}{end}")).unwrap();
    let busy = site(".test");
    let longer = site(".test2");
    let never = site(".never");
    let later = Some(now + Duration::from_secs(3_600));
    queue.put((0..12).map(|n| job(&busy, n, None)).collect()).await;
    queue.put((12..15).map(|n| job(&busy, n, later)).collect()).await;
    queue.put(vec![job(&longer, 0, None)]).await;
    let sites = [never, busy.clone(), longer];
    assert_eq!(waiting.waiting_for(&sites, 1_000).await.unwrap(), [0, 15, 1]);
    assert_eq!(waiting.waiting_for(&sites, 10).await.unwrap(), [0, 10, 1], "it ends somewhere");
    let source = queue.source();
    source.renew().await.unwrap();
    let demand = Demand { most: 5, most_per_site: 5, ..Demand::default() };
    let Taken::Jobs(taken) = source.take(&demand).await.unwrap() else { panic!("nothing to take") };
    let of_busy =
        taken.iter().filter(|lease| lease.job.site.as_ref() == Some(&busy)).count() as u64;
    let left = waiting.waiting_for(&[busy], 1_000).await.unwrap();
    assert_eq!(left, [15 - of_busy]);
    source.leave().await.unwrap();
}

#[tokio::test]
async fn in_a_file_over_all_queues_but_the_deliveries() {
    let folder = tempfile::tempdir().unwrap();
    let db = sqlite::open(&folder.path().join("a.db"), Durability::Process).unwrap();
    let clock = sqlite::clock(&db).await.unwrap();
    let open = async |name| SqliteQueue::open(db.clone(), name, clock.clone(), TTL, false).await;
    let pages = open("pages").await.unwrap();
    let deliveries = open("webhooks").await.unwrap();
    let waiting = sqlite::SqliteWaiting::new(db.clone());
    counts_what_waits(&pages, &waiting, clock.now()).await;
    let receiver = Site::parse("receiver.test").unwrap();
    deliveries.put(vec![job(&receiver, 1, None)]).await;
    assert_eq!(waiting.waiting_for(&[receiver], 10).await.unwrap(), [0]);
}

#[tokio::test]
async fn in_postgresql() {
    let Some(url) = server_url("FETCHWELL_TEST_POSTGRES_URL") else { return };
    let db = postgres::Database::open(&url).await.unwrap();
    let clock = Clock::since_boot(Clock::booted_at());
    let by = StoreClock::Server(clock.clone());
    let name = format!("waiting{}", unique());
    let poll = Duration::from_secs(1);
    let queue = PostgresQueue::open(db.clone(), &name, by, TTL, false, poll).await.unwrap();
    counts_what_waits(&queue, &db, clock.now()).await;
}

#[tokio::test]
async fn in_redis() {
    let Some(url) = server_url("FETCHWELL_TEST_REDIS_URL") else { return };
    let clock = Clock::since_boot(Clock::booted_at());
    let input = format!("waiting{}", unique());
    let dead_letters = format!("dead{}", unique());
    let names = QueueNames { input, dead_letters };
    let by = StoreClock::Server(clock.clone());
    let poll = Duration::from_secs(1);
    let queue = Arc::new(RedisQueue::open(&url, &names, by, TTL, false, poll).await.unwrap());
    counts_what_waits(&*queue, &*queue, clock.now()).await;
}
