//! Prometheus's own tool on its configuration, and what every alert must have.

use serde_json::Value;

use super::{check, deploy, is_there, text, yaml};

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

/// How many batches are made, wait and are done. A broker tells of each queue by itself only where it is asked to.
#[test]
fn the_way_of_batches_is_read_and_shown() {
    let dashboard: Value =
        serde_json::from_str(&text("grafana/dashboards/fetchwell.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let shown: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    for needed in
        ["batcher_batches", "worker_batches", r#"rabbitmq_queue_messages{queue="batches"}"#]
    {
        assert!(shown.iter().any(|expression| expression.contains(needed)), "{needed}");
    }
    let prometheus = yaml(&text("prometheus/prometheus.yml"));
    let compose = yaml(&text("docker-compose.local.yml"));
    let jobs = prometheus["scrape_configs"].as_array().unwrap();
    let broker = jobs.iter().find(|job| job["job_name"] == "rabbitmq").unwrap();
    assert_eq!(broker["metrics_path"], "/metrics/per-object");
    let targets =
        jobs.iter().flat_map(|job| job["static_configs"][0]["targets"].as_array().unwrap());
    for target in targets {
        let (part, _) = target.as_str().unwrap().split_once(':').unwrap();
        assert!(compose["services"].get(part).is_some(), "there is no {part}");
    }
}
