//! Checks a PostgreSQL server.

use fetchwell_stores::postgres::PostgresFacts;

use crate::commands::doctor::finding::Finding;

pub(super) fn judge(check: &str, facts: &PostgresFacts) -> Vec<Finding> {
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
