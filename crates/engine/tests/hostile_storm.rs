//! Many visits to the hostile server at once, in any order: each ends as expected, and nothing
//! is left behind. It is the only test of its file, since it counts what its process holds.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_engine::http::HttpLimits;
use fetchwell_policy::chance::Chance;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::held::Held;
use fetchwell_testkit::hostile::{
    Good, HostileServer, HostileVisitor, RobotsAre, Target, short_limits,
};
use fetchwell_testkit::replay::{count_or, is_soak, seed};
use futures::{StreamExt, stream};
use tokio::time::timeout;

const IN_FLIGHT: usize = 32;

/// A visit makes one request, or up to six if it is redirected, each with its own timeouts.
const MAX_REQUESTS: u32 = 6;
const GRACE: Duration = Duration::from_secs(1);

const MOST_GROWTH_BYTES: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_visits_leaves_nothing_behind() {
    let requests = count_or("FETCHWELL_TEST_HOSTILE_REQUESTS", 300);
    let seed = seed();
    let server = HostileServer::start(RobotsAre::Hostile).await.unwrap();
    let mut left: Vec<Target> = server.targets().to_vec();
    // Making the server's bodies took memory, too, which is not what is judged.
    let before = Held::now_and_forget_peak();
    let visitor = Arc::new(HostileVisitor::new(&server, short_limits()).unwrap());
    let mut chance = Chance::seeded(seed);
    let targets = (0..requests).map(|_| pick(&mut left, &mut chance));
    let mut visits =
        stream::iter(targets.map(|target| tokio::spawn(visit(visitor.clone(), target))))
            .buffer_unordered(IN_FLIGHT);
    let mut wrong = Vec::new();
    while let Some(visited) = visits.next().await {
        wrong.extend(visited.expect("a visit must not panic"));
    }
    drop(visits);
    drop(visitor);
    let peak_growth = before.peak_growth_bytes();
    eprintln!("{requests} visits, grown by {} KiB at the most", peak_growth >> 10);
    assert!(wrong.is_empty(), "{} visits went wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(peak_growth <= MOST_GROWTH_BYTES, "it grew by {peak_growth} bytes");
    before.await_return().await;
}

/// Picks one. A late second answer may come when the next request on its connection has been written, and no client can
/// tell that it was not meant for that one. So such a target is visited once.
fn pick(left: &mut Vec<Target>, chance: &mut Chance) -> Target {
    let at = usize::try_from(chance.next_u64() % left.len() as u64).unwrap();
    match left[at].behaviour.name {
        "second-answer-later" => left.swap_remove(at),
        _ => left[at].clone(),
    }
}

/// Says what went wrong, if anything did.
async fn visit(visitor: Arc<HostileVisitor>, target: Target) -> Option<String> {
    let HttpLimits { connect_timeout, request_timeout, .. } = short_limits();
    let began = Instant::now();
    let Ok(visit) = timeout(DEADLINE, visitor.visit(&target)).await else {
        return Some(format!("{}: not finished after {DEADLINE:?}", target.url));
    };
    let took = began.elapsed();
    let is_redirected = target.behaviour.name.starts_with("redirect");
    let requests = if is_redirected { MAX_REQUESTS } else { 1 };
    let deadline = (connect_timeout + request_timeout) * requests + GRACE;
    let is_late = is_soak() && took > deadline;
    // A machine that is busy with this storm may be late, and a connection that was kept may be dead.
    let is_good = visit.is_one_of(&target.behaviour.good) || visit.is_one_of(&[Good::TimedOut]);
    (!is_good || is_late).then(|| {
        format!(
            "{}: {:?} after {took:?}; expected {:?} within {deadline:?}",
            target.url, visit.happened, target.behaviour.good
        )
    })
}
