//! What a test stands on: the program, its `cluster.idx`, and a look at what it published.

use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{Process, ProcessEnd, Program};
use fetchwell_testkit::scene::sqlite_queue;
use serde_json::Value;

use super::archive::{CRAWL, TestArchive};

/// A batcher and where it works.
pub(crate) struct Rig {
    pub(crate) program: Program,
}

/// A batch that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) id: String,
    pub(crate) body: String,
}

impl Published {
    pub(crate) fn pages(&self) -> Vec<Value> {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Rig {
    /// An archive in a folder.
    pub(crate) fn in_folder(archive: &TestArchive) -> Rig {
        let rig = Rig::at("archive", archive);
        archive.write(&rig.program.file("archive"));
        rig
    }

    /// An archive at this base.
    pub(crate) fn at(base: &str, archive: &TestArchive) -> Rig {
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .variable("FETCHWELL_COMMONCRAWL__BASE", base)
            .variable("FETCHWELL_COMMONCRAWL__CRAWL", CRAWL)
            .variable("FETCHWELL_ALLOW_PRIVATE", "127.0.0.0/8")
            .variable("FETCHWELL_BREAKER__INITIAL_BACKOFF", "1s");
        std::fs::write(program.file("cluster.idx"), &archive.index).unwrap();
        Rig { program }
    }

    /// The same with another setting.
    pub(crate) fn with(self, variable: &str, value: &str) -> Rig {
        Rig { program: self.program.variable(variable, value) }
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        let batch =
            ["commoncrawl", "batch", "--cluster-idx", "cluster.idx", "--metrics-listen", ""];
        self.program.start(&[&batch[..], &["--json"], arguments].concat())
    }

    pub(crate) async fn batch(&self, arguments: &[&str]) -> ProcessEnd {
        self.start(arguments).wait(DEADLINE).await
    }

    /// What the batcher said at its end.
    pub(crate) async fn told(&self, arguments: &[&str]) -> Value {
        let ended = self.batch(arguments).await.expect_code(0);
        serde_json::from_str(&ended.stdout).unwrap()
    }

    /// The checkpoint.
    pub(crate) fn checkpoint(&self) -> Value {
        let text = std::fs::read_to_string(self.program.file("cluster.idx.checkpoint"));
        text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    }

    /// All that waits on the embedded queue, in the order in which it came. A batch stands there once,
    /// however often it was published.
    pub(crate) async fn published(&self) -> Vec<Published> {
        let instance = sqlite_queue(&self.program, "batches").await.instance();
        instance.renew().await.unwrap();
        let demand = Demand { most: 100_000, most_per_site: 100_000, ..Demand::default() };
        let mut leases = Vec::new();
        while let Taken::Jobs(more) = instance.take(&demand).await.unwrap() {
            leases.extend(more);
        }
        instance.leave().await.unwrap();
        leases.sort_by_key(|lease| lease.id);
        let batch = |lease: fetchwell_engine::ports::job::Lease| Published {
            id: lease.job.url,
            body: String::from_utf8(lease.job.payload).unwrap(),
        };
        leases.into_iter().map(batch).collect()
    }
}

/// The URLs of all pages, in order.
pub(crate) fn urls(batches: &[Published]) -> Vec<String> {
    let url = |page: &Value| page["metadata"]["url"].as_str().unwrap().to_owned();
    batches.iter().flat_map(|batch| batch.pages().iter().map(url).collect::<Vec<_>>()).collect()
}
