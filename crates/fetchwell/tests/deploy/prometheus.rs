//! Prometheus's own tool on its configuration, and what every alert must have.

use crate::{check, deploy, is_there, text, yaml};

#[test]
fn promtool_finds_no_fault_and_every_alert_fires_when_it_should() {
    let folder = deploy().join("prometheus");
    if is_there("promtool") {
        check("promtool", &["check", "config", "prometheus.yml"], &folder);
        check("promtool", &["check", "rules", "rules.yml"], &folder);
        check("promtool", &["test", "rules", "rules_test.yml"], &folder);
    }
}

#[test]
fn every_alert_says_what_to_do() {
    let rules = yaml(&text("prometheus/rules.yml"));
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    for needed in
        ["RateBreach", "BreakerOpenLong", "OldestWaiting", "LedgerDifference", "RescueStorm"]
    {
        assert!(names.contains(&format!("Fetchwell{needed}").as_str()), "{needed} in {names:?}");
    }
    for rule in rules {
        let runbook = rule["annotations"]["runbook"].as_str().unwrap_or_default();
        assert!(runbook.len() > 40 && rule["annotations"]["summary"].is_string(), "{rule:#}");
        assert!(["page", "ticket"].contains(&rule["labels"]["severity"].as_str().unwrap()));
    }
}
