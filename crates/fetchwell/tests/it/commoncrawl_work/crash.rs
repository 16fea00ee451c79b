//! Workers that are killed and a broker that crashes, under load: every selected page stands once in the
//! folder.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_policy::chance::Chance;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::range_server::RangeServer;
use fetchwell_testkit::replay::{count_or, seed};
use tokio::time::{Instant, sleep};

use super::archive::TestArchive;
use super::ground::{Ground, Worker, on_broker, program, reopened};

const WORKERS: usize = 2;
/// Of each round, in batches of ten.
const FILES_PER_ROUND: usize = 4;
const PAGES_PER_FILE: usize = 40;

/// Segments that are small, so that many are sealed; batches that are redelivered, so that many repeat.
const WORK: &[&str] = &["--prefetch", "8"];
const SMALL_SEGMENTS: (&str, &str) = ("FETCHWELL_COMMONCRAWL__SEGMENT_SIZE", "4KiB");

/// Each page's place, by the one who made the archive: the ledger outside.
fn places(archive: &TestArchive) -> BTreeSet<(String, u64)> {
    let place = |page: &serde_json::Value| {
        let text = |name: &str| page["metadata"][name].as_str().unwrap().to_owned();
        (text("filename"), text("offset").parse().unwrap())
    };
    archive.pages.iter().map(place).collect()
}

fn below(chance: &mut Chance, end: u64) -> u64 {
    chance.next_u64() % end
}

struct Fleet {
    ground: Ground,
    workers: Vec<Option<Worker>>,
}

impl Fleet {
    fn start(ground: Ground) -> Fleet {
        let mut fleet = Fleet { ground, workers: (0..WORKERS).map(|_| None).collect() };
        fleet.look_after();
        fleet
    }

    /// Starts what is not there. One that finds the broker away ends at once, and is started again.
    fn look_after(&mut self) {
        for worker in &mut self.workers {
            if !worker.as_mut().is_some_and(|worker| worker.process.is_running()) {
                *worker = Some(self.ground.work(WORK));
            }
        }
    }

    async fn kill(&mut self, worker: usize) {
        if let Some(worker) = self.workers[worker].take() {
            worker.process.kill().await;
        }
    }

    /// What the workers said last, for whoever wonders why they do nothing.
    async fn last_words(&mut self) -> String {
        let mut words = String::new();
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            let said = worker.process.kill().await.stderr;
            let lines: Vec<&str> = said.lines().rev().take(40).collect();
            words.extend(lines.iter().rev().map(|line| format!("{line}\n")));
            words.push_str("---\n");
        }
        words
    }

    /// Waits until all pages are there, and stops gently.
    async fn finish(mut self, archive: &TestArchive) {
        let began = Instant::now();
        while self.ground.known_pages() < archive.pages.len() {
            if began.elapsed() > DEADLINE {
                let known = self.ground.known_pages();
                panic!("{known} of {} pages\n{}", archive.pages.len(), self.last_words().await);
            }
            self.look_after();
            sleep(Duration::from_millis(100)).await;
        }
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            worker.stop().await;
        }
        // A worker that was killed last left its segment to whoever comes next.
        self.ground.work_until(WORK, archive.pages.len()).await;
        let written: BTreeSet<_> = self.ground.documents().into_keys().collect();
        let expected = places(archive);
        let lost: Vec<_> = expected.difference(&written).take(5).collect();
        assert!(lost.is_empty(), "{} lost, such as {lost:?}", expected.len() - written.len());
        assert_eq!(written.len(), expected.len(), "documents of pages that nobody asked for");
        assert!(self.ground.errors().is_empty(), "{:?}", self.ground.errors());
    }
}

/// A part of the archive a round: its batches.
fn round_of(
    archive: &TestArchive,
    round: usize,
    rounds: usize,
) -> Vec<fetchwell_engine::ports::batches::Batch> {
    let batches = archive.batches(10);
    let share = batches.len().div_ceil(rounds);
    batches.into_iter().skip(round * share).take(share).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_at_any_instant_write_every_page_once() {
    let kills: u64 = count_or("FETCHWELL_TEST_WORKER_KILLS", 2);
    let mut chance = Chance::seeded(seed());
    let rounds = usize::try_from(kills).unwrap() + 1;
    let archive = TestArchive::of(FILES_PER_ROUND * rounds, PAGES_PER_FILE);
    let server = RangeServer::sound(archive.files.clone()).await;
    for mut ground in Ground::all(&server.base()).await {
        ground.program = ground.program.variable(SMALL_SEGMENTS.0, SMALL_SEGMENTS.1);
        let mut fleet = Fleet::start(ground);
        for round in 0..rounds {
            fleet.ground.publish(&round_of(&archive, round, rounds)).await;
            sleep(Duration::from_millis(100 + below(&mut chance, 900))).await;
            if round > 0 {
                fleet.kill(usize::try_from(below(&mut chance, WORKERS as u64)).unwrap()).await;
            }
            fleet.look_after();
        }
        fleet.finish(&archive).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_crashes_loses_no_page_and_doubles_none() {
    let crashes: u64 = count_or("FETCHWELL_TEST_RABBITMQ_RESTARTS", 1);
    let Some(broker) = OwnServer::start("rabbitmq").await else { return };
    let mut chance = Chance::seeded(seed());
    let rounds = usize::try_from(crashes).unwrap() + 1;
    let archive = TestArchive::of(FILES_PER_ROUND * rounds, PAGES_PER_FILE);
    let server = RangeServer::sound(archive.files.clone()).await;
    let store = RabbitStore::on(broker.url().to_owned());
    let program =
        on_broker(program(&server.base()), &store).variable(SMALL_SEGMENTS.0, SMALL_SEGMENTS.1);
    let queue: Arc<dyn BatchQueue> = Arc::new(reopened(&store).await.unwrap());
    let mut fleet = Fleet::start(Ground { program, queue });
    for round in 0..rounds {
        let batches = round_of(&archive, round, rounds);
        // What it had before an answer was lost is there twice, under the same ids.
        eventually_ok("the broker", async || fleet.ground.queue.publish(&batches).await).await;
        sleep(Duration::from_millis(below(&mut chance, 1_000))).await;
        if round > 0 {
            broker.crash().await;
            sleep(Duration::from_millis(below(&mut chance, 1_000))).await;
            broker.restart().await;
        }
        fleet.look_after();
    }
    fleet.finish(&archive).await;
}
