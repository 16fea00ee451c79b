//! A `fetchwell pages` at work on a simulated web, and what it leaves.

use std::fs::File;
use std::net::SocketAddr;

use fetchwell_engine::ports::dead_letters::DeadLetter;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::queue::audited;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::scene::{Scene, StoreKind};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

const LOG: &str = "log.txt";
const QUEUE: &str = "crawler_queue";

/// The door's program on a store, and the web that it is let loose on.
pub(crate) struct Door {
    pub(crate) scene: Scene,
}

/// A process at work. Dropping it kills it.
pub(crate) struct Running<'a> {
    door: &'a Door,
    pub(crate) metrics: SocketAddr,
    child: Child,
}

impl Door {
    /// Without any server.
    pub(crate) fn embedded(sites: impl IntoIterator<Item = SiteScript>) -> Door {
        Door { scene: Scene::embedded(program(), sites) }
    }

    /// On a store of this kind. `None` if no server is named; the skip is reported.
    pub(crate) async fn on(
        store: StoreKind,
        sites: impl IntoIterator<Item = SiteScript>,
    ) -> Option<Door> {
        Some(Door { scene: Scene::on(store, program(), sites).await? })
    }

    pub(crate) fn variable(self, name: &str, value: &str) -> Door {
        Door { scene: self.scene.variable(name, value) }
    }

    /// Puts URLs in as a user would.
    pub(crate) async fn add(&self, urls: &[&str]) {
        self.scene.program.run(&[&["pages", "add"], urls].concat()).await.expect_code(0);
    }

    /// Puts something in as other programs may, which check nothing.
    pub(crate) async fn add_unchecked(&self, url: &str) {
        if self.scene.redis_url().is_some() {
            let _: () = self.scene.redis().await.rpush(QUEUE, url).await.unwrap();
            return;
        }
        let site = None;
        let lane = Lane::default();
        let payload = Vec::new();
        let job = Job { url: url.to_owned(), site, lane, payload, deadline: None };
        self.queue().await.enqueue(vec![NewJob::now(job)]).await.unwrap();
    }

    /// Starts it, and waits until it tells metrics.
    pub(crate) async fn start(&self) -> Running<'_> {
        let mut command = self.scene.program.command(&["pages", "--metrics-listen", "127.0.0.1:0"]);
        let log = File::create(self.scene.program.file(LOG)).unwrap();
        let mut child = command.stderr(log).spawn().unwrap();
        let metrics = eventually_ok("its metrics", async || {
            let runs = matches!(child.try_wait(), Ok(None));
            let log = self.log();
            let said =
                log.split_once("listening on http://").and_then(|(_, rest)| rest.split_once(';'));
            assert!(runs || said.is_some(), "it does not come up:\n{log}");
            said.map(|(address, _)| address.parse().unwrap()).ok_or(log)
        })
        .await;
        Running { door: self, metrics, child }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.scene.program.file(LOG)).unwrap()
    }

    /// Whether its log tells that of a URL, with the reason.
    pub(crate) fn says(&self, what: &str, url: &str, reason: &str) -> bool {
        self.log().lines().any(|line| [what, url, reason].iter().all(|word| line.contains(*word)))
    }

    /// How many URLs stand where, counted and compared.
    pub(crate) async fn ledger(&self) -> Ledger {
        audited(&*self.queue().await).await
    }

    /// How many URLs wait when nobody is at work.
    pub(crate) async fn waiting(&self) -> u64 {
        let ledger = self.ledger().await;
        assert_eq!(ledger.in_flight, 0, "{ledger:?}");
        let on_the_list: u64 = match self.scene.redis_url() {
            None => 0,
            Some(_) => self.scene.redis().await.llen(QUEUE).await.unwrap(),
        };
        on_the_list + u64::try_from(ledger.waiting()).unwrap()
    }

    /// The dead letters with their reasons; their details must be there and fit.
    pub(crate) async fn dead_letters(&self) -> Vec<(String, String)> {
        let letters: Vec<(String, String)> = match self.scene.redis_url() {
            None => {
                let page = self.queue().await.dead_letters(None, 100).await.unwrap();
                let letter = |letter: DeadLetter| (letter.url, letter.details.unwrap());
                page.letters.into_iter().map(letter).collect()
            }
            Some(_) => letters_in(&mut self.scene.redis().await).await,
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
        let said = self.scene.program.run(&["pages", "events"]).await.expect_code(0).stdout;
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn queue(&self) -> Box<dyn UrlQueue> {
        self.scene.queue(QUEUE).await
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
        eventually_ok(name, async || {
            let value = self.metric(name).await;
            holds(value).then_some(()).ok_or_else(|| format!("it is {value}\n{}", self.door.log()))
        })
        .await;
    }

    /// SIGKILL: what it holds is in nobody's hands, and nobody knows yet.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGTERM, and a good end.
    pub(crate) async fn stop(mut self) {
        let id = self.child.id().unwrap();
        let sent = Command::new("kill").args(["-s", "TERM", &id.to_string()]).status().await;
        assert!(sent.unwrap().success());
        let ended = timeout(DEADLINE, self.child.wait()).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("it does not stop:\n{}", self.door.log())).unwrap();
        assert!(ended.success(), "it ended badly:\n{}", self.door.log());
    }
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .store_variable("PAGE_FETCHER_REDIS_URL")
        .variable("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "50")
        .variable("FETCHWELL_BREAKER__JITTER", "0")
        // A stop that waits out the grace exceeds `DEADLINE`.
        .variable("FETCHWELL_SHUTDOWN_GRACE", "1h")
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
