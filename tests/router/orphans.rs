//! Volumes that nobody will ever use: told of, and removed only where that is asked for.

use std::time::Duration;

use quarry::cluster::vg_label;
use quarry::router::Pace;
use serde_json::json;

use super::api_server::{ApiServer, Fault};
use super::rig::{Node, Replica, Unused, patient, vg_uuid};
use crate::metrics::Scrape;

const UID: &str = "3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";
const CLAIMS: &str = "/api/v1/namespaces/prod/persistentvolumeclaims";

fn quick() -> Pace {
    Pace { orphans: Duration::from_millis(100), ..patient() }
}

/// The UID that the volumes of this cluster are marked with.
fn cluster(server: &ApiServer) -> String {
    let namespace = server.get("/api/v1/namespaces", "kube-system").unwrap();
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn unused(server: &ApiServer) -> Unused {
    Unused {
        id: format!("{}/pvc-{UID}", vg_uuid(1)),
        name: format!("pvc-{UID}"),
        claim: ("prod".to_owned(), "db".to_owned()),
        cluster: cluster(server),
    }
}

async fn start(server: &ApiServer, collect: bool) -> (Replica, Node) {
    let settings =
        |settings: &mut quarry::config::ControllerSettings| settings.collect_orphans = Some(collect);
    let replica = Replica::start_as("replica-1", server.cluster(), quick(), settings).await;
    let node = Node::start(server, "n1", 1, &[replica.address]);
    (replica, node)
}

/// Waits until orphans were looked for so often.
async fn rounds(node: &Node, count: usize) {
    let looks = async || node.stub.calls().iter().filter(|call| *call == "list unused").count();
    super::rig::until("rounds", looks, |looks| *looks >= count).await;
}

fn told(server: &ApiServer) -> Vec<(String, String)> {
    let mut events = server.events("n1");
    events.retain(|(reason, _)| reason.starts_with("Orphan"));
    events
}

fn removed(node: &Node) -> bool {
    node.stub.calls().iter().any(|call| call.starts_with("remove"))
}

#[tokio::test]
async fn an_orphan_is_told_of_and_left_alone() {
    let server = ApiServer::new();
    let (replica, node) = start(&server, false).await;
    let metric = async |name| Scrape::of(replica.health).await.value(name, &[]);
    super::rig::until("a node", async || metric("quarry_nodes_connected").await, |count| *count == 1.0).await;
    assert_eq!(metric("quarry_orphaned_volumes").await, 0.0);
    node.stub.unused(vec![unused(&server)]);
    let orphans = async || metric("quarry_orphaned_volumes").await;
    super::rig::until("it is counted", orphans, |count| *count == 1.0).await;
    server.until("an event", |server| !told(server).is_empty()).await;
    let (reason, note) = told(&server).remove(0);
    assert_eq!(reason, "OrphanedVolume");
    assert!(note.contains(&unused(&server).id) && note.contains("claim prod/db is gone"), "{note}");
    assert!(!removed(&node));
}

#[tokio::test]
async fn an_orphan_is_removed_where_that_is_asked_for() {
    let server = ApiServer::new();
    let (_replica, node) = start(&server, true).await;
    node.stub.unused(vec![unused(&server)]);
    server.until("an event", |server| !told(server).is_empty()).await;
    assert_eq!(told(&server)[0].0, "OrphanRemoved");
    assert!(removed(&node));
}

#[tokio::test]
async fn a_volume_whose_claim_still_waits_or_is_bound_to_it_is_no_orphan() {
    let server = ApiServer::new();
    let (_replica, node) = start(&server, true).await;
    // Still waiting.
    server.put(CLAIMS, json!({"metadata": {"name": "db", "uid": UID}, "spec": {}}));
    // Bound, though its claim is not to be found under that name.
    let bound = Unused {
        id: format!("{}/pvc-bound", vg_uuid(1)),
        claim: ("x".into(), "y".into()),
        ..unused(&server)
    };
    let csi = json!({"driver": "lvm.csi.quarry", "volumeHandle": bound.id});
    server.put("/api/v1/persistentvolumes", json!({"metadata": {"name": "restored"}, "spec": {"csi": csi}}));
    // Nobody told for which claim, or by a name that tells of none.
    let unknown = Unused { claim: Default::default(), ..unused(&server) };
    let named = Unused { name: "by-hand".into(), ..unused(&server) };
    node.stub.unused(vec![unused(&server), bound, unknown, named]);
    rounds(&node, 4).await;
    assert!(told(&server).is_empty() && !removed(&node), "{:?}", told(&server));
}

#[tokio::test]
async fn a_claim_that_was_made_anew_or_is_bound_elsewhere_makes_an_orphan() {
    for claim in [
        json!({"metadata": {"name": "db", "uid": "another"}, "spec": {}}),
        json!({"metadata": {"name": "db", "uid": UID}, "spec": {"volumeName": "pv-elsewhere"}}),
    ] {
        let server = ApiServer::new();
        let (_replica, node) = start(&server, false).await;
        server.put(CLAIMS, claim);
        node.stub.unused(vec![unused(&server)]);
        server.until("an event", |server| !told(server).is_empty()).await;
    }
}

#[tokio::test]
async fn a_volume_in_a_group_that_another_node_may_have_is_not_judged() {
    let server = ApiServer::new();
    server.put_node("n0", json!({ vg_label(&vg_uuid(1).parse().unwrap()): "true" }));
    let (_replica, node) = start(&server, true).await;
    node.stub.unused(vec![unused(&server)]);
    rounds(&node, 4).await;
    assert!(told(&server).is_empty() && !removed(&node), "{:?}", told(&server));
    // The other node is gone.
    server.delete("/api/v1/nodes", "n0");
    server.until("an event", |server| !told(server).is_empty()).await;
    assert!(removed(&node));
}

#[tokio::test]
async fn nothing_is_judged_before_the_nodes_are_listed() {
    let server = ApiServer::new();
    server.fault("GET", "/api/v1/nodes", Fault::Code(500));
    let (_replica, node) = start(&server, true).await;
    node.stub.unused(vec![unused(&server)]);
    rounds(&node, 4).await;
    assert!(told(&server).is_empty() && !removed(&node), "{:?}", told(&server));
    server.heal();
    server.until("an event", |server| !told(server).is_empty()).await;
    assert!(removed(&node));
}

#[tokio::test]
async fn a_volume_of_another_cluster_is_never_removed() {
    for other in ["", "another-cluster"] {
        let server = ApiServer::new();
        let (_replica, node) = start(&server, true).await;
        node.stub.unused(vec![Unused { cluster: other.into(), ..unused(&server) }]);
        server.until("an event", |server| !told(server).is_empty()).await;
        let (reason, note) = told(&server).remove(0);
        assert_eq!(reason, "OrphanedVolume");
        assert!(note.contains("not removed") && note.contains("cluster"), "{note}");
        assert!(!removed(&node));
    }
}

#[tokio::test]
async fn a_volume_with_a_persistent_volume_is_never_removed() {
    let server = ApiServer::new();
    let (_replica, node) = start(&server, true).await;
    // Of that name, with a handle that nobody would expect.
    let csi = json!({"driver": "lvm.csi.quarry", "volumeHandle": "strange"});
    let name = format!("pvc-{UID}");
    server.put("/api/v1/persistentvolumes", json!({"metadata": {"name": name}, "spec": {"csi": csi}}));
    node.stub.unused(vec![unused(&server)]);
    server.until("an event", |server| !told(server).is_empty()).await;
    assert!(told(&server)[0].1.contains("there is a PersistentVolume"));
    assert!(!removed(&node));
}

#[tokio::test]
async fn nothing_is_judged_by_half_an_answer_or_by_a_replica_that_does_not_lead() {
    let server = ApiServer::new();
    server.fault("GET", "/api/v1/persistentvolumes", Fault::Code(500));
    let (_leader, node) = start(&server, true).await;
    node.stub.unused(vec![unused(&server)]);
    rounds(&node, 4).await;
    assert!(told(&server).is_empty() && !removed(&node));
    let server = ApiServer::new();
    server.fault("", "leases", Fault::Code(403));
    let (replica, node) = start(&server, true).await;
    node.stub.unused(vec![unused(&server)]);
    let room = async || replica.maximum(Some(super::rig::at_node("n1"))).await.ok();
    super::rig::until("it is linked", room, Option::is_some).await;
    // It records its links as often as it would look.
    let looks = server.asked_for("", "leases") + 10;
    server.until("time has passed", |server| server.asked_for("", "leases") > looks).await;
    assert!(node.stub.calls().is_empty());
}
