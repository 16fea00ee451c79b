//! A service whose clock is wrong by an hour.

use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{FalseClock, Program, Service, TestWeb};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::place::{get, post};

const HOUR: Duration = Duration::from_secs(3_600);
const MESSAGES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_ahead_or_behind_all_is_accepted_fetched_and_in_order() {
    let origin = TestWeb::start([SiteScript::new("shop.test")]);
    let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags([
        "--rate",
        "0",
        "--i-own-these-sites",
    ]);
    let clock = FalseClock::new(program.file("clock"));
    clock.set_ahead(HOUR);
    for (name, value) in clock.variables() {
        program = program.variable(name, value);
    }
    let mut service = Service::start(program).await;
    let mut cursor = 0;
    for (round, hours) in [1, -1, 1].into_iter().enumerate() {
        if round > 0 {
            service.stop().await;
            if hours > 0 {
                clock.set_ahead(HOUR);
            } else {
                clock.set_back(HOUR);
            }
            service.start_again().await;
        }
        send(&service, round).await;
        for result in results(&service, cursor).await {
            assert_eq!(result["status"], "success", "{result}");
            let own: u64 = result["cursor"].as_str().unwrap().parse().unwrap();
            assert_eq!(own, cursor + 1, "{result}");
            cursor = own;
            let at: Timestamp = result["created_at"].as_str().unwrap().parse().unwrap();
            let off_s = at.as_second() - Timestamp::now().as_second();
            assert!((off_s - hours * 3_600).abs() < 300, "its clock is off by {off_s} s");
        }
        assert_eq!(cursor as usize, MESSAGES * (round + 1));
    }
    assert_eq!(origin.page_hits(), 3 * MESSAGES);
}

/// Half of them would be over by the true time, or are not over by it.
async fn send(service: &Service, round: usize) {
    let message = |number: usize| {
        let deadline = if number.is_multiple_of(2) { json!("30m") } else { Value::Null };
        json!({"url": format!("http://shop.test/{round}/{number}"), "retailer": "admhr",
               "correlation_id": format!("{round}/{number}"), "deadline": deadline})
    };
    let messages: Vec<Value> = (0..MESSAGES).map(message).collect();
    let batch = json!({"messages": messages}).to_string();
    post(service.address, &service.token, "/fetch/batch", &[], &batch).await.expect(200);
}

/// All results of a round.
async fn results(service: &Service, mut after: u64) -> Vec<Value> {
    let mut found = Vec::new();
    while found.len() < MESSAGES {
        let path = format!("/outbox?after={after}&wait=10");
        let page = get(service.address, &service.token, &path).await.expect(200).json();
        let messages = page["messages"].as_array().unwrap();
        assert!(!messages.is_empty(), "no results after {after}:\n{}", service.log());
        found.extend(messages.iter().cloned());
        after = page["next"].as_str().unwrap().parse().unwrap();
    }
    found
}
