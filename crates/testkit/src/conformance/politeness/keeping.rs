//! What is stored.

use fetchwell_engine::ports::politeness::{RobotsRecord, Unreachable};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;

use super::PolitenessStore;
use super::trial::{Trial, secs};

pub(super) fn origin(url: &str) -> Origin {
    Origin::parse(url).expect("an origin")
}

/// A record with all fields set.
pub(super) fn full_record(now: Time) -> RobotsRecord {
    RobotsRecord {
        body: Some((0..=255).collect()),
        status: Some(200),
        fetched_at: now,
        unreachable: Some(Unreachable {
            is_asked_for: true,
            since: now + secs(1),
            tries: 3,
            retry_at: now + secs(60),
            reason: "503 \"quoted\" é".to_owned(),
            recoveries: 7,
        }),
        robots_forgotten: Some(now - secs(90)),
    }
}

/// By scheme, host and port, and byte for byte.
pub async fn robots_records_are_kept_and_replaced(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let other_process = trial.beside(store);
    let origins =
        ["http://a.test", "https://a.test", "https://a.test:8443", "https://b.test"].map(origin);
    for (n, origin) in origins.iter().enumerate().take(3) {
        let body = Some(vec![u8::try_from(n).unwrap_or(0)]);
        let record = RobotsRecord { body, unreachable: None, ..full_record(trial.now()) };
        trial.store.keep_robots(origin, &record).await.expect("it is kept");
    }
    let full = full_record(trial.now());
    trial.store.keep_robots(&origins[1], &full).await.expect("it is replaced");
    let mut bodies = Vec::new();
    for origin in &origins {
        let record = other_process.store.robots(origin).await.expect("it can be read");
        bodies.push(record.and_then(|record| record.body));
    }
    assert_eq!(bodies, [Some(vec![0]), full.body.clone(), Some(vec![2]), None]);
    let read = trial.store.robots(&origins[1]).await.expect("it can be read");
    assert_eq!(read, Some(full));
    let nothing = RobotsRecord {
        body: None,
        status: None,
        fetched_at: Time::EPOCH,
        unreachable: None,
        robots_forgotten: None,
    };
    trial.store.keep_robots(&origins[1], &nothing).await.expect("it is replaced");
    let read = trial.store.robots(&origins[1]).await.expect("it can be read");
    assert_eq!(read, Some(nothing));
}

/// It does not create a site, either.
pub async fn a_look_changes_nothing(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    assert_eq!(trial.look("a.test").await, None);
    assert_eq!(trial.look("a.test").await, None);
    trial.go("a.test").await;
    let state = trial.look("a.test").await.expect("it was asked for");
    trial.clock.advance(secs(5));
    assert_eq!(trial.look("a.test").await, Some(state));
    assert_eq!(trial.look("b.test").await, None);
}
