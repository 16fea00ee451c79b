//! A batch whose service is killed in its middle: it has exactly its results, and ends once.

use std::collections::HashSet;

use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::replay::is_soak;
use tokio::time::{Duration, sleep};

use super::fleet::{Fleet, Line, MAX_IN_FLIGHT, Troubles};

/// The size of the batch. All sites together give 200 pages per second.
fn size() -> usize {
    if is_soak() { 10_000 } else { 300 }
}

async fn counted(line: &Line, id: &str, troubles: &mut Troubles) -> (u64, bool) {
    let batch = line.ask(&format!("GET /batches/{id}"), &[], "", troubles).await;
    let count = |name: &str| batch["counts"][name].as_u64().unwrap();
    assert_eq!(count("total"), size() as u64);
    (count("completed") + count("failed"), batch["done"] == true)
}

async fn kill_in_the_middle(mut fleet: Fleet) {
    fleet.start_all().await;
    let line = fleet.line();
    let mut troubles = Troubles::default();
    let (id, sent) = line.send_batch(size(), &mut troubles).await;
    assert_eq!(sent.len(), size());
    for instance in 0..line.instances() {
        let middle = (size() * (1 + instance) / (2 + line.instances())) as u64;
        while counted(&line, &id, &mut troubles).await.0 < middle {
            sleep(Duration::from_millis(20)).await;
        }
        fleet.kill(instance).await;
        fleet.start(instance).await;
    }
    let (ended, done) = counted(&line, &id, &mut troubles).await;
    assert!(!done && ended < size() as u64, "the kills came after the end");

    let mut results = HashSet::new();
    let mut after = 0;
    loop {
        let asked = format!("GET /batches/{id}/results?after={after}&limit=1000&wait=5");
        let page = line.ask(&asked, &[], "", &mut troubles).await;
        for one in page["messages"].as_array().unwrap() {
            let cursor: i64 = one["cursor"].as_str().unwrap().parse().unwrap();
            assert_eq!(cursor, after + 1, "a result was skipped, or came again");
            after = cursor;
            let message = one["inbox_message_id"].as_str().unwrap().to_owned();
            assert!(results.insert(message), "two results of one message: {one}");
        }
        if page["done"] == true {
            break;
        }
    }
    assert_eq!(results, sent);
    assert_eq!(counted(&line, &id, &mut troubles).await, (size() as u64, true));
    let told = line.ended("batch.completed", after).await;
    assert_eq!(told, [id], "each batch ends once");
    let repeated = fleet.origin.repeated_pages();
    assert!(repeated <= line.instances() * MAX_IN_FLIGHT, "{repeated} pages fetched again");
    for instance in 0..line.instances() {
        fleet.stop(instance).await.expect_code(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_a_batch_on_sqlite_it_ends_once_with_all_its_results() {
    kill_in_the_middle(Fleet::on("sqlite:fetchwell.db", 1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_a_batch_on_postgresql_it_ends_once_with_all_its_results() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    kill_in_the_middle(Fleet::on(server.url(), 2).await).await;
}
