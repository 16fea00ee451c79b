//! The queue: a list to which producers push URLs, and the states of these URLs.
//!
//! A take first moves URLs from the head of the list to `{list}:jobs`, each with an id, and then files them under their
//! sites, which scripts cannot determine. URLs that were moved but not filed belong to no instance; the next renewal
//! files them. From then on each job waits in one sorted set, `{list}:parked`, ordered by site, due time and id, and
//! `{list}:sites` says which site is next. So the cost of a take depends on what it returns, not on the number of jobs
//! and sites.
//!
//! Other clients see three keys and change two of them: the list, the list of dead letters, and `{list}:size`, the
//! number of URLs waiting anywhere. Their changes are found when we read, because what we keep beside a list is only an
//! index of it.
//!
//! Every change is one script, which uses the server's clock and declares all the keys of the queue. It is as durable
//! as the server's append-only file: with `appendfsync always`, nothing that was answered is lost; with `everysec`, a
//! crash of the machine loses the last second.

mod dead_letters;
mod instance;
mod job;
mod names;
mod rounds;
mod scripts;
mod unparking;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use fetchwell_engine::ports::queue::{Instance, Ledger, LedgerMismatch, Queue};
use fetchwell_engine::ports::sites::Waiting;
use fetchwell_engine::ports::url_queue::{Backlog, DeadLetterWorker, Unparked, UrlQueue};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;

use super::link::RedisConnection;
use crate::StoreClock;
pub use instance::RedisInstance;
use job::{Entry, site_of};
pub use names::QueueNames;
use scripts::Scripts;
pub use unparking::{UnparkStep, Unparking};

/// How often to check an idle list by default. No blocking command is used: the list is polled, as the parked jobs have
/// to be anyway.
pub const DEFAULT_POLL: Duration = Duration::from_millis(500);

/// The key with the politeness store that all queues of a server are bound to.
const POLITENESS_KEY: &str = "fetchwell:store:politeness";

/// The maximum number of jobs that one script moves. It blocks all other clients, including politeness, for some ten
/// milliseconds.
const MOST_PER_SCRIPT: usize = 250;

/// A queue on a Redis server.
#[derive(Clone)]
pub struct RedisQueue {
    scripts: Arc<Scripts>,
    news: Arc<Notify>,
    lease_ttl: Duration,
    run_once: bool,
    poll: Duration,
}

/// An id, and the site of its URL.
type Filing = (String, String);

impl RedisQueue {
    /// Opens the queue with these names. Checks it every `poll` for URLs from other processes; with `run_once`, a run
    /// ends when it is empty.
    pub async fn open(
        url: &str,
        names: &QueueNames,
        clock: StoreClock,
        lease_ttl: Duration,
        run_once: bool,
        poll: Duration,
    ) -> Result<RedisQueue, StoreError> {
        let link = RedisConnection::open(url).await?;
        link.warn_of_forgetting().await?;
        let scripts = Arc::new(Scripts::new(link, names, clock));
        Ok(RedisQueue { scripts, news: Arc::default(), lease_ttl, run_once, poll })
    }

    /// Binds the queues of the server to a politeness store. The first one stays bound; returns that one.
    pub async fn bind_politeness(&self, politeness: &str) -> Result<String, StoreError> {
        self.scripts.settle_on(POLITENESS_KEY, politeness).await
    }

    /// Joins the queue as a new instance.
    pub fn instance(&self) -> RedisInstance {
        RedisInstance::new(self.clone())
    }

    /// The time, and when the oldest URL that has not ended was accepted, by the server's clock.
    async fn oldest(&self) -> Result<(Time, Option<Time>), StoreError> {
        let asked = json!({ "most": MOST_PER_SCRIPT });
        let (now_us, oldest_us): (i64, Option<i64>) =
            self.scripts.run(script!("oldest.lua"), &asked).await?;
        Ok((Time::from_micros(now_us), oldest_us.map(Time::from_micros)))
    }

    /// Moves URLs from the head of the list. They still have to be filed.
    async fn move_heads(&self) -> Result<Vec<Filing>, StoreError> {
        self.to_be_filed(script!("move.lua")).await
    }

