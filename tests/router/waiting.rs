//! Claims that wait for ever: people are told why.

use std::time::Duration;

use quarry::router::Pace;
use serde_json::{Value, json};

use super::api_server::{ApiServer, Fault};
use super::rig::{Node, Replica, hasty, patient, vg_uuid};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const CLAIMS: &str = "/api/v1/namespaces/prod/persistentvolumeclaims";
const PODS: &str = "/api/v1/namespaces/prod/pods";

async fn start(server: &ApiServer) -> Replica {
    let pace = Pace { waiting: Duration::from_millis(100), ..patient() };
    Replica::start(server, pace).await
}

fn class(server: &ApiServer, name: &str, provisioner: &str, topologies: &Value) {
    server.put(
        CLASSES,
        json!({
            "metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies,
        }),
    );
}

fn key(key: &str) -> Value {
    json!([{"matchLabelExpressions": [{"key": key, "values": ["x"]}]}])
}

fn claim(server: &ApiServer, name: &str, class: &str) {
    server.put(
        CLAIMS,
        json!({
            "metadata": {"name": name, "namespace": "prod"},
            "spec": {"storageClassName": class}, "status": {"phase": "Pending"},
        }),
    );
}

/// A pod that uses the claim, and that somebody gave this node.
fn pod(server: &ApiServer, name: &str, node: &str, claim: &str) {
    let claim = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    server.put(
        PODS,
        json!({
            "metadata": {"name": name, "namespace": "prod"},
            "spec": {"nodeName": node, "containers": [], "volumes": claim}, "status": {"phase": "Pending"},
        }),
    );
}

async fn told(server: &ApiServer, claim: &str) -> (String, String) {
    server.until("an event on the claim", |server| !server.events(claim).is_empty()).await;
    server.events(claim).remove(0)
}

/// Waits until the claims were looked into some more times.
async fn rounds(server: &ApiServer) {
    let looks = |server: &ApiServer| server.asked_for("GET", "/storageclasses/marker");
    if server.get(CLASSES, "marker").is_none() {
        class(server, "marker", "another.driver", &Value::Null);
        claim(server, "marker", "marker");
    }
    let enough = looks(server) + 3;
    server.until("rounds", |server| looks(server) >= enough).await;
}

#[tokio::test]
async fn a_pod_that_names_its_node_is_why_its_claim_waits() {
    let server = ApiServer::new();
    class(&server, "fast", "lvm.csi.quarry", &Value::Null);
    let _replica = start(&server).await;
    claim(&server, "db", "fast");
    claim(&server, "unused", "fast");
    pod(&server, "by-scheduler", "", "unused");
    pod(&server, "by-hand", "n1", "db");
    let (reason, note) = told(&server, "db").await;
    assert_eq!(reason, "PodBypassesScheduler");
    assert!(note.contains("pod by-hand") && note.contains("n1") && note.contains("nodeSelector"), "{note}");
    let event = &server.list("/apis/events.k8s.io/v1/namespaces/prod/events")[0];
    let uid = server.get(CLAIMS, "db").unwrap()["metadata"]["uid"].clone();
    assert_eq!((&event["regarding"]["uid"], &event["type"]), (&uid, &json!("Warning")));
    // A claim that Kubernetes makes for the pod.
    claim(&server, "by-hand-scratch", "fast");
    let volumes = json!([{"name": "scratch", "ephemeral": {}}]);
    server.put(
        PODS,
        json!({
            "metadata": {"name": "by-hand", "namespace": "prod"},
            "spec": {"nodeName": "n1", "containers": [], "volumes": volumes}, "status": {"phase": "Pending"},
        }),
    );
    assert_eq!(told(&server, "by-hand-scratch").await.0, "PodBypassesScheduler");
    rounds(&server).await;
    assert!(server.events("unused").is_empty(), "its pod waits for the scheduler");
    assert_eq!(server.events("db").len(), 1, "it is not repeated");
}

