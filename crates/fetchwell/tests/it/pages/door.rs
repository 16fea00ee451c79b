//! A `fetchwell pages` at work on a simulated web, and what it leaves.

use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;

use fetchwell_engine::adapters::StoreClock;
use fetchwell_engine::adapters::redis::{DEFAULT_POLL, QueueNames, RedisQueue};
use fetchwell_engine::adapters::sqlite::{self, Durability, SqliteQueue};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::dead_letters::{DeadLetter, DeadLetters};
use fetchwell_engine::ports::Ledger;
use fetchwell_testkit::conformance::servers::{server_url, unused_redis_database};
use fetchwell_testkit::crash::{Origin, Program};
use fetchwell_testkit::plain_http::ask;
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Far longer than anything here takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);
/// Less than the grace: only a request that hangs may take that long.
const STOPS_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
const LEASE_TTL: Duration = Duration::from_secs(20);
const LOG: &str = "log.txt";

/// The door's program on a store.
pub(crate) struct Door {
    pub(crate) program: Program,
    pub(crate) store: Store,
}

/// Where the door's URLs are, as a test looks at it.
pub(crate) enum Store {
    Embedded,
    Redis { url: String, connection: MultiplexedConnection },
}

/// A process at work. Dropping it kills it.
pub(crate) struct Running<'a> {
    door: &'a Door,
    metrics: SocketAddr,
    child: Child,
}

impl Door {
    /// Without any server.
    pub(crate) fn embedded(origin: &Origin) -> Door {
        Door { program: program(origin), store: Store::Embedded }
    }

    /// On a database of its own; `None`, said aloud, where no server is named.
    pub(crate) async fn on_redis(origin: &Origin) -> Option<Door> {
        let url = unused_redis_database(server_url("FETCHWELL_TEST_REDIS_URL")?).await;
        let client = redis::Client::open(url.as_str()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        let program = program(origin).variable("PAGE_FETCHER_REDIS_URL", &url);
        Some(Door { program, store: Store::Redis { url, connection } })
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Door {
        self.program = self.program.variable(name, value);
        self
    }

    /// Puts URLs in as a user would.
    pub(crate) async fn add(&self, urls: &[&str]) {
        self.program.run(&[&["pages", "add"], urls].concat()).await.expect_code(0);
    }

    /// Starts it, and waits until it tells metrics.
    pub(crate) async fn start(&self) -> Running<'_> {
        let mut command = self.program.command(&["pages", "--metrics-listen", "127.0.0.1:0"]);
        let log = File::create(self.program.file(LOG)).unwrap();
        let mut child = command.stderr(log).spawn().unwrap();
        let began = Instant::now();
        loop {
            let log = self.log();
            let said =
                log.split_once("listening on http://").and_then(|(_, rest)| rest.split_once(';'));
            if let Some((address, _)) = said {
                return Running { door: self, metrics: address.parse().unwrap(), child };
            }
            let runs = matches!(child.try_wait(), Ok(None));
            assert!(runs && began.elapsed() < DEADLINE, "it does not come up:\n{log}");
            sleep(POLL).await;
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.program.file(LOG)).unwrap()
    }

    /// Whether its log tells that of a URL, with the reason.
    pub(crate) fn says(&self, what: &str, url: &str, reason: &str) -> bool {
        self.log().lines().any(|line| [what, url, reason].iter().all(|word| line.contains(*word)))
    }

    /// How many URLs stand where, counted and compared.
    pub(crate) async fn ledger(&self) -> Ledger {
        match &self.store {
            Store::Embedded => self.sqlite().await.audit().await.unwrap().unwrap(),
            Store::Redis { url, .. } => {
                let names = QueueNames {
                    input: "crawler_queue".to_owned(),
                    dead_letters: "page_fetcher_dlq".to_owned(),
                };
                let clock = StoreClock::Server(Clock::system());
                let queue =
                    RedisQueue::open(url, &names, clock, LEASE_TTL, false, DEFAULT_POLL).await;
                queue.unwrap().audit().await.unwrap().unwrap()
            }
        }
    }

    /// How many URLs wait when nobody is at work.
    pub(crate) async fn waiting(&self) -> u64 {
        let ledger = self.ledger().await;
        assert_eq!(ledger.in_flight, 0, "{ledger:?}");
        let on_the_list: u64 = match &self.store {
            Store::Embedded => 0,
            Store::Redis { connection, .. } => {
                connection.clone().llen("crawler_queue").await.unwrap()
            }
        };
        on_the_list + u64::try_from(ledger.queued + ledger.delayed).unwrap()
    }

    /// The dead letters with their reasons; their details must be there and fit.
    pub(crate) async fn dead_letters(&self) -> Vec<(String, String)> {
        let letters: Vec<(String, String)> = match &self.store {
            Store::Embedded => {
                let page = self.sqlite().await.dead_letters(None, 100).await.unwrap();
                let letter = |letter: DeadLetter| (letter.url, letter.details.unwrap());
                page.letters.into_iter().map(letter).collect()
            }
            Store::Redis { connection, .. } => letters_in(&mut connection.clone()).await,
        };
        let mut told = Vec::new();
        for (url, details) in letters {
            let details: Value = serde_json::from_str(&details).unwrap();
            assert_eq!(details["failure"], "url_specific", "{details}");
            assert!(details["attempts"].is_u64() && details["first_at"].is_string(), "{details}");
            told.push((url, details["reason"].as_str().unwrap().to_owned()));
        }
        told
    }

    /// The events that were kept without Kafka.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let said = self.program.run(&["pages", "events"]).await.expect_code(0).stdout;
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn sqlite(&self) -> SqliteQueue {
        let db = sqlite::open(&self.program.file("fetchwell.db"), Durability::Process).unwrap();
        let clock = sqlite::clock(&db).await.unwrap();
        SqliteQueue::open(db, "crawler_queue", clock, LEASE_TTL, false).await.unwrap()
    }
}

impl Running<'_> {
    /// The body at this path of its metrics' address.
    pub(crate) async fn ask(&self, path: &str) -> String {
        let answer = ask(self.metrics, "", &format!("GET {path}"), &[], "").await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
        String::from_utf8(answer.body).unwrap()
    }