    /// Files URLs that were moved but not filed. If the instance that moved them is about to file them, one of the two
    /// does it.
    async fn file_the_unfiled(&self) -> Result<(), StoreError> {
        loop {
            let filings = self.to_be_filed(script!("unfiled.lua")).await?;
            let is_last = filings.len() < MOST_PER_SCRIPT;
            if !filings.is_empty() {
                let asked = json!({ "filings": filings });
                self.scripts.run::<()>(script!("file.lua"), &asked).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn to_be_filed(&self, script: &redis::Script) -> Result<Vec<Filing>, StoreError> {
        let asked = json!({ "most": MOST_PER_SCRIPT });
        let urls: Vec<(LeaseId, Vec<u8>)> = self.scripts.run(script, &asked).await?;
        Ok(urls.into_iter().map(|(id, url)| (id.to_string(), site_of(&url))).collect())
    }

    /// The ledger, the counts of the keys themselves, and the number of waiting URLs.
    async fn count(&self) -> Result<(Ledger, Counted, i64), StoreError> {
        let (told, counted, waiting): ([i64; 7], [i64; 9], i64) =
            self.scripts.run(script!("count.lua"), &json!({})).await?;
        let [accepted, done, skipped, queued, in_flight, delayed, dead] = told;
        let ledger = Ledger { accepted, done, skipped, queued, in_flight, delayed, dead };
        let [list, unfiled, parked, delayed, leased, dead, jobs, dead_list, under_way] = counted;
        let counted =
            Counted { list, unfiled, parked, delayed, leased, dead, jobs, dead_list, under_way };
        Ok((ledger, counted, waiting))
    }
}

#[async_trait]
impl Queue for RedisQueue {
    /// Bypasses the list. Stores the lanes, but they do not take turns.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        #[derive(Serialize)]
        struct Asked<'a> {
            jobs: Vec<Entry<'a>>,
        }
        let mut accepted = 0;
        for jobs in jobs.chunks(MOST_PER_SCRIPT) {
            let jobs = jobs.iter().map(|new| Entry::of(new, &self.scripts.clock)).collect();
            accepted += self.scripts.run::<usize>(script!("enqueue.lua"), &Asked { jobs }).await?;
        }
        self.news.notify_one();
        Ok(accepted)
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(RedisQueue::instance(self))
    }

    /// URLs that are still on the list do not count as accepted.
    async fn ledger(&self) -> Result<Ledger, StoreError> {
        Ok(self.backlog().await?.ledger)
    }

    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError> {
        let (told, counted, _) = self.count().await?;
        let Counted { unfiled, parked, delayed, leased, dead, jobs, under_way, .. } = counted;
        let told_so = [told.queued, told.delayed, told.in_flight, told.dead, jobs]
            == [
                unfiled + parked - delayed,
                delayed,
                leased,
                dead,
                unfiled + parked + leased + dead,
            ];
        Ok(if told.balances() && told_so && under_way <= leased {
            Ok(told)
        } else {
            let text = format!("the counters say {told:?}, the keys say {counted:?}");
            Err(LedgerMismatch(text))
        })
    }
}

#[async_trait]
impl UrlQueue for RedisQueue {
    /// Pushes to the list, like other producers.
    async fn push(&self, urls: &[String]) -> Result<(), StoreError> {
        for urls in urls.chunks(MOST_PER_SCRIPT) {
            self.scripts.run_with::<()>(script!("push.lua"), &json!({}), urls).await?;
        }
        self.news.notify_one();
        Ok(())
    }

    fn dead_letter_worker(&self) -> Arc<dyn DeadLetterWorker> {
        Arc::new(RedisQueue::instance(self))
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let (ledger, counted, waiting) = self.count().await?;
        let many = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(Backlog {
            ledger,
            on_list: Some(many(counted.list)),
            waiting: many(waiting),
            dead: many(counted.dead_list),
        })
    }

    /// Includes URLs that wait, are delayed or are leased.
    async fn waited_longest(&self) -> Result<Option<Duration>, StoreError> {
        let (now, oldest) = self.oldest().await?;
        Ok(oldest.map(|accepted_at| now.since(accepted_at)))
    }

    async fn follow_dead_list(&self) -> Result<(), StoreError> {
        // Letters that others put there are adopted when they are listed: the list may be shared with other queues.
        self.compare_with_dead_list(false).await
    }

    async fn unpark(&self, only_when_alone: bool) -> Result<Option<Unparked>, StoreError> {
        self.unparking(only_when_alone).finish().await.map(Some)
    }
}

/// URLs that are still on the list are not filed under a site yet, and do not count.
#[async_trait]
impl Waiting for RedisQueue {
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError> {
        let asked = json!({ "sites": sites });
        let counts: Vec<u64> = self.scripts.run(script!("waiting_for.lua"), &asked).await?;
        Ok(counts.into_iter().map(|count| count.min(most.into())).collect())
    }
}

#[derive(Debug)]
struct Counted {
    list: i64,
    unfiled: i64,
    parked: i64,
    delayed: i64,
    leased: i64,
    dead: i64,
    jobs: i64,
    dead_list: i64,
    under_way: i64,
}