#[tokio::test]
async fn a_class_that_chooses_places_by_a_key_that_no_node_has_is_named() {
    let server = ApiServer::new();
    class(&server, "zonal", "lvm.csi.quarry", &key("topology.kubernetes.io/zone"));
    class(&server, "pinned", "lvm.csi.quarry", &key("lvm.csi.quarry/node"));
    let _replica = start(&server).await;
    claim(&server, "db", "zonal");
    claim(&server, "web", "pinned");
    let (reason, note) = told(&server, "db").await;
    assert_eq!(reason, "TopologyKeyUnknown");
    for word in ["StorageClass zonal", "topology.kubernetes.io/zone", "lvm.csi.quarry/node"] {
        assert!(note.contains(word), "{word} is not in: {note}");
    }
    rounds(&server).await;
    assert!(server.events("web").is_empty());
}

#[tokio::test]
async fn a_class_that_names_a_group_that_is_nowhere_is_named() {
    let server = ApiServer::new();
    let pace = Pace { waiting: Duration::from_millis(100), ..hasty() };
    let replica = Replica::start(&server, pace).await;
    let classes = [("there", "vg0"), ("nowhere", "vg9"), ("senseless", "-x"), ("newer", "vg9")];
    for (name, vg) in classes {
        class(&server, name, "lvm.csi.quarry", &Value::Null);
        let mut object = server.get(CLASSES, name).unwrap();
        object["parameters"] = json!({"volumeGroup": vg});
        if name == "newer" {
            // Only newer nodes know it.
            object["parameters"]["invented"] = json!("later");
        }
        server.put(CLASSES, object);
        claim(&server, name, name);
    }
    rounds(&server).await;
    assert!(server.events("nowhere").is_empty(), "no node is connected");
    let _node = Node::start(&server, "n1", 1, &[replica.address]);
    let (reason, note) = told(&server, "nowhere").await;
    assert_eq!(reason, "VolumeGroupUnknown");
    assert!(
        note.contains("StorageClass nowhere names volume group vg9") && note.ends_with("There are: vg0"),
        "{note}"
    );
    assert_eq!(told(&server, "newer").await.0, "VolumeGroupUnknown");
    rounds(&server).await;
    assert!(server.events("there").is_empty() && server.events("senseless").is_empty());
    // A node that has groups, and nobody knows their names.
    server.put_node("n2", json!({(format!("vg.lvm.csi.quarry/{}", vg_uuid(2))): "true"}));
    claim(&server, "later", "nowhere");
    rounds(&server).await;
    assert!(server.events("later").is_empty(), "a node is away");
    server.delete("/api/v1/nodes", "n2");
    told(&server, "later").await;
}

#[tokio::test]
async fn claims_that_are_bound_on_their_way_or_somebody_elses_are_left_alone() {
    let server = ApiServer::new();
    class(&server, "fast", "lvm.csi.quarry", &Value::Null);
    class(&server, "theirs", "another.driver", &key("topology.kubernetes.io/zone"));
    let _replica = start(&server).await;
    claim(&server, "theirs", "theirs");
    for (name, change) in [
        ("bound", json!({"spec": {"volumeName": "pv"}})),
        ("on-its-way", json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}})),
        ("going", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        ("lost", json!({"status": {"phase": "Lost"}})),
    ] {
        claim(&server, name, "fast");
        let mut object = server.get(CLAIMS, name).unwrap();
        for (part, values) in change.as_object().unwrap() {
            for (key, value) in values.as_object().unwrap() {
                object[part][key] = value.clone();
            }
        }
        server.put(CLAIMS, object);
        pod(&server, &format!("pod-{name}"), "n1", name);
    }
    rounds(&server).await;
    for name in ["bound", "on-its-way", "going", "lost", "theirs"] {
        assert!(server.events(name).is_empty(), "{name}: {:?}", server.events(name));
    }
}

#[tokio::test]
async fn a_replica_that_does_not_lead_does_not_look() {
    let server = ApiServer::new();
    server.fault("", "leases", Fault::Code(403));
    class(&server, "zonal", "lvm.csi.quarry", &key("zone"));
    claim(&server, "db", "zonal");
    let _replica = start(&server).await;
    // It records its links as often as it would look.
    server.until("time has passed", |server| server.asked_for("", "leases") > 10).await;
    assert_eq!(server.asked_for("GET", "persistentvolumeclaims"), 0);
    server.heal();
    told(&server, "db").await;
}
