//! What holds for the objects at large.

use serde_json::{Value, json};

use super::{container, list, manifests, object, objects, pod, tools};

#[test]
fn the_csi_driver_object_says_what_kubernetes_may_count_on() {
    let all = manifests();
    let spec = &object(&all, "CSIDriver", quarry::csi::DRIVER_NAME)["spec"];
    let expected = json!({
        "attachRequired": false,
        "podInfoOnMount": false,
        "requiresRepublish": false,
        "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": true,
        "fsGroupPolicy": "File",
        "seLinuxMount": true,
    });
    assert_eq!(*spec, expected);
}

/// A webhook or an extender would make pods and claims wait for the driver.
#[test]
fn nothing_of_the_driver_s_stands_between_kubernetes_and_its_pods() {
    let all = manifests();
    let kinds: Vec<&str> = all.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"CSIDriver") && kinds.contains(&"DaemonSet"), "{kinds:?}");
    let strange =
        |kind: &&&str| ["Webhook", "CustomResource", "APIService"].iter().any(|word| kind.contains(word));
    assert_eq!(kinds.iter().find(strange), None);
    // The one policy that is there is about the driver's own account, and is the API server's work.
    let policies: Vec<_> =
        all.iter().filter(|object| object["kind"] == "ValidatingAdmissionPolicy").collect();
    assert_eq!(policies.len(), 1);
    let condition = policies[0]["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
    assert!(condition.contains("system:serviceaccount:quarry-system:quarry-controller"), "{condition}");
}

#[test]
fn objects_that_the_driver_fills_are_empty_and_stay_what_it_made_of_them() {
    let all = manifests();
    for (kind, name) in [("Secret", "quarry-ca"), ("ConfigMap", "quarry-ca"), ("ConfigMap", "quarry-lost")] {
        let object = object(&all, kind, name);
        assert!(object.get("data").is_none() && object.get("stringData").is_none(), "{object}");
    }
}

#[test]
fn the_namespace_lets_privileged_pods_in() {
    let all = manifests();
    let labels = &object(&all, "Namespace", "quarry-system")["metadata"]["labels"];
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(labels[format!("pod-security.kubernetes.io/{mode}")], "privileged");
    }
}

#[test]
fn every_object_has_the_driver_s_name_and_no_second_place() {
    for object in manifests() {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["app.kubernetes.io/name"], "quarry", "{object}");
        let namespace = &metadata["namespace"];
        assert!(namespace.is_null() || namespace == "quarry-system", "{object}");
        let name = metadata["name"].as_str().unwrap();
        let ours = name.starts_with("quarry-") || name == quarry::csi::DRIVER_NAME;
        assert!(ours, "{name} may be somebody else's name");
    }
}

/// Pods of both kinds hear each other, and nobody else.
#[test]
fn the_network_policies_let_nodes_reach_controllers_and_nobody_else() {
    let all = manifests();
    let peer = |name: &str| json!({"matchLabels": labels(&all, name)});
    let controller = &object(&all, "NetworkPolicy", "quarry-controller")["spec"];
    assert_eq!(controller["podSelector"], peer("controller"));
    let ingress = json!([{"from": [{"podSelector": peer("node")}], "ports": [{"port": "link"}]}]);
    assert_eq!(controller["ingress"], ingress);
    let node = &object(&all, "NetworkPolicy", "quarry-node")["spec"];
    assert_eq!(node["podSelector"], peer("node"));
    assert_eq!((&node["ingress"], &node["policyTypes"]), (&json!([]), &json!(["Ingress", "Egress"])));
    assert_eq!(node["egress"][0]["to"], json!([{"podSelector": peer("controller")}]));
    assert_eq!(list(&node["egress"]).len(), 2);
}

#[test]
fn those_who_are_named_may_read_metrics_and_nothing_else() {
    let who = json!({"namespaceSelector": {"matchLabels": {"team": "monitoring"}}});
    let set = format!("networkPolicy.scrapers=[{who}]");
    let all = objects(&tools::rendered(&["--set-json", &set]));
    let rule = json!({"from": [who], "ports": [{"port": "health"}]});
    let node = &object(&all, "NetworkPolicy", "quarry-node")["spec"];
    assert_eq!(node["ingress"], json!([rule]));
    let controller = &object(&all, "NetworkPolicy", "quarry-controller")["spec"];
    let ingress = json!([{"from": [{"podSelector": {"matchLabels": labels(&all, "node")}}], "ports": [{"port": "link"}]}, rule]);
    assert_eq!(controller["ingress"], ingress);
    for (kind, name) in [("DaemonSet", "quarry-node"), ("Deployment", "quarry-controller")] {
        let ports = list(&container(object(&all, kind, name), "quarry")["ports"]);
        assert!(ports.iter().any(|port| port["name"] == "health"), "{kind}");
    }
}

fn labels(all: &[Value], component: &str) -> Value {
    let kind = if component == "node" { "DaemonSet" } else { "Deployment" };
    let workload = object(all, kind, &format!("quarry-{component}"));
    let selector = workload["spec"]["selector"]["matchLabels"].clone();
    let of_pods = &workload["spec"]["template"]["metadata"]["labels"];
    for (key, value) in selector.as_object().unwrap() {
        assert_eq!(of_pods[key], *value);
    }
    selector
}

#[test]
fn priorities_are_those_of_system_components() {
    let all = manifests();
    let class = |kind, name| pod(object(&all, kind, name))["priorityClassName"].clone();
    assert_eq!(class("DaemonSet", "quarry-node"), "system-node-critical");
    assert_eq!(class("Deployment", "quarry-controller"), "system-cluster-critical");
}
