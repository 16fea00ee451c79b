//! The queue: a list that producers push URLs to, and what becomes of them.
//!
//! Whoever takes moves heads of the list into `{list}:jobs` first, each under an id of its own; then it
//! files them under their sites, which scripts can't tell. What was moved and not filed belongs to nobody:
//! whoever renews next files it. From there on each job waits in one sorted set, `{list}:parked`, whose
//! order is that of sites, due times and ids, and `{list}:sites` says which site gives next; so a take
//! costs as much as it gives, however many jobs and sites there are.
//!
//! Other clients see three keys and change two of them: the list, the list of dead letters, and `{list}:size`, which
//! says how many URLs wait anywhere. What they did is found whenever we read: what is kept beside a list is an index
//! of it.
//!
//! Every move is one script, by the server's clock, and names all the keys of the queue. It is worth what
//! the server's log is worth: with `appendfsync always` nothing that was answered is lost, with `everysec`
//! a crash of the machine costs the last second.

mod dead_letters;
mod instance;
mod job;
mod names;
mod rounds;
mod scripts;
mod unparking;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use fetchwell_engine::ports::queue::{Instance, Ledger, LedgerMismatch, Queue};
use fetchwell_engine::ports::url_queue::{Backlog, DeadLetterWorker, Unparked, UrlQueue};
use fetchwell_policy::time::Time;
use serde::Serialize;
use tokio::sync::Notify;

use super::link::Link;
use crate::StoreClock;
pub use instance::RedisInstance;
use job::{Entry, site_of};
pub use names::QueueNames;
use scripts::{Nothing, Scripts};
pub use unparking::{UnparkStep, Unparking};

/// How often an idle list is looked at, unless a door says otherwise. Nothing waits inside Redis for it:
/// the list is asked, as the parked ones have to be anyway.
pub const DEFAULT_POLL: Duration = Duration::from_millis(500);

/// Where a server's politeness is, for all queues on it.
const POLITENESS_KEY: &str = "fetchwell:store:politeness";

/// The most jobs that one script moves. Others wait meanwhile, politeness among them: this is some ten
/// milliseconds of theirs.
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

#[derive(Serialize)]
struct AtMost {
    most: usize,
}

#[derive(Serialize)]
struct Filings {
    filings: Vec<Filing>,
}

/// An id, and the site of its URL.
type Filing = (String, String);

impl RedisQueue {
    /// The queue of these names, which is looked at every `poll` for what others put in; `run_once` doors
    /// end when it is empty.
    pub async fn open(
        url: &str,
        names: &QueueNames,
        clock: StoreClock,
        lease_ttl: Duration,
        run_once: bool,
        poll: Duration,
    ) -> Result<RedisQueue, StoreError> {
        let link = Link::open(url).await?;
        link.warn_of_forgetting().await?;
        let scripts = Arc::new(Scripts::new(link, names, clock));
        Ok(RedisQueue { scripts, news: Arc::default(), lease_ttl, run_once, poll })
    }

    /// Notes which politeness store the server's queues go with, the first time; later it stays with that one.
    /// Returns which it is.
    pub async fn bind_politeness(&self, politeness: &str) -> Result<String, StoreError> {
        self.scripts.settle_on(POLITENESS_KEY, politeness).await
    }

    /// Joins as a new instance.
    pub fn instance(&self) -> RedisInstance {
        RedisInstance::new(self.clone())
    }

    /// What time it is, and when the oldest URL was accepted that has not ended, by the server's clock.
    async fn oldest(&self) -> Result<(Time, Option<Time>), StoreError> {
        let asked = AtMost { most: MOST_PER_SCRIPT };
        let (now_us, oldest_us): (i64, Option<i64>) =
            self.scripts.run(&self.scripts.oldest, &asked).await?;
        Ok((Time::from_micros(now_us), oldest_us.map(Time::from_micros)))
    }

    /// Moves heads of the list into our hands. They are to be filed.
    async fn move_heads(&self) -> Result<Vec<Filing>, StoreError> {
        self.to_be_filed(&self.scripts.move_heads).await
    }

    /// Files what was moved and not filed. What its mover is about to file is filed by one of the two.
    async fn file_the_unfiled(&self) -> Result<(), StoreError> {
        loop {
            let filings = self.to_be_filed(&self.scripts.unfiled).await?;
            let is_last = filings.len() < MOST_PER_SCRIPT;
            if !filings.is_empty() {
                let asked = Filings { filings };
                self.scripts.run::<()>(&self.scripts.file, &asked).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn to_be_filed(&self, script: &redis::Script) -> Result<Vec<Filing>, StoreError> {
        let asked = AtMost { most: MOST_PER_SCRIPT };
        let urls: Vec<(LeaseId, Vec<u8>)> = self.scripts.run(script, &asked).await?;
        Ok(urls.into_iter().map(|(id, url)| (id.to_string(), site_of(&url))).collect())
    }

    /// By the counters, by the keys themselves, and how many wait.
    async fn count(&self) -> Result<(Ledger, Counted, i64), StoreError> {
        let (told, counted, waiting): ([i64; 7], [i64; 9], i64) =
            self.scripts.run(&self.scripts.count, &Nothing {}).await?;
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
    /// Past the list. Lanes are kept, and take no turns.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        #[derive(Serialize)]
        struct Asked<'a> {
            jobs: Vec<Entry<'a>>,
        }
        let mut accepted = 0;
        for jobs in jobs.chunks(MOST_PER_SCRIPT) {
            let jobs = jobs.iter().map(|new| Entry::of(new, &self.scripts.clock)).collect();
            accepted += self.scripts.run::<usize>(&self.scripts.enqueue, &Asked { jobs }).await?;
        }
        self.news.notify_one();
        Ok(accepted)
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(RedisQueue::instance(self))
    }

    /// What is on the list is not accepted yet.
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
    /// On the list, as producers do.
    async fn push(&self, urls: &[String]) -> Result<(), StoreError> {
        for urls in urls.chunks(MOST_PER_SCRIPT) {
            let urls: Vec<&[u8]> = urls.iter().map(String::as_bytes).collect();
            self.scripts.run_with::<()>(&self.scripts.push, &Nothing {}, &urls).await?;
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

    /// It waits, is delayed, or is in somebody's hands.
    async fn waited_longest(&self) -> Result<Option<Duration>, StoreError> {
        let (now, oldest) = self.oldest().await?;
        Ok(oldest.map(|accepted_at| now.since(accepted_at)))
    }

    async fn follow_dead_list(&self) -> Result<(), StoreError> {
        // What others put there becomes ours when somebody asks for it: a list may be shared with other queues.
        self.compare_with_dead_list(false).await
    }

    async fn unpark(&self, only_when_alone: bool) -> Result<Option<Unparked>, StoreError> {
        let unparking =
            if only_when_alone { self.unparking_when_alone() } else { self.unparking() };
        unparking.finish().await.map(Some)
    }
}

/// How many are where.
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
