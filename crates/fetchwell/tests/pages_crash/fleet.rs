//! Instances of `pages` on servers that may crash, and a ledger outside them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fetchwell_engine::adapters::StoreClock;
use fetchwell_engine::adapters::redis::{DEFAULT_POLL, QueueNames, RedisQueue};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::{Ledger, StoreFault};
use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::conformance::kafka::read_topic;
use fetchwell_testkit::crash::{Origin, OwnServer, Process, Program, is_soak};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

pub(crate) const INSTANCES: usize = 3;
const SITES: usize = 20;
/// Of each round; as much as takes a second.
const PAGES_PER_SITE: usize = 8;
const TOPIC: &str = "webpage_log";
const LIST: &str = "crawler_queue";
const DEAD: &str = "page_fetcher_dlq";
/// Longer than a server's restart and a lease together.
const DEADLINE: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(100);

/// Three instances, their servers, and what was pushed.
pub(crate) struct Fleet {
    pub(crate) origin: Origin,
    pub(crate) redis: OwnServer,
    pub(crate) kafka: OwnServer,
    program: Program,
    processes: Vec<Option<Process>>,
    pushed: Pushed,
}

/// What went in, by what is to become of it.
#[derive(Default)]
struct Pushed {
    pages: HashSet<String>,
    gone: HashSet<String>,
    disallowed: HashSet<String>,
}

impl Pushed {
    /// The URLs of a round, which are counted as pushed.
    fn add(&mut self, round: usize) -> Vec<String> {
        let mut urls = Vec::new();
        let mut add = |kind: &mut HashSet<String>, url: String| {
            kind.insert(url.clone());
            urls.push(url);
        };
        for site in (1..=SITES).map(site_name) {
            for page in 0..PAGES_PER_SITE {
                add(&mut self.pages, format!("http://{site}/{round}/{page}"));
            }
            add(&mut self.gone, format!("http://{site}/gone/{round}"));
            add(&mut self.disallowed, format!("http://{site}/private/{round}"));
        }
        urls
    }
}

impl Fleet {
    /// On servers of its own; `None`, said aloud, where tests are to run without servers. Each site thinks
    /// before it answers, so that at any moment some requests are under way.
    pub(crate) async fn start() -> Option<Fleet> {
        let (redis, kafka) = (OwnServer::start("redis").await?, OwnServer::start("kafka").await?);
        let site = |rank| {
            SiteScript::new(&site_name(rank))
                .robots("User-agent: *\nDisallow: /private")
                .status("/gone/*", 404)
                .slow(Duration::from_millis(100))
                .page_bytes(2_000)
        };
        let origin = Origin::start((1..=SITES).map(site));
        let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .on(&origin)
            .flags(["--rate", "10", "--max-in-flight", "32"])
            .variable("PAGE_FETCHER_REDIS_URL", redis.url())
            .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", kafka.url());
        // The long run has the leases that its users have.
        if !is_soak() {
            program = program
                .variable("FETCHWELL_LEASE__TTL", "4s")
                .variable("FETCHWELL_LEASE__HEARTBEAT", "500ms");
        }
        let processes = (0..INSTANCES).map(|_| None).collect();
        let mut fleet =
            Fleet { origin, redis, kafka, program, processes, pushed: Pushed::default() };
        for instance in 0..INSTANCES {
            fleet.launch(instance);
        }
        Some(fleet)
    }

    /// Starts an instance. One that finds a server away ends at once, and whoever runs it tries again.
    pub(crate) fn launch(&mut self, instance: usize) {
        self.processes[instance] = Some(self.program.start(&["pages", "--metrics-listen", ""]));
    }

    /// Starts again what ended by itself.
    pub(crate) fn look_after(&mut self) {
        for instance in 0..INSTANCES {
            let ended =
                self.processes[instance].as_mut().is_some_and(|process| !process.is_running());
            if ended {
                self.launch(instance);
            }
        }
    }

    /// SIGKILL.
    pub(crate) async fn kill(&mut self, instance: usize) {
        if let Some(process) = self.processes[instance].take() {
            process.kill().await;
        }
    }

