//! A PostgreSQL server.

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::store_url::SecretUrl;
use fetchwell_stores::postgres::{self, PostgresFacts};

use super::skew::skew;
use super::unreachable;
use crate::commands::doctor::finding::Finding;

pub(super) async fn examine(check: &str, url: &SecretUrl) -> Vec<Finding> {
    let clock = Clock::system();
    let before = clock.now();
    match postgres::examine(url.reveal()).await {
        Ok(facts) => {
            let mut findings = judge(check, &facts);
            findings.push(skew(check, facts.now, before, clock.now()));
            findings
        }
        Err(fault) => vec![unreachable(check, &fault)],
    }
}

fn judge(check: &str, facts: &PostgresFacts) -> Vec<Finding> {
    if facts.is_replica {
        return vec![Finding::fail(
            check,
            format!("PostgreSQL {} answers, but is a replica", facts.version),
            "replicas are read-only",
            "use the address of the primary server",
        )];
    }
    if let Some(newer) = &facts.newer {
        return vec![Finding::fail(
            check,
            format!("PostgreSQL {} answers; {newer}", facts.version),
            "every command that uses it exits with code 2",
            "use the newer fetchwell, or restore a backup from before the upgrade",
        )];
    }
    let mut findings = vec![Finding::ok(check, format!("PostgreSQL {} answers", facts.version))];
    if !facts.is_durable {
        findings.push(Finding::warn(
            format!("{check}: durability"),
            "fsync or full_page_writes is off",
            "a power failure may corrupt the database, not only lose recent data",
            "set fsync = on and full_page_writes = on in postgresql.conf",
        ));
    }
    findings
}
