//! Instances of `pages` on servers that may crash, and a ledger outside them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::kafka::read_topic;
use fetchwell_testkit::conformance::servers::try_redis_connection;
use fetchwell_testkit::crash::{DispatchLog, OwnServer, Process, Program, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::scene::redis_queue;
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

pub(crate) const INSTANCES: usize = 3;
const TOPIC: &str = "webpage_log";
const LIST: &str = "crawler_queue";
const DEAD: &str = "page_fetcher_dlq";
const POLL: Duration = Duration::from_millis(100);

/// What the instances are to do, and how.
pub(crate) struct Load {
    pub(crate) sites: usize,
    /// Of each round.
    pub(crate) pages_per_site: usize,
    /// Requests a second and site.
    pub(crate) rate: &'static str,
    pub(crate) max_in_flight: &'static str,
    /// Every site thinks as long before it answers, so that at any moment some requests are under way.
    pub(crate) thinking: Duration,
    /// How long an instance's lease lasts, and how often it is renewed; `None`: as users have it.
    pub(crate) lease: Option<(&'static str, &'static str)>,
}

/// Three instances, their servers, and what was pushed.
pub(crate) struct Fleet {
    pub(crate) origin: TestWeb,
    pub(crate) redis: OwnServer,
    pub(crate) kafka: OwnServer,
    /// When those wrote their requests that have ended.
    pub(crate) log: DispatchLog,
    load: Load,
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
    fn add(&mut self, load: &Load, round: usize) -> Vec<String> {
        let mut urls = Vec::new();
        let mut add = |kind: &mut HashSet<String>, url: String| {
            kind.insert(url.clone());
            urls.push(url);
        };
        for site in (1..=load.sites).map(site_name) {
            for page in 0..load.pages_per_site {
                add(&mut self.pages, format!("http://{site}/{round}/{page}"));
            }
            add(&mut self.gone, format!("http://{site}/gone/{round}"));
            add(&mut self.disallowed, format!("http://{site}/private/{round}"));
        }
        urls
    }
}

impl Fleet {
    /// On servers of its own; `None`, said aloud, where tests are to run without servers.
    pub(crate) async fn start(load: Load) -> Option<Fleet> {
        let redis = OwnServer::start("redis").await?;
        let kafka = OwnServer::start("kafka").await?;
        let site = |rank| {
            SiteScript::new(&site_name(rank))
                .robots("User-agent: *\nDisallow: /private")
                .status("/gone/*", 404)
                .slow(load.thinking)
                .page_bytes(2_000)
        };
        let origin = TestWeb::start((1..=load.sites).map(site));
        let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .on(&origin)
            .flags(["-v", "--rate", load.rate, "--max-in-flight", load.max_in_flight])
            .variable("FETCHWELL_LOG__FORMAT", "json")
            .variable("PAGE_FETCHER_REDIS_URL", redis.url())
            .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", kafka.url());
        if let Some((ttl, heartbeat)) = load.lease {
            program = program
                .variable("FETCHWELL_LEASE__TTL", ttl)
                .variable("FETCHWELL_LEASE__HEARTBEAT", heartbeat);
        }
        let processes = (0..INSTANCES).map(|_| None).collect();
        let log = DispatchLog::default();
        let pushed = Pushed::default();
        let mut fleet = Fleet { origin, redis, kafka, log, load, program, processes, pushed };
        for instance in 0..INSTANCES {
            fleet.launch(instance).await;
        }
        Some(fleet)
    }

    /// Starts an instance. One that finds a server away ends at once, and whoever runs it tries again.
    pub(crate) async fn launch(&mut self, instance: usize) {
        self.kill(instance).await;
        self.processes[instance] = Some(self.program.start(&["pages", "--metrics-listen", ""]));
    }

    /// Starts again what ended by itself.
    pub(crate) async fn look_after(&mut self) {
        for instance in 0..INSTANCES {
            let ended =
                self.processes[instance].as_mut().is_some_and(|process| !process.is_running());
            if ended {
                self.launch(instance).await;
            }
        }
    }

    /// SIGKILL, unless it has ended by itself.
    pub(crate) async fn kill(&mut self, instance: usize) {
        let Some(mut process) = self.processes[instance].take() else { return };
        let ended =
            if process.is_running() { process.kill().await } else { process.wait(DEADLINE).await };
        self.log.read(&ended.stderr);
    }

    /// SIGSTOP, and SIGCONT after a while.
    pub(crate) async fn put_to_sleep(&mut self, instance: usize, length: Duration) {
        self.look_after().await;
        let Some(process) = &self.processes[instance] else { return };
        process.stop().await;
        sleep(length).await;
        process.go_on().await;
    }

    /// SIGTERM to all, and good ends.
    pub(crate) async fn stop(&mut self) {
        for process in self.processes.iter_mut().filter_map(Option::take) {
            process.terminate().await;
            let ended = process.wait(DEADLINE).await.expect_code(0);
            self.log.read(&ended.stderr);
        }
    }

    /// Pushes what nobody pushed before, and returns when Redis has it. What it may have got before an
    /// answer was lost is there twice.
    pub(crate) async fn push(&mut self, round: usize) {
        let urls = self.pushed.add(&self.load, round);
        eventually_ok("Redis to come back", async || {
            let mut redis = self.redis().await?;
            redis.rpush::<_, _, ()>(LIST, &urls).await
        })
        .await;
    }

    /// Waits until nothing waits and nothing is under way. Returns how long that took.
    pub(crate) async fn come_to_rest(&mut self) -> Duration {
        let began = Instant::now();
        loop {
            let standing = self.standing().await;
            if matches!(standing, Ok((0, ledger)) if ledger.unfinished() == 0) {
                return began.elapsed();
            }
            assert!(began.elapsed() < DEADLINE, "it does not come to rest: {standing:?}");
            self.look_after().await;
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
        // A busy machine may keep a connection waiting for longer than a client does.
        let ledger = eventually_ok("the ledger", async || {
            redis_queue(self.redis.url(), LIST).await?.audit().await
        })
        .await
        .unwrap();
        let mut redis = eventually_ok("Redis", async || self.redis().await).await;
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
        let queue = redis_queue(self.redis.url(), LIST).await.map_err(|fault| fault.to_string())?;
        Ok((listed, queue.ledger().await.map_err(|fault| fault.to_string())?))
    }

    async fn redis(&self) -> redis::RedisResult<MultiplexedConnection> {
        try_redis_connection(self.redis.url()).await
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
