//! Every bad thing that a server can do, once, to the real client.
//!
//! It is the only test of its binary, since it counts what its process holds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::sync::Arc;
use std::time::Instant;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::held::Held;
use fetchwell_testkit::hostile::{
    HostileServer, HostileVisitor, RobotsAre, Target, long_limits, short_limits,
};
use futures::{StreamExt, stream};
use tokio::time::timeout;

/// Visits at the same time: enough to be quick, and few enough that all get their turn in time.
const AT_ONCE: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn every_behaviour_comes_to_its_outcome_and_leaves_nothing_behind() {
    let server = HostileServer::start(RobotsAre::Hostile).await.unwrap();
    let before = Held::now();
    let [short, long] = [short_limits(), long_limits()]
        .map(|limits| Arc::new(HostileVisitor::new(&server, limits).unwrap()));
    let visits = chosen(&server).into_iter().map(|target| {
        let visitor = if target.behaviour.may_time_out() { &short } else { &long };
        visit(visitor.clone(), target)
    });
    let visits: Vec<_> =
        stream::iter(visits.map(tokio::spawn)).buffer_unordered(AT_ONCE).collect().await;
    let wrong: Vec<String> = visits.into_iter().filter_map(|visit| visit.unwrap()).collect();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    drop((short, long));
    before.await_return().await;
}

/// All, or those whose names hold `FETCHWELL_TEST_BEHAVIOUR`.
fn chosen(server: &HostileServer) -> Vec<Target> {
    let part = std::env::var("FETCHWELL_TEST_BEHAVIOUR").unwrap_or_default();
    let chosen = server.targets().iter().filter(|target| target.behaviour.name.contains(&part));
    chosen.cloned().collect()
}

/// Says what went wrong, if anything did.
async fn visit(visitor: Arc<HostileVisitor>, target: Target) -> Option<String> {
    let began = Instant::now();
    let behaviour = &target.behaviour;
    let Ok(visit) = timeout(DEADLINE, visitor.visit(&target)).await else {
        return Some(format!("{}: not finished after {DEADLINE:?}", target.url));
    };
    let took = began.elapsed();
    (!visit.is_one_of(&behaviour.good)).then(|| {
        format!(
            "{} ({}): {:?} with {} bytes after {took:?}; good is {:?}",
            target.url,
            behaviour.does,
            visit.happened,
            visit.body.len(),
            behaviour.good
        )
    })
}
