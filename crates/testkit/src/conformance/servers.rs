//! The adapters on real servers, for the suites.
//!
//! Each store is a new schema or database on the server that an environment variable names. Without the variable, the
//! tests report that they were skipped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::sites::Sites;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_engine::shared_politeness::{Change, SharedPoliteness, SiteStateStore, SiteStates};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use fetchwell_stores::StoreClock;
use fetchwell_stores::postgres::{Database, PostgresQueue, PostgresSiteStates, open_retriever};
use fetchwell_stores::redis::{QueueNames, RedisFeeds, RedisQueue, RedisSiteStates};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig};
use tokio::sync::OnceCell;

use super::dead_letters::{LettersStore, the_dead};
use super::feeds::FeedsStore;
use super::inbox::{self, InboxStore};
use super::politeness::PolitenessStore;
use super::queue::{LEASE_TTL, QueueOnTrial, QueueStore};
use super::rounds::RoundsStore;
use crate::skip::skipped;

/// The seed for the jitter of the breakers' open times.
const SEED: u64 = 7;
/// How long a server may take to answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often queues are polled for new jobs.
const QUEUE_POLL: Duration = Duration::from_millis(500);

/// A new schema in the database that `FETCHWELL_TEST_POSTGRES_URL` names.
pub struct PostgresStore {
    url: String,
    /// The URL of the schema, once it is created.
    schema: Arc<OnceCell<String>>,
}

impl PostgresStore {
    /// `None` if no server is named; the skip is reported.
    pub fn if_there() -> Option<PostgresStore> {
        let url = server_url("FETCHWELL_TEST_POSTGRES_URL")?;
        Some(PostgresStore { url, schema: Arc::default() })
    }
}

/// The URL of a schema that no test has used yet. `None` if no server is named; the skip is reported.
pub async fn unused_postgres() -> Option<String> {
    Some(unused_postgres_schema(server_url("FETCHWELL_TEST_POSTGRES_URL")?).await)
}

/// Creates a schema that no test has used yet, and returns its URL.
pub async fn unused_postgres_schema(url: String) -> String {
    use sqlx::{AssertSqlSafe, Connection, Executor};
    let mut connection = sqlx::PgConnection::connect(&url).await.expect("the server answers");
    let schema = format!("conformance_{:016x}", unique());
    let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
    connection.execute(create).await.expect("the schema is made");
    format!("{url}?options=-c%20search_path%3D{schema}")
}

/// Runs statements and returns the first column of each selected row, as text.
pub async fn run_sql(url: &str, sql: &str) -> Vec<String> {
    use sqlx::{AssertSqlSafe, Connection, Row};
    let mut connection = sqlx::PgConnection::connect(url).await.expect("the server answers");
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
    let rows = rows.expect("the statements are sound");
    // This works for every type: simple queries return text.
    rows.iter().map(|row| row.try_get_unchecked(0).expect("a value")).collect()
}

impl PolitenessStore for PostgresStore {
    fn open(&self, clock: Clock, rule: BreakerRule) -> Arc<dyn Sites> {
        let url = self.url.clone();
        let schema = self.schema.clone();
        let open = async move {
            let address = schema.get_or_init(|| unused_postgres_schema(url)).await;
            let site_states = PostgresSiteStates::open(address).await.expect("the server answers");
            Box::new(site_states) as Box<dyn SiteStateStore>
        };
        by_hand(Box::pin(open), clock, rule, self.forgets_by_itself())
    }

    fn fresh(&self) -> Box<dyn PolitenessStore> {
        Box::new(PostgresStore { url: self.url.clone(), schema: Arc::default() })
    }
}

impl PostgresStore {
    /// Separate connections, as each process has them.
    async fn connect(&self) -> Database {
        let url = self.url.clone();
        let address = self.schema.get_or_init(|| unused_postgres_schema(url)).await;
        Database::open(address).await.expect("the server answers")
    }
}

#[async_trait]
impl QueueStore for PostgresStore {
    async fn open(&self, clock: Clock, run_once: bool) -> Box<dyn QueueOnTrial> {
        let db = self.connect().await;
        let clock = StoreClock::ByHand(clock);
        let queue =
            PostgresQueue::open(db, "conformance", clock, LEASE_TTL, run_once, QUEUE_POLL).await;
        Box::new(queue.expect("the queue opens"))
    }

