//! Where groups are: labels, groups that move, and groups that are shown twice.

use std::time::Duration;

use quarry::cluster::{LinkRecord, vg_label};
use serde_json::json;
use tonic::Code;

use super::api_server::{ApiServer, Fault, token};
use super::rig::{MIB, Node, Replica, Stub, at_node, create, hasty, patient, refused, until, vg_uuid};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/quarry/leases";
const HOUR: Duration = Duration::from_secs(3600);

fn label(vg: u32) -> String {
    vg_label(&vg_uuid(vg).parse().unwrap())
}

/// The nodes that a replica has recorded links to; `None` where there is no record.
fn links(server: &ApiServer, replica: &str) -> Option<LinkRecord> {
    let lease = server.get(LEASES, &format!("{replica}.links"))?;
    Some(lease["metadata"]["annotations"]["lvm.csi.quarry/links"].as_str().unwrap().parse().unwrap())
}

fn record(nodes: &[&str]) -> Option<LinkRecord> {
    Some(LinkRecord::of(nodes.iter().copied()))
}

/// Also a node that has no room for anything.
async fn linked(server: &ApiServer, replica: &Replica, node: &str) {
    let recorded =
        |server: &ApiServer| links(server, &replica.name).is_some_and(|links| links.contains(node));
    server.until("the link is recorded", recorded).await;
    let room = async || replica.maximum(Some(at_node(node))).await.ok();
    until("its state is known", room, Option::is_some).await;
}

async fn labelled(server: &ApiServer, node: &str, vg: u32) {
    server.until("the label", |server| server.labels(node) == [label(vg)]).await;
}

#[tokio::test]
async fn the_leader_labels_nodes_with_the_groups_that_they_show() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    // A node that is registered anew has lost its label, and gets it back.
    server.delete("/api/v1/nodes", "n1");
    server.put_node("n1", json!({}));
    labelled(&server, "n1", 1).await;
    node.stop().await;
    let gone = async || replica.maximum(Some(at_node("n1"))).await.err().map(|status| status.code());
    until("it is away", gone, |code| *code == Some(Code::Unavailable)).await;
    server.put_node("n2", json!({}));
    assert_eq!(server.labels("n1"), [label(1)], "a node that is away keeps its label");
}

#[tokio::test]
async fn a_group_that_shows_up_on_another_node_takes_its_label_along() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    n1.stop().await;
    let _n2 = Node::start(&server, "n2", 1, &[replica.address]);
    labelled(&server, "n2", 1).await;
    assert!(server.labels("n1").is_empty());
    server
        .until("an event on both", |server| {
            !server.events("n1").is_empty() && !server.events("n2").is_empty()
        })
        .await;
    assert_eq!(server.events("n2")[0].0, "VolumeGroupMoved");
    replica.create(create("pvc-1", 8, Some("n2"))).await.unwrap();
}

#[tokio::test]
async fn disks_that_move_between_living_nodes_take_the_label_along() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    labelled(&server, "n1", 1).await;
    labelled(&server, "n2", 2).await;
    n1.stub.groups(|groups| groups.clear());
    n2.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(1), "moved", 64)));
    server.until("both labels", |server| server.labels("n2") == [label(1), label(2)]).await;
    assert!(server.labels("n1").is_empty());
}

#[tokio::test]
async fn nothing_is_made_while_another_node_may_still_have_the_group() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    n1.stop().await;
    let n2 = Node::start(&server, "n2", 1, &[replica.address]);
    linked(&server, &replica, "n2").await;
    refused(replica.create(create("pvc-1", 8, Some("n2"))).await, Code::Unavailable, "still on node n1");
    assert_eq!(replica.maximum(Some(at_node("n2"))).await.unwrap(), 0);
    assert!(n2.stub.calls().is_empty());
    assert_eq!((server.labels("n1"), server.labels("n2")), (vec![label(1)], vec![]));
}

