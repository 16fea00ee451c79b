//! `fetchwell serve` under load while its instances are killed and stopped and its database is restarted:
//! no accepted message is lost, none has two results, and a reader that follows the cursor misses none.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

#![expect(clippy::print_stdout, reason = "a test that can't go on may panic")]

mod batch;
mod crawl;
mod fleet;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::replay::{count_or, is_soak, seed};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use fleet::{Fleet, Line, MAX_IN_FLIGHT, Troubles};

/// A caller that sends, and one that reads, until told to stop.
struct Load {
    sender: JoinHandle<(HashSet<String>, Troubles)>,
    reader: JoinHandle<(HashSet<String>, Troubles)>,
    enough: Arc<AtomicBool>,
    expected: Arc<OnceLock<usize>>,
}

impl Load {
    fn on(line: &Line) -> Load {
        let enough = Arc::<AtomicBool>::default();
        let expected = Arc::<OnceLock<usize>>::default();
        Load {
            sender: tokio::spawn(send(line.clone(), enough.clone())),
            reader: tokio::spawn(read(line.clone(), expected.clone())),
            enough,
            expected,
        }
    }

    /// Stops sending, waits for all results, and compares what went in with what came out.
    async fn balance(self) -> (usize, Troubles) {
        self.enough.store(true, Ordering::Relaxed);
        let (accepted, mut troubles) = self.sender.await.unwrap();
        self.expected.set(accepted.len()).unwrap();
        let (results, others) = self.reader.await.unwrap();
        for (name, times) in others.0 {
            *troubles.0.entry(name).or_default() += times;
        }
        let lost: Vec<_> = accepted.difference(&results).take(5).collect();
        let foreign: Vec<_> = results.difference(&accepted).take(5).collect();
        assert!(lost.is_empty(), "accepted and without a result: {lost:?}; {troubles:?}");
        assert!(foreign.is_empty(), "results of what nobody heard to be accepted: {foreign:?}");
        (accepted.len(), troubles)
    }
}

async fn send(line: Line, enough: Arc<AtomicBool>) -> (HashSet<String>, Troubles) {
    let mut accepted = HashSet::new();
    let mut troubles = Troubles::default();
    for round in 0.. {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let many = if round % 2 == 0 { 1 } else { 9 };
        for id in line.send(round, many, &mut troubles).await {
            assert!(accepted.insert(id), "an id was given twice");
        }
        sleep(Duration::from_millis(30)).await;
    }
    (accepted, troubles)
}

/// Follows the cursor: each result is the next one, and none comes twice. Returns once all expected results have come
/// and no more follow for a while, or after [`DEADLINE`] without news. In the soak it gives up sooner on a lost result.
async fn read(line: Line, expected: Arc<OnceLock<usize>>) -> (HashSet<String>, Troubles) {
    let mut results = HashSet::new();
    let mut troubles = Troubles::default();
    let mut after = 0;
    let mut last_news = Instant::now();
    loop {
        let asked = format!("GET /outbox?after={after}&wait=2");
        let page = line.ask(&asked, &[], "", &mut troubles).await;
        let messages = page["messages"].as_array().unwrap();
        for message in messages {
            let cursor: i64 = message["cursor"].as_str().unwrap().parse().unwrap();
            assert_eq!(cursor, after + 1, "a result was skipped, or came again");
            after = cursor;
            let id = message["inbox_message_id"].as_str().unwrap().to_owned();
            assert!(results.insert(id), "two results of one message: {message}");
            last_news = Instant::now();
        }
        let is_complete = expected.get().is_some_and(|expected| results.len() >= *expected);
        let may_stop = is_complete || is_soak() && expected.get().is_some();
        // Long enough for a dead instance's messages to be rescued and fetched.
        let patience = if may_stop { Duration::from_secs(15) } else { DEADLINE };
        if messages.is_empty() && last_news.elapsed() > patience {
            return (results, troubles);
        }
    }
}

