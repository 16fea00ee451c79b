//! Instances of one service, some of which may be dead at any moment, and a caller that uses them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Process, ProcessEnd, Program, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::{PlainResponse, ask};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

pub(crate) const MAX_IN_FLIGHT: usize = 32;
const SITES: usize = 40;
const RATE: &str = "5";

/// A service on one store.
pub(crate) struct Fleet {
    pub(crate) origin: TestWeb,
    program: Program,
    token: String,
    addresses: Vec<SocketAddr>,
    processes: Vec<Option<Process>>,
}

/// What a caller can reach of a fleet, whatever happens to it.
#[derive(Clone)]
pub(crate) struct Line {
    addresses: Vec<SocketAddr>,
    token: String,
}

impl Fleet {
    /// So many instances on a store, none of them running. Each site thinks before it answers, so that at
    /// any moment some requests are under way.
    pub(crate) async fn on(store: &str, instances: usize) -> Fleet {
        let site = |rank| {
            SiteScript::new(&site_name(rank)).slow(Duration::from_millis(100)).page_bytes(1_000)
        };
        Fleet::of(TestWeb::start((1..=SITES).map(site)), store, instances, RATE).await
    }

    /// The same for the sites of this web.
    pub(crate) async fn of(origin: TestWeb, store: &str, instances: usize, rate: &str) -> Fleet {
        let in_flight = MAX_IN_FLIGHT.to_string();
        let flags = ["--store", store, "--rate", rate, "--max-in-flight", &in_flight];
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .on(&origin)
            .flags(flags)
            // A stop that waits out the grace exceeds `DEADLINE`.
            .variable("FETCHWELL_SHUTDOWN_GRACE", "1h")
            .variable("FETCHWELL_LEASE__TTL", "4s")
            .variable("FETCHWELL_LEASE__HEARTBEAT", "500ms")
            .variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000")
            .variable("FETCHWELL_RETRIEVER__DEFAULT_BURST_SIZE", "1000");
        let added = program.run(&["--json", "callers", "add", "tester"]).await.expect_code(0);
        let added: Value = serde_json::from_str(&added.stdout).unwrap();
        let token = added["token"].as_str().unwrap().to_owned();
        let addresses = (0..instances).map(|_| free_address()).collect();
        let processes = (0..instances).map(|_| None).collect();
        Fleet { origin, program, token, addresses, processes }
    }

    /// Overrides the lease TTL.
    pub(crate) fn lease_ttl(mut self, ttl: &str) -> Fleet {
        self.program = self.program.variable("FETCHWELL_LEASE__TTL", ttl);
        self
    }

    /// How long crawls wait for a site that is down.
    pub(crate) fn give_up_after(mut self, after: &str) -> Fleet {
        self.program = self.program.variable("FETCHWELL_FETCH__GIVE_UP_AFTER", after);
        self
    }

    pub(crate) fn line(&self) -> Line {
        Line { addresses: self.addresses.clone(), token: self.token.clone() }
    }

    /// Starts an instance, and waits until it serves.
    pub(crate) async fn start(&mut self, instance: usize) {
        let address = self.addresses[instance];
        let listen = address.to_string();
        self.processes[instance] = Some(self.program.start(&["serve", "--listen", &listen]));
        let live = async || ask(address, &self.token, "GET /livez", &[], "").await;
        eventually_ok(&format!("{address} to come up"), live).await;
    }

    pub(crate) async fn start_all(&mut self) {
        for instance in 0..self.addresses.len() {
            self.start(instance).await;
        }
    }

    /// SIGKILL.
    pub(crate) async fn kill(&mut self, instance: usize) {
        self.process(instance).kill().await;
    }

    /// SIGTERM, and the end.
    pub(crate) async fn stop(&mut self, instance: usize) -> ProcessEnd {
        let process = self.process(instance);
        let began = Instant::now();
        process.terminate().await;
        let ended = process.wait(DEADLINE).await;
        ProcessEnd { took: began.elapsed(), ..ended }
    }

    fn process(&mut self, instance: usize) -> Process {
        self.processes[instance].take().unwrap_or_else(|| panic!("{instance} does not run"))
    }
}

