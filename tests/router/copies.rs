//! A copy of a group that was shown together with the original does not become the original by outlasting it.

use quarry::cluster::vg_label;
use serde_json::json;
use tonic::Code;

use super::api_server::ApiServer;
use super::rig::{MIB, Node, Replica, Stub, at_node, create, hasty, refused, until, vg_uuid};
use crate::router::token;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/quarry/leases";

fn label(vg: u32) -> String {
    vg_label(&vg_uuid(vg).parse().unwrap())
}

async fn labelled(server: &ApiServer, node: &str, vg: u32) {
    server.until("the label", |server| server.labels(node) == [label(vg)]).await;
}

async fn told(server: &ApiServer, node: &str, reason: &str) -> String {
    let find = |server: &ApiServer| server.events(node).into_iter().find(|(found, _)| found == reason);
    server.until(reason, |server| find(server).is_some()).await;
    find(server).unwrap().1
}

/// n1 has group 1, its label and a volume; and n2, which has a copy, shows it too.
async fn original_and_copy(server: &ApiServer, replica: &Replica) -> (Node, Node, String) {
    let n1 = Node::start(server, "n1", 1, &[replica.address]);
    labelled(server, "n1", 1).await;
    let volume = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap().volume_id;
    let n2 = Node::start(server, "n2", 1, &[replica.address]);
    told(server, "n2", "VolumeGroupShownTwice").await;
    (n1, n2, volume)
}

fn back(server: &ApiServer, stub: Stub, replica: &Replica) -> Node {
    let token = token(server, "n1", 9, std::time::Duration::from_secs(3600));
    Node::start_with(server, ("n1", &token), stub, &[replica.address])
}

/// Until a node that goes away now would have lost its label: another's group moves.
async fn long_enough(server: &ApiServer, replica: &Replica) {
    let n8 = Node::start(server, "n8", 8, &[replica.address]);
    labelled(server, "n8", 8).await;
    n8.stop().await;
    let _n9 = Node::start(server, "n9", 8, &[replica.address]);
    labelled(server, "n9", 8).await;
}

#[tokio::test]
async fn a_label_does_not_go_to_a_copy_when_the_original_goes_away() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, n2, volume) = original_and_copy(&server, &replica).await;
    let stub = n1.stop().await;
    long_enough(&server, &replica).await;
    assert_eq!((server.labels("n1"), server.labels("n2")), (vec![label(1)], vec![]));
    refused(replica.delete(&volume).await, Code::Unavailable, "with vgimportclone");
    refused(replica.expand(&volume, 16 * MIB).await, Code::Unavailable, "with vgimportclone");
    refused(replica.create(create("pvc-2", 8, Some("n2"))).await, Code::ResourceExhausted, "a copy");
    assert_eq!(replica.maximum(Some(at_node("n2"))).await.unwrap(), 0, "the same at that moment");
    assert!(n2.stub.calls().is_empty(), "{:?}", n2.stub.calls());
    for node in ["n1", "n2"] {
        let note = told(&server, node, "VolumeGroupDisputed").await;
        assert!(note.contains(&format!("kubectl label node n1 {}-", label(1))), "{note}");
    }
    // The original comes back, and the copy gets a UUID of its own.
    let _n1 = back(&server, stub, &replica);
    let refusal = async || replica.delete(&volume).await.err().map(|status| status.message().to_owned());
    let twice = |words: &Option<String>| words.as_ref().is_some_and(|words| words.contains("n1 and n2"));
    until("both show it again", refusal, twice).await;
    n2.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(2), "copy", 64));
    until("it is n1's alone", refusal, Option::is_none).await;
    labelled(&server, "n2", 2).await;
    assert_eq!(server.labels("n1"), [label(1)]);
}

#[tokio::test]
async fn a_group_moves_as_others_do_once_it_is_settled() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, n2, volume) = original_and_copy(&server, &replica).await;
    n2.stub.groups(|groups| groups.clear());
    until("it is n1's alone", async || replica.delete(&volume).await.err(), Option::is_none).await;
    long_enough(&server, &replica).await;
    n1.stop().await;
    n2.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(1), "vg0", 64)));
    labelled(&server, "n2", 1).await;
    assert!(server.labels("n1").is_empty());
    replica.create(create("pvc-2", 8, Some("n2"))).await.unwrap();
}

