//! What a test stands on: a queue, a worker's program, and a look at what it wrote.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_stores::rabbitmq::RabbitQueue;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::crash::{Process, Program};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http;
use fetchwell_testkit::scene::sqlite_queue;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A queue, and a program that works on it.
pub(crate) struct Ground {
    pub(crate) program: Program,
    pub(crate) queue: Arc<dyn BatchQueue>,
}

impl Ground {
    /// Batches in the program's own store.
    pub(crate) async fn embedded(base: &str) -> Ground {
        let program = program(base);
        let queue = sqlite_queue(&program, "batches").await;
        Ground { program, queue: Arc::new(queue) }
    }

    /// Batches on a queue of RabbitMQ.
    pub(crate) async fn on(store: &RabbitStore, base: &str) -> Ground {
        let queue = store.open(Clock::system()).await;
        Ground { program: on_broker(program(base), store), queue: Arc::new(queue) }
    }

    /// All grounds that there are servers for.
    pub(crate) async fn all(base: &str) -> Vec<Ground> {
        let mut grounds = vec![Ground::embedded(base).await];
        if let Some(store) = RabbitStore::if_there() {
            grounds.push(Ground::on(&store, base).await);
        }
        grounds
    }

    pub(crate) async fn publish(&self, batches: &[Batch]) {
        self.queue.publish(batches).await.unwrap();
    }

    /// Starts a worker.
    pub(crate) fn work(&self, arguments: &[&str]) -> Worker {
        let listens = free_address();
        let told_at = listens.to_string();
        let work = [&["commoncrawl", "work", "--metrics-listen", &told_at], arguments].concat();
        Worker { process: self.program.start(&work), listens }
    }

    /// Works until so many pages are in the folder, then stops the worker gently.
    pub(crate) async fn work_until(&self, arguments: &[&str], pages: usize) -> String {
        let worker = self.work(arguments);
        self.wait_for(pages).await;
        worker.stop().await
    }

    /// Waits until the manifest knows so many pages, good or broken.
    pub(crate) async fn wait_for(&self, pages: usize) {
        eventually_ok("pages in the folder", async || {
            let known = self.known_pages();
            if known >= pages { Ok(()) } else { Err(format!("{known} of {pages} are written")) }
        })
        .await;
    }

    pub(crate) fn known_pages(&self) -> usize {
        self.counted("manifest.db", "SELECT count(*) FROM page")
    }

    /// Workers that began a batch and did not end it.
    pub(crate) fn marks(&self) -> usize {
        self.counted("begun.db", "SELECT count(*) FROM begun")
    }

    /// Workers that began this batch and did not end it.
    pub(crate) fn marks_of(&self, batch: &Batch) -> usize {
        let digest = Sha256::digest(&batch.body);
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.counted("begun.db", &format!("SELECT count(*) FROM begun WHERE batch = '{name}'"))
    }

    fn counted(&self, file: &str, count: &str) -> usize {
        let counted = |connection: rusqlite::Connection| {
            connection.query_row(count, [], |row| row.get::<_, usize>(0))
        };
        let file = self.output().join(file);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        rusqlite::Connection::open_with_flags(file, flags).and_then(counted).unwrap_or(0)
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.program.file("documents")
    }

    pub(crate) fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.output()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
        files.sort();
        files
    }

    /// All documents in sealed files, and no two of one page.
    pub(crate) fn documents(&self) -> BTreeMap<(String, u64), Value> {
        let mut documents = BTreeMap::new();
        for path in self.files(".jsonl.zst") {
            let text = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
            for line in String::from_utf8(text).unwrap().lines() {
                let document: Value = serde_json::from_str(line).unwrap();
                let warc = &document["warc"];
                let place = (
                    warc["filename"].as_str().unwrap().to_owned(),
                    warc["offset"].as_u64().unwrap(),
                );
                let before = documents.insert(place, document);
                assert!(before.is_none(), "twice: {before:?}");
            }
        }
        assert!(self.files(".part").is_empty(), "a worker that stopped gently left something");
        documents
    }

    /// The lines of the file of what can't be read.
    pub(crate) fn errors(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.output().join("errors.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A worker at work. Dropping it kills it.
pub(crate) struct Worker {
    pub(crate) process: Process,
    listens: SocketAddr,
}

impl Worker {
    /// Waits until that holds of its metrics, and returns them.
    pub(crate) async fn until_told(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        eventually_ok(what, async || {
            let asked = plain_http::ask(self.listens, "", "GET /metrics", &[], "").await;
            let told = String::from_utf8(asked.map_err(|error| error.to_string())?.body).unwrap();
            if holds(&told) { Ok(told) } else { Err(told) }
        })
        .await
    }

    /// Waits until it is up.
    pub(crate) async fn until_up(&self) {
        self.until_told("the worker's metrics", |_| true).await;
    }

    /// SIGTERM once it is up, and a good end. Returns what it said.
    pub(crate) async fn stop(self) -> String {
        self.until_up().await;
        self.process.terminate().await;
        self.process.wait(DEADLINE).await.expect_code(0).stderr
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A worker's program, before it has a broker.
pub(crate) fn program(base: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .flags(["--allow-private", "127.0.0.0/8"])
        .variable("FETCHWELL_COMMONCRAWL__BASE", base)
}

pub(crate) fn on_broker(program: Program, store: &RabbitStore) -> Program {
    program
        .variable("RABBITMQ_CONNECTION_STRING", &store.url)
        .variable("FETCHWELL_COMMONCRAWL__QUEUE", &store.queue)
}

/// The queue as another process sees it.
pub(crate) async fn reopened(store: &RabbitStore) -> Option<RabbitQueue> {
    RabbitQueue::open(&store.url, &store.queue, false, Clock::system()).await.ok()
}
