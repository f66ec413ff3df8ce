//! Volume groups that will not come back: how they are declared lost, and what comes of it.

use std::process::Output;

use quarry::router::Pace;
use serde_json::json;
use tonic::Code;

use super::api_server::ApiServer;
use super::process::kubeconfig;
use super::rig::{BOUND, MIB, Node, Replica, at_node, hasty, linked, patient, refused, until, vg_uuid};

const CLAIM: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";

fn id(vg: u32) -> String {
    format!("{}/{CLAIM}", vg_uuid(vg))
}

#[tokio::test]
async fn volumes_of_a_group_that_is_declared_lost_can_be_deleted() {
    let server = ApiServer::new();
    server.declare_lost(&[&vg_uuid(1)]);
    let new = Replica::start_as("new", server.cluster(), patient(), |_| {}).await;
    refused(new.delete(&id(1)).await, Code::Unavailable, "no connected node");
    let replica = Replica::start_as("replica-1", server.cluster(), hasty(), |_| {}).await;
    until("it is new no more", async || replica.delete(&id(1)).await.err(), Option::is_none).await;
    server.until("an event", |server| !server.events(CLAIM).is_empty()).await;
    let (reason, note) = server.events(CLAIM).remove(0);
    assert_eq!(reason, "VolumeGroupLost");
    assert!(note.contains(&id(1)) && note.contains("nothing was deleted"), "{note}");
    refused(replica.expand(&id(1), MIB).await, Code::Unavailable, "no connected node");
    refused(replica.delete(&id(2)).await, Code::Unavailable, "no connected node");
    // Without a restart.
    server.declare_lost(&[&vg_uuid(2)]);
    replica.delete(&id(2)).await.unwrap();
    refused(replica.delete(&id(1)).await, Code::Unavailable, "no connected node");
}

#[tokio::test]
async fn a_group_that_comes_back_is_lost_no_more() {
    let server = ApiServer::new();
    server.declare_lost(&[&vg_uuid(1), &vg_uuid(2)]);
    let replica = Replica::start(&server, hasty()).await;
    until("it is new no more", async || replica.delete(&id(1)).await.err(), Option::is_none).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    replica.delete(&id(1)).await.unwrap();
    assert_eq!(node.stub.calls(), [format!("delete {}", id(1))]);
    server.until("it is off the list", |server| server.declared_lost() == [vg_uuid(2)]).await;
    // What has come back once may do so again.
    node.stop().await;
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("gone", room, |room| *room == Some(0)).await;
    refused(replica.delete(&id(1)).await, Code::Unavailable, "no connected node");
}

#[tokio::test]
async fn nothing_counts_as_deleted_while_the_list_cannot_be_read() {
    let server = ApiServer::new();
    server.declare_lost(&[&vg_uuid(1)]);
    let replica = Replica::start(&server, hasty()).await;
    until("it is new no more", async || replica.delete(&id(1)).await.err(), Option::is_none).await;
    server.fault("GET", "quarry-lost", super::api_server::Fault::Code(500));
    refused(replica.delete(&id(1)).await, Code::Unavailable, "whether its volume group is lost is not known");
    server.heal();
    replica.delete(&id(1)).await.unwrap();
}

#[tokio::test]
async fn a_group_that_one_replica_alone_sees_again_is_lost_no_more_for_any() {
    let server = ApiServer::new();
    server.declare_lost(&[&vg_uuid(1)]);
    let leader = Replica::start_as("replica-1", server.cluster(), hasty(), |_| {}).await;
    let other = Replica::start_as("replica-2", server.cluster(), hasty(), |_| {}).await;
    until("it is new no more", async || leader.delete(&id(1)).await.err(), Option::is_none).await;
    let _node = Node::start(&server, "n1", 1, &[other.address]);
    linked(&other, "n1").await;
    server.until("it is off the list", |server| server.declared_lost().is_empty()).await;
    refused(leader.delete(&id(1)).await, Code::Unavailable, "no connected node");
}