/// Below the range of ports that outgoing connections get, so that nobody takes it while it is free.
fn free_address() -> SocketAddr {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Tests that start together have consecutive process ids, so each gets its own block of eight ports.
    let from = 15_000 + usize::try_from(std::process::id()).unwrap_or(0) % 2_000 * 8;
    loop {
        let port = from + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// How the service answered what it could not do: how often each status came, and each fault.
#[derive(Debug, Default)]
pub(crate) struct Troubles(pub(crate) HashMap<String, usize>);

impl Line {
    pub(crate) fn instances(&self) -> usize {
        self.addresses.len()
    }

    /// Asks one instance after the other until one does what it is asked.
    pub(crate) async fn ask(
        &self,
        request_line: &str,
        headers: &[(&str, &str)],
        body: &str,
        troubles: &mut Troubles,
    ) -> Value {
        let began = Instant::now();
        for attempt in 0.. {
            let to = self.addresses[attempt % self.addresses.len()];
            match ask(to, &self.token, request_line, headers, body).await {
                Ok(answer) if answer.status == 200 => return answer.json(),
                other => *troubles.0.entry(name_of(other)).or_default() += 1,
            }
            assert!(began.elapsed() < DEADLINE, "{request_line}: {troubles:?}");
            sleep(Duration::from_millis(50)).await;
        }
        unreachable!("the loop above ends by returning")
    }

    /// Sends messages for pages that nobody asked for before, and returns their ids.
    pub(crate) async fn send(
        &self,
        round: usize,
        many: usize,
        troubles: &mut Troubles,
    ) -> Vec<String> {
        let message = |number: usize| {
            let site = site_name(1 + (round * 7 + number) % SITES);
            json!({"url": format!("http://{site}/{round}/{number}"), "retailer": "r",
                   "correlation_id": format!("{round}-{number}")})
        };
        // Half of them come one by one.
        if many == 1 {
            let key = format!("single-{round}");
            let body = message(0).to_string();
            let answer =
                self.ask("POST /fetch", &[("idempotency-key", &key)], &body, troubles).await;
            return vec![answer["message_id"].as_str().unwrap().to_owned()];
        }
        let key = format!("batch-{round}");
        let body = json!({"messages": (0..many).map(message).collect::<Vec<_>>()}).to_string();
        let answer =
            self.ask("POST /fetch/batch", &[("idempotency-key", &key)], &body, troubles).await;
        let receipts = answer["messages"].as_array().unwrap();
        receipts.iter().map(|one| one["message_id"].as_str().unwrap().to_owned()).collect()
    }
}

impl Line {
    /// Sends a batch over all sites, and returns its id and those of its messages.
    pub(crate) async fn send_batch(
        &self,
        many: usize,
        troubles: &mut Troubles,
    ) -> (String, HashSet<String>) {
        let message = |number: usize| {
            let site = site_name(1 + number % SITES);
            json!({"url": format!("http://{site}/batch/{number}"), "retailer": "r",
                   "correlation_id": number.to_string()})
        };
        let body = json!({"messages": (0..many).map(message).collect::<Vec<_>>()}).to_string();
        let key = [("idempotency-key", "the-batch")];
        let answer = self.ask("POST /fetch/batch", &key, &body, troubles).await;
        let messages = answer["messages"].as_array().unwrap().iter();
        let ids = messages.map(|one| one["message_id"].as_str().unwrap().to_owned()).collect();
        (answer["batch_id"].as_str().unwrap().to_owned(), ids)
    }

    /// The batches or crawls (by the name of their event) that the event stream names, read from its beginning until some
    /// time after this result.
    #[expect(clippy::disallowed_methods, reason = "a test's own client to its own listener")]
    pub(crate) async fn ended(&self, event: &str, last: i64) -> Vec<String> {
        let mut stream = TcpStream::connect(self.addresses[0]).await.unwrap();
        let request = format!(
            "GET /outbox?limit=1000 HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\
             authorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = Vec::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            let has_last = String::from_utf8_lossy(&text).contains(&format!("id: {last}\n"));
            let patience = if has_last { Duration::from_secs(3) } else { DEADLINE };
            match timeout(patience, stream.read(&mut piece)).await {
                Ok(read) => match read.unwrap() {
                    0 => break,
                    bytes => text.extend_from_slice(&piece[..bytes]),
                },
                Err(_) => break,
            }
        }
        let text = String::from_utf8_lossy(&text);
        let event = format!("event: {event}\ndata: ");
        let ended = text.split(&event).skip(1);
        let id = |data: &str| {
            let data = data.lines().next().unwrap();
            serde_json::from_str::<Value>(data).unwrap()["id"].as_str().unwrap().to_owned()
        };
        ended.map(id).collect()
    }
}

fn name_of(trouble: io::Result<PlainResponse>) -> String {
    match trouble {
        Ok(answer) => answer.status.to_string(),
        Err(error) => format!("{:?}", error.kind()),
    }
}