#[tokio::test]
async fn a_volume_is_changed_only_where_the_label_of_its_group_is() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    let volume = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap().volume_id;
    // It is away for a moment, while a copy of its disk is shown.
    n1.stop().await;
    let n2 = Node::start(&server, "n2", 1, &[replica.address]);
    linked(&server, &replica, "n2").await;
    refused(replica.delete(&volume).await, Code::Unavailable, "still on node n1: it moves once");
    refused(replica.expand(&volume, 16 * MIB).await, Code::Unavailable, "still on node n1: it moves once");
    assert!(n2.stub.calls().is_empty(), "{:?}", n2.stub.calls());
    // Somebody who knows better takes the label away.
    server.put_node("n1", json!({}));
    labelled(&server, "n2", 1).await;
    until("its label is there", async || replica.expand(&volume, 16 * MIB).await.ok(), Option::is_some).await;
    replica.delete(&volume).await.unwrap();
    assert_eq!(n2.stub.calls(), [format!("expand {volume}"), format!("delete {volume}")]);
}

#[tokio::test]
async fn a_volume_whose_disks_moved_is_changed_once_the_label_has_moved_too() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    let volume = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap().volume_id;
    n1.stop().await;
    let n2 = Node::start(&server, "n2", 1, &[replica.address]);
    until("it is gone", async || replica.delete(&volume).await.err(), Option::is_none).await;
    assert_eq!((server.labels("n1"), server.labels("n2")), (vec![], vec![label(1)]));
    assert_eq!(n2.stub.calls(), [format!("delete {volume}")]);
}

#[tokio::test]
async fn no_volume_is_changed_before_the_nodes_are_listed() {
    let server = ApiServer::new();
    server.fault("GET", "/api/v1/nodes", Fault::Code(500));
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&server, &replica, "n1").await;
    let volume = format!("{}/pvc-1", vg_uuid(1));
    refused(replica.delete(&volume).await, Code::Unavailable, "has not been told the nodes");
    refused(replica.expand(&volume, 16 * MIB).await, Code::Unavailable, "has not been told the nodes");
    assert!(node.stub.calls().is_empty(), "{:?}", node.stub.calls());
    server.heal();
    until("they are listed", async || replica.delete(&volume).await.ok(), Option::is_some).await;
    replica.expand(&volume, 16 * MIB).await.unwrap();
}

#[tokio::test]
async fn nothing_new_is_made_in_a_group_that_two_nodes_show() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let _n1 = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    let volume = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
    let n2 = Node::start(&server, "n2", 1, &[replica.address]);
    n2.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(2), "other", 64)));
    linked(&server, &replica, "n2").await;
    server.until("events", |server| !server.events("n1").is_empty() && !server.events("n2").is_empty()).await;
    let (reason, note) = server.events("n2").remove(0);
    assert_eq!(reason, "VolumeGroupShownTwice");
    assert!(note.contains("n1 and n2") && note.contains(&vg_uuid(1)), "{note}");
    for node in ["n1", "n2"] {
        refused(replica.create(create("pvc-2", 8, Some(node))).await, Code::ResourceExhausted, "n1 and n2");
        assert_eq!(replica.maximum(Some(at_node(node))).await.unwrap(), 0, "the same at that moment");
        assert_eq!(replica.maximum_of(None, Some(at_node(node))).await.unwrap(), 0);
    }
    refused(replica.create(create("pvc-2", 8, None)).await, Code::ResourceExhausted, "no node");
    refused(replica.delete(&volume.volume_id).await, Code::Unavailable, "n1 and n2");
    // Other groups go on.
    let mut request = create("pvc-3", 8, Some("n2"));
    request.parameters.insert("volumeGroup".into(), "other".into());
    replica.create(request).await.unwrap();
    // And this one too, once only one node shows it.
    n2.stub.groups(|groups| drop(groups.remove(0)));
    let refusal = async || replica.delete(&volume.volume_id).await.err();
    until("it is n1's alone", refusal, Option::is_none).await;
    replica.create(create("pvc-2", 8, Some("n1"))).await.unwrap();
}

#[tokio::test]
async fn a_label_that_stands_for_nothing_goes_after_a_while() {
    let server = ApiServer::new();
    let pace = quarry::router::Pace { forgotten: Duration::from_millis(500), ..patient() };
    let replica = Replica::start(&server, pace).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    labelled(&server, "n1", 1).await;
    node.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(7), "new", 64));
    server.until("the new label alone", |server| server.labels("n1") == [label(7)]).await;
}

