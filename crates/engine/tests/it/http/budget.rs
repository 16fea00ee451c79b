//! All bodies share one byte budget.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::http::Client;
use fetchwell_policy::outcome::Blame;

use super::client::{SHORT, client_limited, failure, fetch, in_time};
use super::script::{Server, Step, answer, ok};

const BODY_BYTES: usize = 40_000;

fn client_with_budget(bytes: usize) -> Client {
    client_limited(|limits| limits.body_budget_bytes = bytes)
}

#[tokio::test]
async fn the_budget_comes_back_with_each_body_that_is_dropped() {
    let server = Server::answering(ok("", &[b'x'; BODY_BYTES])).await;
    let client = client_with_budget(2 * BODY_BYTES);
    for _ in 0..50 {
        assert_eq!(fetch(&client, server.url("/")).await.body.len(), BODY_BYTES);
    }
}

#[tokio::test]
async fn the_budget_comes_back_from_failures() {
    let mut cut = ok("", &[b'x'; BODY_BYTES]);
    cut.truncate(BODY_BYTES / 2);
    let broken = Server::start([answer(cut)]).await;
    let sound = Server::answering(ok("", &[b'x'; BODY_BYTES])).await;
    let client = client_with_budget(2 * BODY_BYTES);
    for _ in 0..50 {
        failure(&client, broken.url("/")).await;
    }
    fetch(&client, sound.url("/")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_at_once_all_end_however_small_the_budget_is() {
    let mut bytes = ok("", &[b'x'; BODY_BYTES]);
    let second_half = bytes.split_off(bytes.len() / 2);
    let script = vec![
        Step::Read,
        Step::Write(bytes),
        Step::Pause(Duration::from_millis(5)),
        Step::Write(second_half),
    ];
    let server = Server::start([script]).await;
    for budget_bytes in [1, 50_000] {
        let client = Arc::new(client_with_budget(budget_bytes));
        let fetches: Vec<_> = (0..50)
            .map(|_| {
                let client = client.clone();
                let url = server.url("/");
                tokio::spawn(async move { fetch(&client, url).await.body.len() })
            })
            .collect();
        for length in fetches {
            assert_eq!(in_time(length).await.unwrap(), BODY_BYTES);
        }
    }
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_not_the_sites_fault() {
    let server = Server::answering(ok("", &[b'x'; BODY_BYTES])).await;
    let client = client_limited(|limits| {
        limits.body_budget_bytes = 2 * BODY_BYTES;
        limits.request_timeout = SHORT;
    });
    let held = [fetch(&client, server.url("/")).await, fetch(&client, server.url("/")).await];
    let happened = failure(&client, server.url("/")).await;
    assert_eq!(happened.blame(), Blame::Us, "{happened:?}");
    drop(held);
    fetch(&client, server.url("/")).await;
}
