//! Politeness on real servers, by their own clocks: servers that crash, restart or lose what they knew.
//!
//! The conformance suite sets the time by hand, and takes it that nothing is ever lost. Here it is.

use std::time::Duration;

use fetchwell_engine::ports::politeness::{Politeness, SiteAsk, SiteReport};
use fetchwell_engine::shared_politeness::{SharedPoliteness, SiteStateStore};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, Report, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use fetchwell_stores::postgres::PostgresSiteStates;
use fetchwell_stores::redis::RedisSiteStates;
use fetchwell_testkit::conformance::servers::{redis_connection, unused_redis};
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use sqlx::{Connection, Executor, PgConnection};
use tokio::process::Command;

/// So long that no test takes as long, and short enough to be reserved.
const INTERVAL: Duration = Duration::from_secs(9);
const RATE: Rate = Rate::every(INTERVAL);
const HOUR: Duration = Duration::from_secs(3_600);

/// A politeness store on a server, as a process sees it.
struct Store(Box<dyn Politeness>);

impl Store {
    fn on(site_states: impl SiteStateStore + 'static) -> Store {
        Store(Box::new(SharedPoliteness::unguarded(site_states, BreakerRule::default(), 7)))
    }

    async fn on_redis(url: &str) -> Store {
        Store::on(RedisSiteStates::open(url).await.unwrap())
    }

    async fn on_postgres(url: &str) -> Store {
        Store::on(PostgresSiteStates::open(url).await.unwrap())
    }

    /// A slot, by the server's time; and that time.
    async fn go(&self, name: &str, follows_robots: bool) -> (Permit, Time) {
        let ask = SiteAsk { site: site(name), rate: RATE, follows_robots };
        let turn = self.0.turn(&[], &[ask]).await.unwrap();
        match turn.verdicts[0] {
            Verdict::Go(permit) => (permit, turn.now),
            other => panic!("{other:?} of {name}"),
        }
    }

    /// A site that nobody has asked for goes at once: the server's past is relied on.
    async fn expect_trust(&self, name: &str) -> Permit {
        let (permit, now) = self.go(name, false).await;
        assert_eq!(permit.slot.at, now, "{name} has no past to wait for");
        permit
    }

    /// After a loss nothing goes before a whole interval is over: neither to a site that was never heard
    /// of, nor to the page of a robots.txt, nor under what was reserved before. The first who comes is
    /// told so already.
    async fn expect_all_to_wait(&self, before_loss: Time, reserved: &Permit, reserved_for: &str) {
        let least = before_loss + INTERVAL;
        for (name, follows_robots) in [("unheard-of.test", false), ("just-read.test", true)] {
            let (permit, _) = self.go(name, follows_robots).await;
            assert!(permit.slot.at >= least, "{name}: {} is before {least}", permit.slot.at);
        }
        // Until then it need not be spent.
        eventually("the end of the slot", async || self.now().await > reserved.slot.use_by).await;
        let spent = self.0.spend(&site(reserved_for), reserved, RATE).await.unwrap().0;
        assert!(
            matches!(spent, Spend::Wait(later) if later.slot.at >= least),
            "a slot of {least} or later was due, and came {spent:?}"
        );
    }

    async fn report(&self, name: &str, mark: Mark, retry_after: Option<Duration>) {
        let report = Report { mark, retry_after, generation: 0 };
        self.0.turn(&[SiteReport { site: site(name), report }], &[]).await.unwrap();
    }

    async fn penalty_until(&self, name: &str) -> Time {
        self.0.look(&site(name)).await.unwrap().0.map_or(Time::EPOCH, |state| state.penalty_until)
    }

    async fn now(&self) -> Time {
        self.0.look(&site("nobody.test")).await.unwrap().1
    }
}

fn site(name: &str) -> Site {
    Site::parse(name).unwrap()
}

/// A database that counts as whole, though it is new.
async fn trusted_redis(url: &str) -> (Store, MultiplexedConnection) {
    let store = Store::on_redis(url).await;
    let mut keys = redis_connection(url).await;
    store.now().await;
    let _: () = keys.hset("fetchwell:politeness", "lost_until", 0).await.unwrap();
    (store, keys)
}

async fn trusted_postgres(url: &str) -> Store {
    let store = Store::on_postgres(url).await;
    store.now().await;
    let mut connection = PgConnection::connect(url).await.unwrap();
    connection.execute("UPDATE fetchwell_run SET lost_until = 0").await.unwrap();
    store
}

/// A server that was away answers again, on a connection of its own.
async fn until_it_answers(store: &Store) {
    let look = async || store.0.look(&site("nobody.test")).await;
    eventually_ok("an answer of the server", look).await;
}

/// What was known before a loss, and reserved, counts for nothing after it.
async fn lose(store: &Store, loss: impl AsyncFnOnce()) {
    let reserved = store.expect_trust("known.test").await;
    let before = store.now().await;
    loss().await;
    until_it_answers(store).await;
    store.expect_all_to_wait(before, &reserved, "known.test").await;
}