    /// A metric's value; its name as in the design, without what all have in common.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.ask("/metrics").await;
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("page_fetcher_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    /// Waits until that holds of a metric.
    pub(crate) async fn until(&self, name: &str, holds: impl Fn(f64) -> bool) {
        let began = Instant::now();
        while !holds(self.metric(name).await) {
            assert!(began.elapsed() < DEADLINE, "{name} stays:\n{}", self.door.log());
            sleep(POLL).await;
        }
    }

    /// SIGTERM, and a good end.
    pub(crate) async fn stop(mut self) {
        let id = self.child.id().unwrap();
        let sent = Command::new("kill").args(["-s", "TERM", &id.to_string()]).status().await;
        assert!(sent.unwrap().success());
        let ended = timeout(STOPS_WITHIN, self.child.wait()).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("it does not stop:\n{}", self.door.log())).unwrap();
        assert!(ended.success(), "it ended badly:\n{}", self.door.log());
    }
}

/// Waits until that holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < DEADLINE, "{what} does not come");
        sleep(POLL).await;
    }
}

fn program(origin: &Origin) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(origin)
        .variable("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "50")
        .variable("FETCHWELL_BREAKER__JITTER", "0")
}

/// What stands on the list, each with what the hash says of it.
async fn letters_in(connection: &mut MultiplexedConnection) -> Vec<(String, String)> {
    let urls: Vec<String> = connection.lrange("page_fetcher_dlq", 0, -1).await.unwrap();
    let mut letters = Vec::new();
    for url in urls {
        let details = connection.hget("page_fetcher_dlq:details", &url).await.unwrap();
        letters.push((url, details));
    }
    letters
}
