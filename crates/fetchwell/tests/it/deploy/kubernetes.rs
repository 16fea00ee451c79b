//! The manifests: that they belong together, and that a fault in the program does not lead far.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fetchwell_policy::address::is_public;
use ipnet::IpNet;
use serde_json::Value;

use super::{text, yaml};

/// Each object by its kind.
fn manifests() -> BTreeMap<String, Value> {
    let text = text("kubernetes/fetchwell.yaml");
    let objects = text.split("\n---\n").map(yaml);
    objects.map(|object| (object["kind"].as_str().unwrap().to_owned(), object)).collect()
}

#[test]
fn all_objects_are_there_and_mean_the_same_pods() {
    let all = manifests();
    for (kind, version) in [
        ("ServiceAccount", "v1"),
        ("ConfigMap", "v1"),
        ("Deployment", "apps/v1"),
        ("Service", "v1"),
        ("HorizontalPodAutoscaler", "autoscaling/v2"),
        ("PodDisruptionBudget", "policy/v1"),
        ("NetworkPolicy", "networking.k8s.io/v1"),
    ] {
        let object = all.get(kind).unwrap_or_else(|| panic!("no {kind}"));
        assert_eq!(object["apiVersion"], version, "{kind}");
        assert_eq!(object["metadata"]["name"], "fetchwell", "{kind}");
    }
    let deployment = &all["Deployment"]["spec"];
    let labels = &deployment["template"]["metadata"]["labels"];
    for selector in [
        &deployment["selector"]["matchLabels"],
        &all["Service"]["spec"]["selector"],
        &all["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        &all["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    assert!(deployment.get("replicas").is_none(), "the autoscaler says how many");
    let least = all["HorizontalPodAutoscaler"]["spec"]["minReplicas"].as_i64().unwrap();
    let kept = all["PodDisruptionBudget"]["spec"]["minAvailable"].as_i64().unwrap();
    assert!(kept < least, "or no node could ever be drained");
}

#[test]
fn the_pod_is_confined_probed_and_has_its_secret() {
    let deployment = &manifests()["Deployment"];
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert!(pod["terminationGracePeriodSeconds"].as_i64().unwrap() > 25, "shutdown_grace");
    let store = &container["env"][0];
    assert_eq!(store["name"], "FETCHWELL_STORE");
    assert_eq!(store["valueFrom"]["secretKeyRef"]["name"], "fetchwell");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let volumes = pod["volumes"].as_array().unwrap();
    for mount in mounts {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }
    assert!(!container["image"].as_str().unwrap().ends_with(":latest"));
}

#[test]
fn no_private_address_can_be_reached_by_the_way_of_the_web() {
    let policy = &manifests()["NetworkPolicy"]["spec"];
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    let web = policy["egress"][0]["to"].as_array().unwrap();
    let net = |value: &Value| value.as_str().unwrap().parse::<IpNet>().unwrap();
    let lets_through = |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        web.iter().map(|to| &to["ipBlock"]).any(|block| {
            let except = block["except"].as_array().into_iter().flatten();
            net(&block["cidr"]).contains(&address) && !except.map(net).any(|n| n.contains(&address))
        })
    };
    for private in [
        "10.1.2.3",
        "127.0.0.1",
        "169.254.169.254",
        "172.20.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "::1",
        "fd00::1",
        "fe80::1",
    ] {
        assert!(!is_public(private.parse().unwrap()), "{private}");
        assert!(!lets_through(private), "{private}");
    }
    for public in ["93.184.216.34", "1.1.1.1", "2606:4700::1111"] {
        assert!(lets_through(public), "{public}");
    }
}
