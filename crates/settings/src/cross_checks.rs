//! Checks that involve several settings.

use fetchwell_policy::units::{format_duration, format_size};

use super::fault::{SettingError, ValueOrigin, Wrong};
use super::reader::Findings;
use super::schema::Values;

/// Adds a fault for every broken rule.
pub(super) fn run(values: &Values, findings: &mut Findings) {
    // With fewer than two heartbeats per lease, one late heartbeat would make an instance look dead.
    if values.lease_heartbeat >= values.lease_ttl / 2 {
        let problem = format!(
            "{} is not less than half of lease.ttl ({})",
            format_duration(values.lease_heartbeat),
            format_duration(values.lease_ttl)
        );
        let mend = "make lease.heartbeat shorter or lease.ttl longer";
        add(findings, ["lease.heartbeat", "lease.ttl"], problem, mend);
    }
    if values.breaker_initial_backoff > values.breaker_max_backoff {
        let problem = format!(
            "{} is longer than breaker.max_backoff ({})",
            format_duration(values.breaker_initial_backoff),
            format_duration(values.breaker_max_backoff)
        );
        let mend = "make breaker.initial_backoff shorter or breaker.max_backoff longer";
        add(findings, ["breaker.initial_backoff", "breaker.max_backoff"], problem, mend);
    }
    // A body that can never fit would wait for memory forever.
    if values.http_max_body > values.http_body_budget {
        let problem = format!(
            "{} is more than http.body_budget ({})",
            format_size(values.http_max_body),
            format_size(values.http_body_budget)
        );
        let mend = "make http.max_body smaller or http.body_budget larger";
        add(findings, ["http.max_body", "http.body_budget"], problem, mend);
    }
}

/// Reports the fault at the origin of the setting that was given, not at a default.
fn add(findings: &mut Findings, keys: [&str; 2], problem: String, mend: &str) {
    let origins = findings.effective.iter().filter(|setting| keys.contains(&setting.key.as_str()));
    let origin =
        origins.map(|setting| setting.origin.clone()).min().unwrap_or(ValueOrigin::Default);
    let wrong = Wrong::new(problem, mend);
    findings.faults.push(SettingError { origin, key: keys[0].to_owned(), wrong });
}