    fn fresh(&self) -> Box<dyn QueueStore> {
        Box::new(PostgresStore { url: self.url.clone(), schema: Arc::default() })
    }
}

#[async_trait]
impl InboxStore for PostgresStore {
    async fn open(&self, clock: Clock) -> RetrieverStore {
        let db = self.connect().await;
        let clock = StoreClock::ByHand(clock);
        let store = open_retriever(db, clock, inbox::LEASE_TTL, QUEUE_POLL).await;
        store.expect("the inbox opens")
    }

    async fn execute(&self, statement: &str) {
        let address = self.schema.get().expect("the inbox was opened");
        run_sql(address, &statement.replace("{}", "fetchwell_")).await;
    }
}

#[async_trait]
impl QueueOnTrial for PostgresQueue {
    async fn dead(&self) -> Vec<(String, String)> {
        PostgresQueue::dead(self, u32::MAX).await.expect("the dead can be read")
    }
}

/// A new database on the server that `FETCHWELL_TEST_REDIS_URL` names.
pub struct RedisStore {
    url: String,
    /// The URL of a database that no other test has used, once it is chosen.
    database: Arc<OnceCell<String>>,
}

impl RedisStore {
    /// `None` if no server is named; the skip is reported.
    pub fn if_there() -> Option<RedisStore> {
        let url = server_url("FETCHWELL_TEST_REDIS_URL")?;
        Some(RedisStore { url, database: Arc::default() })
    }
}

/// The URL of a database that no test has used yet. `None` if no server is named; the skip is reported.
pub async fn unused_redis() -> Option<String> {
    Some(unused_redis_database(server_url("FETCHWELL_TEST_REDIS_URL")?).await)
}

/// The URL of a database that no test has used yet; a counter is kept in the first database.
pub async fn unused_redis_database(url: String) -> String {
    let mut next = redis::cmd("INCR");
    next.arg("fetchwell-test:databases");
    let counted = next.query_async(&mut redis_connection(&url).await).await;
    let number: i64 = counted.expect("the server counts");
    format!("{}/{number}", url.trim_end_matches('/'))
}

/// A connection to the database at this URL.
pub async fn redis_connection(url: &str) -> MultiplexedConnection {
    try_redis_connection(url).await.expect("the server answers")
}

/// The same, for a server that may be down.
pub async fn try_redis_connection(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let client = redis::Client::open(url)?;
    // The default timeout of the client is half a second, which a busy machine exceeds.
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    client.get_multiplexed_async_connection_with_config(&patient).await
}

impl PolitenessStore for RedisStore {
    fn open(&self, clock: Clock, rule: BreakerRule) -> Arc<dyn Sites> {
        let url = self.url.clone();
        let database = self.database.clone();
        let open = async move {
            let address = database.get_or_init(|| unused_redis_database(url)).await;
            let site_states =
                RedisSiteStates::open(address).await.expect("the server has databases enough");
            Box::new(site_states) as Box<dyn SiteStateStore>
        };
        by_hand(Box::pin(open), clock, rule, self.forgets_by_itself())
    }

    fn fresh(&self) -> Box<dyn PolitenessStore> {
        Box::new(RedisStore { url: self.url.clone(), database: Arc::default() })
    }

    fn forgets_by_itself(&self) -> bool {
        true
    }
}

#[async_trait]
impl QueueStore for RedisStore {
    async fn open(&self, clock: Clock, run_once: bool) -> Box<dyn QueueOnTrial> {
        Box::new(self.open_queue(clock, run_once).await)
    }

    fn fresh(&self) -> Box<dyn QueueStore> {
        Box::new(RedisStore { url: self.url.clone(), database: Arc::default() })
    }
}

impl RedisStore {
    /// The URL of its database.
    pub(super) async fn address(&self) -> String {
        let url = self.url.clone();
        self.database.get_or_init(|| unused_redis_database(url)).await.clone()
    }

    /// A connection to its database, to inspect it.
    pub(super) async fn line(&self) -> MultiplexedConnection {
        redis_connection(&self.address().await).await
    }

