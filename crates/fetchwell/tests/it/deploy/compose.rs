//! The compose files: what they start, that it is healthy, and that nothing is open to the world.

use fetchwell_testkit::skip::skipped;
use serde_json::{Map, Value};

use super::{check, deploy, is_there, text, yaml};

const SERVERS: [&str; 6] = ["postgres", "redis", "kafka", "rabbitmq", "prometheus", "grafana"];

/// A compose file with its merge keys done.
fn compose(name: &str) -> Value {
    merged(yaml(&text(name)))
}

/// YAML's `<<`: what a mapping does not say itself.
fn merged(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut own: Map<String, Value> =
                map.into_iter().map(|(k, v)| (k, merged(v))).collect();
            if let Some(Value::Object(base)) = own.remove("<<") {
                for (key, value) in base {
                    own.entry(key).or_insert(value);
                }
            }
            Value::Object(own)
        }
        Value::Array(items) => items.into_iter().map(merged).collect(),
        other => other,
    }
}

fn services(file: &Value) -> &Map<String, Value> {
    file["services"].as_object().unwrap()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn ports_are_for_this_machine_only_and_data_is_kept() {
    for name in ["docker-compose.yml", "docker-compose.local.yml"] {
        let file = compose(name);
        let volumes = file["volumes"].as_object().unwrap();
        for (service, of) in services(&file) {
            let ports = strings(&of["ports"]);
            assert!(!ports.is_empty(), "{service}");
            assert!(
                ports.iter().all(|port| port.starts_with("127.0.0.1:")),
                "{service}: {ports:?}"
            );
            for mount in strings(&of["volumes"]) {
                let (from, _) = mount.split_once(':').unwrap();
                let is_known = match from.strip_prefix("./") {
                    Some(path) => deploy().join(path).exists() && mount.ends_with(":ro"),
                    None => volumes.contains_key(from),
                };
                assert!(is_known, "{service} mounts {mount}");
            }
        }
    }
}

#[test]
fn every_part_is_there_and_says_whether_it_is_well() {
    let file = compose("docker-compose.local.yml");
    let services = services(&file);
    for server in SERVERS {
        let of = &services[server];
        assert!(!strings(&of["healthcheck"]["test"]).is_empty(), "{server}");
        let image = of["image"].as_str().unwrap();
        assert!(image.contains(':') && !image.ends_with(":latest"), "{server} is {image}");
    }
    assert!(services["rabbitmq"]["image"].as_str().unwrap().ends_with("management"));
    assert_eq!(services["kafka"]["environment"]["KAFKA_PROCESS_ROLES"], "broker,controller");
    for (service, of) in services {
        for (needed, how) in of["depends_on"].as_object().into_iter().flatten() {
            assert!(services.contains_key(needed), "{service} needs {needed}");
            assert_eq!(how["condition"], "service_healthy", "{service} waits for {needed}");
        }
    }
}

#[test]
fn redis_keeps_what_it_accepts() {
    let file = compose("docker-compose.local.yml");
    let command = strings(&services(&file)["redis"]["command"]).join(" ");
    for needed in ["--appendonly yes", "--appendfsync always", "--maxmemory-policy noeviction"] {
        assert!(command.contains(needed), "{command}");
    }
}

#[test]
fn our_own_services_are_confined_and_have_time_to_stop() {
    for name in ["docker-compose.yml", "docker-compose.local.yml"] {
        let file = compose(name);
        let ours = services(&file).iter().filter(|(_, of)| of["image"] == "fetchwell");
        for (service, of) in ours {
            assert_eq!(of["read_only"], true, "{service}");
            assert_eq!(strings(&of["cap_drop"]), ["ALL"], "{service}");
            assert_eq!(of["stop_grace_period"], "40s", "{service}");
        }
    }
}

#[test]
fn every_setting_in_them_is_one_and_all_doors_share_one_pace() {
    let example = include_str!("../../../fetchwell.example.toml");
    let file = compose("docker-compose.local.yml");
    for (service, of) in services(&file) {
        for name in of["environment"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let Some(path) = name.strip_prefix("FETCHWELL_") else { continue };
            let path = path.to_lowercase();
            let key = path.rsplit("__").next().unwrap();
            assert!(example.contains(&format!("{key} = ")), "{service} sets {name}");
        }
        if of["image"] == "fetchwell" {
            assert_eq!(
                of["environment"]["FETCHWELL_POLITENESS"], "redis://redis:6379/0",
                "{service}"
            );
        }
    }
}

#[test]
fn docker_reads_them() {
    if !is_there("docker") {
        return;
    }
    let has_compose = std::process::Command::new("docker").args(["compose", "version"]).output();
    if !has_compose.is_ok_and(|ended| ended.status.success()) {
        skipped("this docker has no compose");
        return;
    }
    for name in ["docker-compose.yml", "docker-compose.local.yml"] {
        check(
            "env",
            &["FETCHWELL_CONTACT=a@b", "docker", "compose", "-f", name, "config", "--quiet"],
            &deploy(),
        );
    }
}