/// The same, and penalties outlive it.
async fn lose_but_penalties(store: &Store, loss: impl AsyncFnOnce()) {
    store.report("limited.test", Mark::Limited, Some(HOUR)).await;
    let penalty = store.penalty_until("limited.test").await;
    lose(store, loss).await;
    assert_eq!(store.penalty_until("limited.test").await, penalty);
}

#[tokio::test]
async fn a_redis_that_lost_its_keys_makes_all_wait() {
    let Some(url) = unused_redis().await else { return };
    let (store, mut keys) = trusted_redis(&url).await;
    lose(&store, async || redis::cmd("FLUSHDB").query_async(&mut keys).await.unwrap()).await;
}

#[tokio::test]
async fn a_redis_that_crashed_makes_all_wait_and_keeps_penalties() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let (store, _) = trusted_redis(server.url()).await;
    lose_but_penalties(&store, async || crash(&server).await).await;
}

#[tokio::test]
async fn a_postgres_that_was_restarted_makes_all_wait_and_keeps_penalties() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let store = trusted_postgres(server.url()).await;
    let restart = async || {
        server.stop().await;
        server.restart().await;
    };
    lose_but_penalties(&store, restart).await;
}

/// What was said last may be lost with it, but neither the tables, for who has found them goes by them,
/// nor a penalty.
#[tokio::test]
async fn a_postgres_that_crashed_right_after_it_was_first_used_makes_all_wait_and_keeps_penalties()
{
    let Some(server) = OwnServer::start("postgres").await else { return };
    let store = trusted_postgres(server.url()).await;
    lose_but_penalties(&store, async || crash(&server).await).await;
}

async fn crash(server: &OwnServer) {
    server.crash().await;
    server.restart().await;
}

/// When one of its processes dies, a server throws away what all of them had in memory, and goes on as
/// the same server: it does not even count as started anew.
#[tokio::test]
async fn a_postgres_that_recovered_from_a_crash_makes_all_wait() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let store = trusted_postgres(server.url()).await;
    let crash_inside = async || {
        let mut victim = PgConnection::connect(server.url()).await.unwrap();
        let mut witness = PgConnection::connect(server.url()).await.unwrap();
        let pid: i32 =
            sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut victim).await.unwrap();
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status().await;
        assert!(killed.unwrap().success());
        // From here on nobody is let in before the server has recovered.
        eventually("the server's crash", async || witness.ping().await.is_err()).await;
    };
    lose(&store, crash_inside).await;
}

/// What is not to be forgotten before a time must not expire before it either.
#[tokio::test]
async fn keys_in_redis_live_as_long_as_what_they_say() {
    let Some(url) = unused_redis().await else { return };
    let (store, mut keys) = trusted_redis(&url).await;
    store.report("resting.test", Mark::Neutral, Some(HOUR * 20)).await;
    store.report("limited.test", Mark::Limited, None).await;
    store.report("failed.test", Mark::Failed, None).await;
    let (permit, _) = store.go("asked.test", false).await;
    let now = store.now().await;
    for (key, least) in [
        ("rate_limit:resting.test", store.penalty_until("resting.test").await),
        ("rate_limit:limited.test", now + HOUR * 24),
        ("rate_limit:failed.test", now + HOUR * 24),
        ("circuit:failed.test", now + HOUR * 24),
        ("rate_limit:asked.test", permit.slot.at + INTERVAL),
    ] {
        let left_ms: i64 = keys.pttl(key).await.unwrap();
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        // The server counts in milliseconds.
        let expires = store.now().await + left + Duration::from_millis(2);
        assert!(expires >= least, "{key} is gone in {left:?}");
    }
}

/// The names of the keys are plain, so somebody else may use them for something else.
#[tokio::test]
async fn keys_of_somebody_elses_making_in_redis_stop_nobody() {
    let Some(url) = unused_redis().await else { return };
    let (store, mut keys) = trusted_redis(&url).await;
    let pickled: &[u8] = b"\x80\x04\x95theirs";
    for what in ["rate_limit", "circuit"] {
        let _: () = keys.rpush(format!("{what}:a.test"), "theirs").await.unwrap();
        let _: () = keys.set(format!("{what}:b.test"), pickled).await.unwrap();
    }
    for site in ["a.test", "b.test"] {
        let first = store.expect_trust(site).await;
        let (second, _) = store.go(site, false).await;
        assert!(second.slot.at >= first.slot.at + INTERVAL, "{first:?}, then {second:?}");
    }
}

/// As after a jump of the server's clock, which each of many processes may notice.
#[tokio::test]
async fn a_past_that_is_not_relied_on_makes_all_wait() {
    if let Some(url) = unused_redis().await {
        let (store, _) = trusted_redis(&url).await;
        let other = RedisSiteStates::open(&url).await.unwrap();
        lose(&store, async || other.distrust_the_past().await.unwrap()).await;
    }
    if let Some(server) = OwnServer::start("postgres").await {
        let store = trusted_postgres(server.url()).await;
        let other = PostgresSiteStates::open(server.url()).await.unwrap();
        lose(&store, async || other.distrust_the_past().await.unwrap()).await;
    }
}
