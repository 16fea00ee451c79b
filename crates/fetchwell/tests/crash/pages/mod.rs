//! `fetchwell pages` under load while its instances are killed and its servers crash: every URL that was
//! pushed ends as a page with its event, as a dead letter, or skipped.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

mod fleet;
mod politeness;

use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::replay::{count_or, is_soak, seed};
use tokio::time::sleep;

use fleet::{Fleet, INSTANCES, Load};

/// Within this what a dead instance held is under way again.
const RESCUED_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Disruption {
    Kill,
    RedisCrashes,
    KafkaCrashes,
}

/// So many of each, in an order that the seed gives.
fn disruptions(chance: &mut Chance) -> Vec<Disruption> {
    let mut left = [
        (Disruption::Kill, count_or("FETCHWELL_TEST_PAGES_KILLS", 2_u64)),
        (Disruption::RedisCrashes, count_or("FETCHWELL_TEST_PAGES_REDIS_RESTARTS", 1)),
        (Disruption::KafkaCrashes, count_or("FETCHWELL_TEST_PAGES_KAFKA_RESTARTS", 1)),
    ];
    let mut order = Vec::new();
    loop {
        let all: u64 = left.iter().map(|(_, count)| count).sum();
        if all == 0 {
            return order;
        }
        let mut place = below(chance, all);
        for (disruption, count) in &mut left {
            if place < *count {
                *count -= 1;
                order.push(*disruption);
                break;
            }
            place -= *count;
        }
    }
}

/// A number less than this one.
fn below(chance: &mut Chance, end: u64) -> u64 {
    chance.next_u64() % end
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_on_servers_that_crash_no_url_is_lost() {
    let mut chance = Chance::seeded(seed());
    let load = Load {
        sites: 20,
        pages_per_site: 8,
        rate: "10",
        max_in_flight: "32",
        thinking: Duration::from_millis(100),
        // The long run has the leases that its users have.
        lease: if is_soak() { None } else { Some(("4s", "500ms")) },
    };
    let Some(mut fleet) = Fleet::start(load).await else { return };
    let disruptions = disruptions(&mut chance);
    for (round, disruption) in disruptions.iter().enumerate() {
        fleet.push(round).await;
        fleet.look_after().await;
        sleep(Duration::from_millis(100 + below(&mut chance, 900))).await;
        match disruption {
            Disruption::Kill => {
                let instance = usize::try_from(below(&mut chance, INSTANCES as u64)).unwrap();
                fleet.launch(instance).await;
            }
            Disruption::RedisCrashes => {
                fleet.redis.crash().await;
                sleep(Duration::from_millis(below(&mut chance, 1_000))).await;
                fleet.redis.restart().await;
            }
            Disruption::KafkaCrashes => {
                fleet.kafka.crash().await;
                sleep(Duration::from_millis(below(&mut chance, 1_000))).await;
                fleet.kafka.restart().await;
            }
        }
    }
    let rest_after = fleet.come_to_rest().await;

    // All die with work in their hands, and one comes.
    fleet.push(disruptions.len()).await;
    eventually("work in hand", async || fleet.in_flight().await > 0).await;
    for instance in 0..INSTANCES {
        fleet.kill(instance).await;
    }
    fleet.launch(0).await;
    let rescued_after = fleet.come_to_rest().await;
    assert!(!is_soak() || rescued_after < RESCUED_WITHIN, "{rescued_after:?}");
    fleet.stop().await;

    let (urls, events) = fleet.balance().await;
    println!(
        "{urls} URLs, {} misfortunes: {events} events, {} pages fetched again; at rest {rest_after:?} after \
         the last one, {rescued_after:?} after all were killed",
        disruptions.len(),
        fleet.origin.repeated_pages()
    );
}