    async fn open_queue(&self, clock: Clock, run_once: bool) -> RedisQueue {
        let address = self.address().await;
        let names = conformance_names();
        let clock = StoreClock::ByHand(clock);
        let queue =
            RedisQueue::open(&address, &names, clock, LEASE_TTL, run_once, QUEUE_POLL).await;
        queue.expect("the queue opens")
    }
}

#[async_trait]
impl LettersStore for RedisStore {
    async fn open_letters(&self, clock: Clock) -> Box<dyn UrlQueue> {
        Box::new(self.open_queue(clock, false).await)
    }

    async fn pop_letter(&self, url: &str) {
        let list = conformance_names().dead_letters;
        let popped: usize = self.line().await.lrem(list, 1, url).await.expect("the server answers");
        assert_eq!(popped, 1);
    }
}

#[async_trait]
impl RoundsStore for RedisStore {
    async fn open_rounds(&self, clock: Clock) -> Box<dyn UrlQueue> {
        Box::new(self.open_queue(clock, false).await)
    }
}

#[async_trait]
impl FeedsStore for RedisStore {
    async fn open_feeds(&self) -> Arc<dyn Feeds> {
        Arc::new(RedisFeeds::open(&self.address().await).await.expect("the server answers"))
    }
}

fn conformance_names() -> QueueNames {
    QueueNames { input: "conformance".to_owned(), dead_letters: "conformance_dead".to_owned() }
}

#[async_trait]
impl QueueOnTrial for RedisQueue {
    async fn dead(&self) -> Vec<(String, String)> {
        the_dead(self).await
    }
}

/// The URL in an environment variable.
pub fn server_url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        skipped(&format!("{variable} is not set; scripts/test and scripts/servers set it"));
    }
    url
}

/// A number that no other test uses.
pub fn unique() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

type Opening = BoxFuture<'static, Box<dyn SiteStateStore>>;

fn by_hand(
    opening: Opening,
    clock: Clock,
    rule: BreakerRule,
    forgets_by_itself: bool,
) -> Arc<dyn Sites> {
    let opening = Mutex::new(Some(opening));
    let site_states = OnceCell::new();
    let site_states = HandTimed { opening, site_states, clock, forgets_by_itself };
    Arc::new(SharedPoliteness::unguarded(site_states, rule, SEED))
}

/// A store of site states that is opened on first use and has a manual clock. It never reports lost state, and nothing
/// in it expires by itself, because the server's clock is independent of the manual one.
struct HandTimed {
    opening: Mutex<Option<Opening>>,
    site_states: OnceCell<Box<dyn SiteStateStore>>,
    clock: Clock,
    forgets_by_itself: bool,
}

impl HandTimed {
    async fn site_states(&self) -> &dyn SiteStateStore {
        let open = || {
            let opening = self.opening.lock().take();
            opening.expect("it is opened once")
        };
        &**self.site_states.get_or_init(open).await
    }
}

#[async_trait]
impl SiteStateStore for HandTimed {
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let reading = self.site_states().await.read(sites).await?;
        Ok(SiteStates { now: self.clock.now(), lost_until: Time::EPOCH, ..reading })
    }

    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        let mut changes = changes.to_vec();
        for change in changes.iter_mut().filter(|_| self.forgets_by_itself) {
            change.forgettable_at = None;
        }
        self.site_states().await.replace(&changes).await
    }

    async fn distrust_the_past(&self) -> Result<(), StoreError> {
        self.site_states().await.distrust_the_past().await
    }

    async fn names(
        &self,
        after: &str,
        notable: bool,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.site_states().await.names(after, notable, most).await
    }

    async fn note_order(
        &self,
        site: &Site,
        at: Time,
        forget_before: Time,
    ) -> Result<(), StoreError> {
        self.site_states().await.note_order(site, at, forget_before).await
    }

    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError> {
        self.site_states().await.ordered(since, most).await
    }

    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        self.site_states().await.robots(origins).await
    }

    async fn forget_robots(&self, origins: &[Origin]) -> Result<(), StoreError> {
        self.site_states().await.forget_robots(origins).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        self.site_states().await.keep_robots(origin, record).await
    }

    async fn sweep(&self, now: Time) -> Result<u64, StoreError> {
        self.site_states().await.sweep(now).await
    }
}
