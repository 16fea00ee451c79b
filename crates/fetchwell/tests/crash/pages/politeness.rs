//! Three instances on one Redis, killed, put to sleep and with Redis crashing under them, keep the pace of every
//! site: judged by what they say to the microsecond, and at the origin within what a control sender achieves.

use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_testkit::alone::alone;
use fetchwell_testkit::crash::ControlSender;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::replay::{is_soak, seed};
use tokio::time::sleep;

use super::below;
use super::fleet::{Fleet, Load};

/// Longer than the lease of an instance lasts.
const SLEEP: Duration = Duration::from_secs(5);

/// The load, how far apart a site's requests must be, and how often everything goes wrong.
fn load_interval_and_rounds() -> (Load, Duration, usize) {
    let (sites, pages_per_site, rate, interval, rounds) = if is_soak() {
        (1_000, 14, "0.2", Duration::from_secs(5), 3)
    } else {
        (60, 20, "2", Duration::from_millis(500), 1)
    };
    let thinking = Duration::ZERO;
    let lease = Some(("4s", "1s"));
    let load = Load { sites, pages_per_site, rate, max_in_flight: "64", thinking, lease };
    (load, interval, rounds)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_instances_keep_every_sites_pace_and_lose_nothing_whatever_happens() {
    let _turn = alone().await;
    let mut chance = Chance::seeded(seed());
    let (load, interval, rounds) = load_interval_and_rounds();
    let Some(mut fleet) = Fleet::start(load).await else { return };
    let control = ControlSender::start(&fleet.origin);
    fleet.push(0).await;
    eventually("work in hand", async || fleet.in_flight().await > 0).await;
    for _ in 0..rounds {
        fleet.launch(0).await;
        sleep(Duration::from_millis(500 + below(&mut chance, 500))).await;
        fleet.put_to_sleep(1, SLEEP).await;
        fleet.redis.crash().await;
        sleep(Duration::from_millis(below(&mut chance, 500))).await;
        fleet.redis.restart().await;
        fleet.look_after().await;
        sleep(Duration::from_millis(500 + below(&mut chance, 500))).await;
        fleet.launch(2).await;
    }
    assert!(fleet.in_flight().await > 0, "it was over before the trouble");
    fleet.come_to_rest().await;
    fleet.stop().await;

    let (urls, events) = fleet.balance().await;
    let tolerance = control.tolerance(&fleet.origin).await;
    let verdict = fleet.origin.verdict(interval, tolerance);
    let too_close = fleet.log.too_close();
    println!(
        "{urls} URLs, {events} events, {} pages fetched again; {} heads, {} too close in the dispatch log; \
         {verdict}; tolerance {tolerance:?}",
        fleet.origin.repeated_pages(),
        fleet.log.len(),
        too_close.len(),
    );
    let first: Vec<String> = too_close.iter().take(5).map(ToString::to_string).collect();
    assert!(too_close.is_empty(), "{first:?}");
    assert!(verdict.is_polite(), "{verdict}");
    assert!(fleet.log.len() >= events, "the dispatch log is not whole");
}
