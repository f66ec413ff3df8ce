//! What the controller asks of the API server, all of it: the chart permits this and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use quarry::router::Pace;
use serde_json::json;

use super::api_server::{ApiServer, Asked};
use super::rig::{MIB, Node, Replica, Unused, at_node, create, hasty, until, vg_uuid};

/// Verb, and collection or object. The namespace `quarry` stands for the driver's own.
pub(crate) const PERMITTED: [&str; 24] = [
    "list /api/v1/nodes",
    "watch /api/v1/nodes",
    "patch /api/v1/nodes/*",
    "get /api/v1/persistentvolumes/*",
    "list /api/v1/persistentvolumes",
    "get /api/v1/namespaces/*/persistentvolumeclaims/*",
    "list /api/v1/persistentvolumeclaims",
    "watch /api/v1/persistentvolumeclaims",
    "list /api/v1/namespaces/*/pods",
    "get /apis/storage.k8s.io/v1/storageclasses/*",
    "get /api/v1/namespaces/kube-system",
    "create /apis/authentication.k8s.io/v1/tokenreviews",
    "create /apis/events.k8s.io/v1/namespaces/*/events",
    "get /apis/coordination.k8s.io/v1/namespaces/quarry/leases/*",
    "list /apis/coordination.k8s.io/v1/namespaces/quarry/leases",
    "create /apis/coordination.k8s.io/v1/namespaces/quarry/leases",
    "update /apis/coordination.k8s.io/v1/namespaces/quarry/leases/*",
    "delete /apis/coordination.k8s.io/v1/namespaces/quarry/leases/*",
    "get /api/v1/namespaces/quarry/secrets/quarry-ca",
    "update /api/v1/namespaces/quarry/secrets/quarry-ca",
    "get /api/v1/namespaces/quarry/configmaps/quarry-ca",
    "update /api/v1/namespaces/quarry/configmaps/quarry-ca",
    "get /api/v1/namespaces/quarry/configmaps/quarry-lost",
    "patch /api/v1/namespaces/quarry/configmaps/quarry-lost",
];

/// The permission that a request needs.
fn needed(asked: &Asked) -> String {
    let permits = |pattern: &str| {
        let (pattern, path) = (pattern.split('/'), asked.path.split('/'));
        pattern.clone().count() == path.clone().count() && pattern.zip(path).all(|(p, w)| p == "*" || p == w)
    };
    let mut patterns = PERMITTED.iter().map(|line| line.split_once(' ').unwrap().1);
    let pattern = patterns.find(|pattern| permits(pattern)).unwrap_or(&asked.path);
    let single = ["/*", "quarry-ca", "quarry-lost", "kube-system"].iter().any(|end| pattern.ends_with(end));
    let verb = match (asked.method.as_str(), single) {
        ("GET", true) => "get",
        ("GET", false) if asked.watch => "watch",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        (other, _) => panic!("{other}"),
    };
    format!("{verb} {pattern}")
}

#[tokio::test]
async fn nothing_is_asked_of_the_api_server_but_what_the_chart_permits_and_all_of_that() {
    let server = ApiServer::new();
    let often = Duration::from_millis(100);
    let pace = Pace { orphans: often, waiting: often, ..hasty() };
    let settings = |settings: &mut quarry::config::ControllerSettings| {
        settings.collect_orphans = Some(true);
    };
    server.declare_lost(&[&vg_uuid(9), &vg_uuid(1)]);
    let replica = Replica::start_as("replica-1", server.cluster(), pace, settings).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("it is linked", room, |room| *room == Some(64 * MIB)).await;
    replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
    let cluster = server.get("/api/v1/namespaces", "kube-system").unwrap()["metadata"]["uid"].clone();
    let name = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
    n1.stub.unused(vec![Unused {
        id: format!("{}/{name}", vg_uuid(1)),
        name: name.into(),
        claim: ("prod".into(), "db".into()),
        cluster: cluster.as_str().unwrap().into(),
    }]);
    server.put(
        "/apis/storage.k8s.io/v1/storageclasses",
        json!({
            "metadata": {"name": "fast"},
            "provisioner": "lvm.csi.quarry", "volumeBindingMode": "WaitForFirstConsumer",
        }),
    );
    server.put(
        "/api/v1/namespaces/test/persistentvolumeclaims",
        json!({"metadata": {"name": "db", "namespace": "test"}, "spec": {"storageClassName": "fast"}}),
    );
    server.until("pods are looked at", |server| server.asked_for("GET", "/pods") > 0).await;
    server.until("an orphan is collected", |server| !server.events("n1").is_empty()).await;
    until(
        "a lost group",
        async || replica.delete(&format!("{}/pvc-9", vg_uuid(9))).await.ok(),
        Option::is_some,
    )
    .await;
    n1.stop().await;
    let _n2 = Node::start(&server, "n2", 1, &[replica.address]);
    server
        .until("the label moves", |server| server.labels("n1").is_empty() && !server.labels("n2").is_empty())
        .await;
    replica.stop().await;
    let asked: BTreeSet<String> = server.asked().iter().map(needed).collect();
    let permitted: BTreeSet<String> = PERMITTED.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(asked, permitted);
}
