//! Asks each store and server that the settings name.

use fetchwell_engine::adapters::{kafka, postgres, rabbitmq, redis, sqlite};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::StoreFault;
use fetchwell_policy::time::Time;

use super::Doors;
use super::finding::Finding;
use super::judgement::{self, RedisUse};
use super::settings::politeness_store;
use crate::settings::{Settings, StoreUrl};

/// Asks all of them.
pub(super) async fn examine(doors: &Doors) -> Vec<Finding> {
    let mut asked: Vec<(String, StoreUrl)> = Vec::new();
    let mut findings = Vec::new();
    for (check, place) in places(doors) {
        if asked.iter().any(|(_, known)| *known == place) {
            continue;
        }
        findings.extend(store(&check, &place, RedisUse::Store).await);
        asked.push((check, place));
    }
    if let Some(cache) = &doors.pages.values.pages_cache {
        findings.extend(store("page cache", cache, RedisUse::Cache).await);
    }
    findings.extend(kafka(&doors.pages).await);
    findings.extend(rabbitmq(&doors.commoncrawl).await);
    findings
}

/// Where URLs, results and the pace of sites are kept, with what each place is called.
fn places(doors: &Doors) -> Vec<(String, StoreUrl)> {
    let mut places = vec![("store", &doors.settings.values.store)];
    places.push(("politeness", politeness_store(&doors.settings)));
    places.push(("store of \"pages\"", &doors.pages.values.store));
    places.push(("politeness of \"pages\"", politeness_store(&doors.pages)));
    places.into_iter().map(|(check, place)| (check.to_owned(), place.clone())).collect()
}

async fn store(check: &str, place: &StoreUrl, used_as: RedisUse) -> Vec<Finding> {
    let clock = Clock::system();
    let before = clock.now();
    match place {
        StoreUrl::Sqlite(path) if !path.exists() => {
            let what = format!("{place} is not there yet: it is made when it is first used");
            vec![Finding::ok(check, what)]
        }
        StoreUrl::Sqlite(path) => match sqlite::examine(path) {
            Ok(facts) => vec![judgement::sqlite(check, &path.display().to_string(), &facts)],
            Err(fault) => vec![unreachable(check, &fault)],
        },
        StoreUrl::Postgres(url) => match postgres::examine(url.reveal()).await {
            Ok(facts) => {
                let findings = judgement::postgres(check, &facts);
                with_skew(findings, check, facts.now, before, clock.now())
            }
            Err(fault) => vec![unreachable(check, &fault)],
        },
        StoreUrl::Redis(url) => match redis::examine(url.reveal()).await {
            Ok(facts) => {
                let findings = judgement::redis(check, &facts, used_as);
                with_skew(findings, check, facts.now, before, clock.now())
            }
            Err(fault) => vec![unreachable(check, &fault)],
        },
    }
}

fn with_skew(
    mut findings: Vec<Finding>,
    check: &str,
    server: Time,
    before: Time,
    after: Time,
) -> Vec<Finding> {
    findings.push(judgement::skew(check, server, before, after));
    findings
}

async fn kafka(settings: &Settings) -> Option<Finding> {
    let servers = settings.values.pages_kafka_bootstrap_servers.as_ref()?;
    let topic = &settings.values.pages_webpage_log_topic;
    Some(match kafka::examine(servers, topic).await {
        Ok(facts) => judgement::kafka(topic, &facts),
        Err(fault) => unreachable("kafka", &fault),
    })
}

async fn rabbitmq(settings: &Settings) -> Option<Finding> {
    let url = settings.values.commoncrawl_rabbitmq_url.as_ref()?;
    let queue = &settings.values.commoncrawl_queue;
    Some(match rabbitmq::examine(url.reveal(), queue).await {
        Ok(facts) => judgement::rabbitmq(queue, &facts),
        Err(fault) => unreachable("rabbitmq", &fault),
    })
}

fn unreachable(check: &str, fault: &StoreFault) -> Finding {
    Finding::fail(
        check,
        fault.to_string(),
        "nothing that is kept there can be read or written",
        "start it, or mend its address, user and password in the settings",
    )
}