    /// SIGTERM to all, and good ends.
    pub(crate) async fn stop(&mut self) {
        for process in self.processes.iter_mut().filter_map(Option::take) {
            process.terminate().await;
            process.wait(DEADLINE).await.expect_code(0);
        }
    }

    /// Pushes what nobody pushed before, and returns when Redis has it. What it may have got before an
    /// answer was lost is there twice.
    pub(crate) async fn push(&mut self, round: usize) {
        let urls = self.pushed.add(round);
        let began = Instant::now();
        loop {
            if let Ok(mut redis) = self.redis().await
                && redis.rpush::<_, _, ()>(LIST, &urls).await.is_ok()
            {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "Redis does not come back");
            sleep(POLL).await;
        }
    }

    /// Waits until nothing waits and nothing is under way. Returns how long that took.
    pub(crate) async fn come_to_rest(&mut self) -> Duration {
        let began = Instant::now();
        loop {
            let standing = self.standing().await;
            if matches!(standing, Ok((0, ledger)) if ledger.queued + ledger.delayed + ledger.in_flight == 0)
            {
                return began.elapsed();
            }
            assert!(began.elapsed() < DEADLINE, "it does not come to rest: {standing:?}");
            self.look_after();
            sleep(POLL).await;
        }
    }

    /// How many URLs are under way, as far as Redis can be asked.
    pub(crate) async fn in_flight(&self) -> i64 {
        self.standing().await.map_or(0, |(_, ledger)| ledger.in_flight)
    }

    /// Every URL ended in one way, and in the right one. Returns how many there were, and how many events.
    pub(crate) async fn balance(&self) -> (usize, usize) {
        let Pushed { pages, gone, disallowed } = &self.pushed;
        let queue = self.queue().await.unwrap();
        let ledger = queue.audit().await.unwrap().unwrap();
        let mut redis = self.redis().await.unwrap();
        let dead: Vec<String> = redis.lrange(DEAD, 0, -1).await.unwrap();
        let dead: HashSet<String> = dead.into_iter().collect();
        assert_eq!(&dead, gone, "dead letters");
        let events = read_topic(self.kafka.url(), TOPIC).await;
        let told: HashMap<String, String> = events.iter().map(|event| told(&event.value)).collect();
        let lost: Vec<&String> =
            pages.iter().filter(|url| !told.contains_key(*url)).take(5).collect();
        assert!(lost.is_empty(), "pushed, and no event: {lost:?}; {ledger:?}");
        assert_eq!(told.len(), pages.len(), "events of what nobody pushed");
        for (url, hash) in &told {
            let page: Vec<u8> =
                redis.get(format!("webpage:{}", hex(url.as_bytes()))).await.unwrap();
            assert_eq!(&hex(&page), hash, "the page of {url}");
        }
        let skipped = usize::try_from(ledger.skipped).unwrap();
        assert!(skipped >= disallowed.len(), "{ledger:?}");
        let asked = self.origin.hits().iter().any(|hit| hit.path.starts_with("/private"));
        assert!(!asked, "a page was asked for that robots.txt disallows");
        (pages.len() + gone.len() + disallowed.len(), events.len())
    }

    async fn standing(&self) -> Result<(u64, Ledger), String> {
        let mut redis = self.redis().await.map_err(|error| error.to_string())?;
        let listed = redis.llen(LIST).await.map_err(|error| error.to_string())?;
        let queue = self.queue().await.map_err(|fault| fault.to_string())?;
        Ok((listed, queue.ledger().await.map_err(|fault| fault.to_string())?))
    }

    async fn queue(&self) -> Result<RedisQueue, StoreFault> {
        let names = QueueNames { input: LIST.to_owned(), dead_letters: DEAD.to_owned() };
        let clock = StoreClock::Server(Clock::system());
        RedisQueue::open(self.redis.url(), &names, clock, DEADLINE, false, DEFAULT_POLL).await
    }

    async fn redis(&self) -> redis::RedisResult<MultiplexedConnection> {
        redis::Client::open(self.redis.url())?.get_multiplexed_async_connection().await
    }
}

/// The URL of an event, and the hash of its page.
fn told(event: &str) -> (String, String) {
    let event: Value = serde_json::from_str(event).unwrap();
    let text = |name: &str| event[name].as_str().unwrap().to_owned();
    (text("url"), text("content_hash"))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