#[tokio::test]
async fn a_label_of_a_node_that_is_linked_to_another_replica_stays() {
    let server = ApiServer::new();
    let leader = Replica::start_as("leader", server.cluster(), hasty(), |_| {}).await;
    server.until("a leader", |server| server.get(LEASES, "quarry-controller").is_some()).await;
    let other = Replica::start_as("other", server.cluster(), hasty(), |_| {}).await;
    let n1 = Node::start(&server, "n1", 1, &[leader.address, other.address]);
    labelled(&server, "n1", 1).await;
    let recorded = async |nodes: &[&str]| {
        server.until("the record", |server| links(server, "other") == record(nodes)).await;
    };
    recorded(&["n1"]).await;
    n1.stop().await;
    recorded(&[]).await;
    let stub = Stub::new(&vg_uuid(1));
    // n1 can reach the other replica only; a copy of its disk shows up on n2.
    let _n1 = Node::start_with(&server, ("n1", &token(&server, "n1", 9, HOUR)), stub, &[other.address]);
    recorded(&["n1"]).await;
    let _n2 = Node::start(&server, "n2", 1, &[leader.address]);
    linked(&server, &leader, "n2").await;
    refused(leader.create(create("pvc-1", 8, Some("n2"))).await, Code::Unavailable, "still on node n1");
    // Meanwhile a group moves that nobody has a link for, which takes as long as it would take here.
    let n3 = Node::start(&server, "n3", 3, &[leader.address]);
    labelled(&server, "n3", 3).await;
    n3.stop().await;
    let _n4 = Node::start(&server, "n4", 3, &[leader.address]);
    labelled(&server, "n4", 3).await;
    assert_eq!((server.labels("n1"), server.labels("n2")), (vec![label(1)], vec![]));
}

#[tokio::test]
async fn a_label_that_nobody_has_is_added_by_whatever_replica_has_the_link() {
    let server = ApiServer::new();
    let leader = Replica::start_as("leader", server.cluster(), patient(), |_| {}).await;
    server.until("a leader", |server| server.get(LEASES, "quarry-controller").is_some()).await;
    let other = Replica::start_as("other", server.cluster(), patient(), |_| {}).await;
    let _n1 = Node::start(&server, "n1", 1, &[other.address]);
    labelled(&server, "n1", 1).await;
    // The kubelet registers its node anew.
    server.delete("/api/v1/nodes", "n1");
    server.put_node("n1", json!({}));
    labelled(&server, "n1", 1).await;
    // A copy that the same replica has the link to: whether labels move is the leader's business.
    server.put_node("n3", json!({ label(3): "true" }));
    let _n2 = Node::start(&server, "n2", 3, &[other.address]);
    linked(&server, &other, "n2").await;
    let rounds = server.asked_for("PUT", "other.links") + 10;
    server.until("rounds", |server| server.asked_for("PUT", "other.links") > rounds).await;
    assert_eq!((server.labels("n2"), server.labels("n3")), (vec![], vec![label(3)]));
    let lease = server.get(LEASES, "quarry-controller").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], leader.name.as_str());
}

#[tokio::test]
async fn two_replicas_with_links_to_all_nodes_say_the_same() {
    let server = ApiServer::new();
    let one = Replica::start_as("one", server.cluster(), patient(), |_| {}).await;
    let two = Replica::start_as("two", server.cluster(), patient(), |_| {}).await;
    let both = [one.address, two.address];
    let _nodes = [Node::start(&server, "n1", 1, &both), Node::start(&server, "n2", 2, &both)];
    for replica in [&one, &two] {
        for node in ["n1", "n2"] {
            linked(&server, replica, node).await;
            labelled(&server, node, if node == "n1" { 1 } else { 2 }).await;
        }
    }
    let volume = one.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
    assert_eq!(two.create(create("pvc-1", 8, Some("n1"))).await.unwrap(), volume);
    let room = async || two.maximum(Some(at_node("n1"))).await.unwrap();
    until("the other knows too", room, |room| *room == 56 << 20).await;
    for name in ["one", "two"] {
        server.until("the record", |server| links(server, name) == record(&["n1", "n2"])).await;
    }
    one.stop().await;
    two.delete(&volume.volume_id).await.unwrap();
    assert_eq!(links(&server, "one"), None);
}

#[tokio::test]
async fn no_label_is_added_where_the_nodes_object_is_gone() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let node = Node::start_without_object(&server, "n1", 1, &[replica.address]);
    linked(&server, &replica, "n1").await;
    refused(replica.create(create("pvc-1", 8, Some("n1"))).await, Code::Unavailable, "cannot be labelled");
    assert_eq!(node.stub.volumes().len(), 1);
    server.put_node("n1", json!({}));
    replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
}