fn between_ms(chance: &mut Chance, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + chance.next_u64() % (to - from))
}

async fn kill_again_and_again(mut fleet: Fleet, kills: usize) {
    let mut chance = Chance::seeded(seed());
    fleet.start_all().await;
    let load = Load::on(&fleet.line());
    let instances = fleet.line().instances();
    for kill in 0..kills {
        sleep(between_ms(&mut chance, 50, 900)).await;
        fleet.kill(kill % instances).await;
        fleet.start(kill % instances).await;
    }
    let (accepted, troubles) = load.balance().await;
    let repeated = fleet.origin.repeated_pages();
    println!("{kills} kills, {accepted} messages: {repeated} pages fetched again; {troubles:?}");
    assert!(repeated <= kills * MAX_IN_FLIGHT, "{repeated} pages fetched again");
    for instance in 0..instances {
        fleet.stop(instance).await.expect_code(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_sqlite_no_message_is_lost_and_none_has_two_results() {
    let kills = count_or("FETCHWELL_TEST_SERVE_KILLS", 2);
    kill_again_and_again(Fleet::on("sqlite:fetchwell.db", 1).await, kills).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_postgresql_no_message_is_lost_and_none_has_two_results() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let kills = count_or("FETCHWELL_TEST_SERVE_KILLS", 2);
    kill_again_and_again(Fleet::on(server.url(), 2).await, kills).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_gently_nothing_is_fetched_again() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let stops = count_or("FETCHWELL_TEST_SERVE_STOPS", 2);
    let mut chance = Chance::seeded(seed());
    // On a busy machine a lease can expire before it is renewed, and its page is fetched again. With leases of 1 h, a
    // page that a stop fails to hand back is never fetched, and `balance` reports it.
    let mut fleet = Fleet::on(server.url(), 2).await.lease_ttl("1h");
    fleet.start_all().await;
    let load = Load::on(&fleet.line());
    let mut slowest = Duration::ZERO;
    let mut stderr = String::new();
    for stop in 0..stops {
        sleep(between_ms(&mut chance, 50, 900)).await;
        let ended = fleet.stop(stop % 2).await.expect_code(0);
        slowest = slowest.max(ended.took);
        stderr += &ended.stderr;
        fleet.start(stop % 2).await;
    }
    let (accepted, troubles) = load.balance().await;
    let repeated = fleet.origin.repeated_pages();
    println!("{stops} stops, the slowest {slowest:?}, {accepted} messages; {troubles:?}");
    assert_eq!(repeated, 0, "pages fetched again; stderr of the stopped instances:\n{stderr}");
    assert!(!is_soak() || slowest < Duration::from_secs(30), "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_the_answer_is_503_and_then_work_goes_on() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let restarts = count_or("FETCHWELL_TEST_SERVE_RESTARTS", 2);
    let mut chance = Chance::seeded(seed());
    let mut fleet = Fleet::on(server.url(), 2).await;
    fleet.start_all().await;
    let load = Load::on(&fleet.line());
    for restart in 0..restarts {
        sleep(between_ms(&mut chance, 500, 1_500)).await;
        // Now by force, now as whoever runs it would.
        if restart % 2 == 0 {
            server.crash().await;
        } else {
            server.stop().await;
        }
        sleep(between_ms(&mut chance, 500, 1_500)).await;
        server.restart().await;
    }
    let (accepted, troubles) = load.balance().await;
    println!("{restarts} restarts, {accepted} messages; {troubles:?}");
    let statuses: HashSet<&str> = troubles.0.keys().map(String::as_str).collect();
    assert!(statuses.contains("503"), "nobody was told: {troubles:?}");
    assert!(statuses.iter().all(|status| *status == "503"), "{troubles:?}");
    let repeated = fleet.origin.repeated_pages();
    assert!(repeated <= restarts * 2 * MAX_IN_FLIGHT, "{repeated} pages fetched again");
}