#[tokio::test]
async fn an_original_that_is_back_without_the_group_loses_the_label() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, _n2, volume) = original_and_copy(&server, &replica).await;
    let stub = n1.stop().await;
    told(&server, "n2", "VolumeGroupDisputed").await;
    stub.groups(|groups| groups.clear());
    let _n1 = back(&server, stub, &replica);
    labelled(&server, "n2", 1).await;
    until("it is n2's", async || replica.delete(&volume).await.err(), Option::is_none).await;
}

#[tokio::test]
async fn somebody_who_takes_the_label_off_the_node_that_is_away_settles_it() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, n2, volume) = original_and_copy(&server, &replica).await;
    n1.stop().await;
    told(&server, "n2", "VolumeGroupDisputed").await;
    server.put_node("n1", json!({}));
    labelled(&server, "n2", 1).await;
    until("it is n2's", async || replica.delete(&volume).await.err(), Option::is_none).await;
    assert_eq!(n2.stub.calls(), [format!("delete {volume}")]);
}

#[tokio::test]
async fn a_node_object_that_is_deleted_and_made_anew_settles_nothing() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, n2, volume) = original_and_copy(&server, &replica).await;
    let stub = n1.stop().await;
    told(&server, "n2", "VolumeGroupDisputed").await;
    server.delete("/api/v1/nodes", "n1");
    long_enough(&server, &replica).await;
    refused(replica.delete(&volume).await, Code::Unavailable, &format!("label node n2 {}=true", label(1)));
    // The kubelet is back before the driver is.
    server.put_node("n1", json!({}));
    let rounds = server.asked_for("PUT", "replica-1.links") + 10;
    server.until("rounds", |server| server.asked_for("PUT", "replica-1.links") > rounds).await;
    assert!(server.labels("n1").is_empty() && server.labels("n2").is_empty());
    assert!(n2.stub.calls().is_empty(), "{:?}", n2.stub.calls());
    // The one that had the label gets it back, whatever became of the copy.
    n2.stop().await;
    let _n1 = back(&server, stub, &replica);
    labelled(&server, "n1", 1).await;
    until("it is n1's", async || replica.delete(&volume).await.err(), Option::is_none).await;
}

#[tokio::test]
async fn somebody_may_give_the_label_where_no_node_has_it() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let (n1, n2, volume) = original_and_copy(&server, &replica).await;
    n1.stop().await;
    told(&server, "n2", "VolumeGroupDisputed").await;
    server.delete("/api/v1/nodes", "n1");
    server.put_node("n2", json!({ label(1): "true" }));
    until("it is n2's", async || replica.delete(&volume).await.err(), Option::is_none).await;
    assert_eq!(n2.stub.calls(), [format!("delete {volume}")]);
}

#[tokio::test]
async fn a_replica_that_does_not_lead_gives_no_label_to_a_copy() {
    let server = ApiServer::new();
    let leader = Replica::start_as("leader", server.cluster(), hasty(), |_| {}).await;
    server.until("a leader", |server| server.get(LEASES, "quarry-controller").is_some()).await;
    let other = Replica::start_as("other", server.cluster(), hasty(), |_| {}).await;
    let n1 = Node::start(&server, "n1", 1, &[other.address]);
    labelled(&server, "n1", 1).await;
    let _n2 = Node::start(&server, "n2", 1, &[other.address]);
    let refusal = async || other.create(create("pvc-1", 8, Some("n1"))).await.err();
    until("both show it", refusal, |refusal| {
        refusal.as_ref().is_some_and(|status| status.message().contains("n1 and n2"))
    })
    .await;
    n1.stop().await;
    server.delete("/api/v1/nodes", "n1");
    let rounds = server.asked_for("PUT", "other.links") + 10;
    server.until("rounds", |server| server.asked_for("PUT", "other.links") > rounds).await;
    assert!(server.labels("n2").is_empty());
    let lease = server.get(LEASES, "quarry-controller").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], leader.name.as_str());
}