#[tokio::test]
async fn a_group_that_was_seen_while_the_list_could_not_be_read_is_lost_no_more() {
    let server = ApiServer::new();
    server.declare_lost(&[&vg_uuid(1)]);
    let replica = Replica::start(&server, Pace { away: BOUND, ..hasty() }).await;
    server.until("the list is read", |server| server.asked_for("GET", "quarry-lost") > 0).await;
    server.fault("GET", "quarry-lost", super::api_server::Fault::Code(500));
    let _node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    let asked = server.asked_for("GET", "quarry-lost");
    server.until("it is asked again", |server| server.asked_for("GET", "quarry-lost") > asked + 1).await;
    server.heal();
    server.until("it is off the list", |server| server.declared_lost().is_empty()).await;
}

/// `quarry lost` with these arguments, as in the controller's pod.
async fn quarry_lost(server: &ApiServer, arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    kubeconfig(dir.path(), &format!("http://{}", server.listen().await));
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_quarry"));
    command.arg("lost").args(arguments).env_clear();
    command.env("POD_NAMESPACE", "quarry").env("KUBECONFIG", dir.path().join("kubeconfig"));
    command.output().await.unwrap()
}

/// What it prints where it succeeds.
async fn told(server: &ApiServer, arguments: &[&str]) -> String {
    let output = quarry_lost(server, arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A node that is ready or not, with the label of a group.
fn put_node(server: &ApiServer, name: &str, ready: &str, vg: u32) {
    let labels = json!({(format!("vg.lvm.csi.quarry/{}", vg_uuid(vg))): "true"});
    let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
    server.put("/api/v1/nodes", json!({"metadata": {"name": name, "labels": labels}, "status": status}));
}

fn put_volume(server: &ApiServer, vg: u32, name: &str) {
    let csi = json!({"driver": "lvm.csi.quarry", "volumeHandle": format!("{}/{name}", vg_uuid(vg))});
    let claim = json!({"namespace": "prod", "name": format!("of-{name}")});
    let spec = json!({"csi": csi, "claimRef": claim, "capacity": {"storage": "10Gi"}});
    server.put("/api/v1/persistentvolumes", json!({"metadata": {"name": name}, "spec": spec}));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_groups_are_told_and_one_is_declared_lost_and_that_is_taken_back() {
    let server = ApiServer::new();
    let nothing = told(&server, &[]).await;
    assert_eq!(nothing, "No volume group is missing, and none is declared lost.\n");
    put_node(&server, "n1", "True", 1);
    put_node(&server, "n2", "Unknown", 2);
    put_volume(&server, 1, "pvc-1");
    put_volume(&server, 2, "pvc-2");
    let list = told(&server, &[]).await;
    let line = format!("{}  n2    its node is not ready  1        prod/of-pvc-2\n", vg_uuid(2));
    assert!(list.contains(&line) && !list.contains(&vg_uuid(1)), "{list}");

    let refused = quarry_lost(&server, &["--declare", &vg_uuid(1)]).await;
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && why.contains("is on node n1, which is ready"), "{why}");
    let refused = quarry_lost(&server, &["--declare", &vg_uuid(3)]).await;
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && why.contains("no PersistentVolume"), "{why}");
    assert!(server.declared_lost().is_empty());

    let means = told(&server, &["--declare", &vg_uuid(2)]).await;
    assert!(means.contains("pvc-2   10Gi  prod/of-pvc-2\n"), "{means}");
    assert_eq!(server.declared_lost(), [vg_uuid(2)]);
    assert!(told(&server, &[]).await.contains("lost (declared 2"));
    assert!(told(&server, &["--withdraw", &vg_uuid(2)]).await.contains("not declared lost any more"));
    assert!(told(&server, &["--withdraw", &vg_uuid(2)]).await.contains("was not declared lost"));
    assert!(server.declared_lost().is_empty());
}
