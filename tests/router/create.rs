//! CreateVolume: to whom it goes, what it waits for, and what is answered where nobody can be asked.

use std::time::Duration;

use quarry::cluster::vg_label;
use serde_json::json;
use tonic::{Code, Request, Status};

use super::api_server::{ApiServer, Fault};
use super::rig::{
    Node, Replica, Stub, at_node, at_vg, create, hasty, linked, patient, refused, until, vg_uuid,
};

const CLAIM: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";

#[tokio::test]
async fn a_volume_is_made_by_the_node_that_was_chosen() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    linked(&replica, "n1").await;
    linked(&replica, "n2").await;
    let volume = replica.create(create(CLAIM, 8, Some("n2"))).await.unwrap();
    assert_eq!(volume.volume_id, format!("{}/{CLAIM}", vg_uuid(2)));
    assert!(n1.stub.calls().is_empty(), "{:?}", n1.stub.calls());
    let again = replica.create(create(CLAIM, 8, Some("n2"))).await.unwrap();
    assert_eq!(again, volume);
    assert_eq!(n2.stub.volumes().len(), 1);
}

#[tokio::test]
async fn the_label_is_seen_on_the_node_before_create_answers() {
    let server = ApiServer::new();
    // As a follower: it is not the leader's doing.
    server.fault("", "leases", Fault::Code(403));
    server.fault("PATCH", "/api/v1/nodes/n1", Fault::Code(500));
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::Unavailable, "is made");
    assert!(server.labels("n1").is_empty());
    assert_eq!(node.stub.volumes().len(), 1);
    server.heal();
    replica.create(create(CLAIM, 8, Some("n1"))).await.unwrap();
    assert_eq!(server.labels("n1"), [vg_label(&vg_uuid(1).parse().unwrap())]);
    assert_eq!(node.stub.volumes().len(), 1, "the repeat finds the volume");
}

#[tokio::test]
async fn the_message_the_deadline_and_the_cluster_go_along() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    server.until("the cluster is known", |server| server.asked_for("GET", "kube-system") > 0).await;
    let mut request = Request::new(create(CLAIM, 8, Some("n1")));
    request.set_timeout(Duration::from_secs(20));
    // A class parameter that only a newer node knows is that node's business.
    request.get_mut().parameters.insert("invented".into(), "later".into());
    replica.client().create_volume(request).await.unwrap();
    let uid = server.get("/api/v1/namespaces", "kube-system").unwrap()["metadata"]["uid"].clone();
    let calls = node.stub.calls();
    assert!(calls.contains(&format!("cluster {}", uid.as_str().unwrap())), "{calls:?}");
    assert!(calls.contains(&"deadline 19000000u".to_owned()), "a second shorter: {calls:?}");
}

#[tokio::test]
async fn the_nodes_own_refusal_is_handed_back() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    for code in [Code::AlreadyExists, Code::InvalidArgument, Code::Aborted, Code::Internal, Code::OutOfRange]
    {
        node.stub.refuse(Some(Status::new(code, "the node's own words")));
        refused(replica.create(create(CLAIM, 8, Some("n1"))).await, code, "the node's own words");
    }
    node.stub.refuse(Some(Status::unknown("never an end")));
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::Unavailable, "never an end");
}

#[tokio::test]
async fn a_node_without_room_is_said_to_have_none_at_once() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    // What it has told is older than the refusal.
    node.stub.mute();
    replica.create(create("pvc-first", 60, Some("n1"))).await.unwrap();
    assert_eq!(replica.maximum(Some(at_node("n1"))).await.unwrap(), 64 << 20, "it was not told");
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::ResourceExhausted, "no room here");
    assert!(replica.maximum(Some(at_node("n1"))).await.unwrap() < 8 << 20);
    assert!(replica.maximum_of(None, Some(at_node("n1"))).await.unwrap() < 8 << 20);
    // Once it is told anew, its own word counts.
    node.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(1), "vg0", 32));
    let room = async || replica.maximum(Some(at_node("n1"))).await.unwrap();
    until("the newer state", room, |room| *room == 32 << 20).await;
}

#[tokio::test]
async fn a_node_that_is_not_there_may_still_come() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::Unavailable, "n1 is not connected");
    refused(replica.maximum(Some(at_node("n1"))).await, Code::Unavailable, "n1");
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    node.stop().await;
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::Unavailable, "n1 is not connected");
    refused(replica.maximum(Some(at_node("n1"))).await, Code::Unavailable, "n1");
}

#[tokio::test]
async fn a_node_that_is_gone_is_not_waited_for_and_has_no_room() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("gone, though it never was there", room, |room| *room == Some(0)).await;
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::ResourceExhausted, "n1");
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    replica.create(create(CLAIM, 8, Some("n1"))).await.unwrap();
    node.stop().await;
    until("gone", room, |room| *room == Some(0)).await;
    refused(
        replica.create(create("pvc-other", 8, Some("n1"))).await,
        Code::ResourceExhausted,
        "over a minute",
    );
    assert_eq!(replica.maximum(Some(at_node("n1"))).await.unwrap(), 0);
    // What was passed on once may be there.
    refused(replica.create(create(CLAIM, 8, Some("n1"))).await, Code::Unavailable, "n1 is not connected");
}

#[tokio::test]
async fn a_place_that_nobody_knows_sends_the_scheduler_elsewhere() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let mut request = create(CLAIM, 8, Some("n1"));
    let place = quarry::proto::csi::v1::Topology { segments: [("zone".to_owned(), "z".to_owned())].into() };
    request.accessibility_requirements.as_mut().unwrap().requisite = vec![place.clone()];
    refused(replica.create(request).await, Code::ResourceExhausted, "topology");
    assert_eq!(replica.maximum(Some(place)).await.unwrap(), 0);
}

#[tokio::test]
async fn malformed_creates_are_refused_before_anybody_is_asked() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    refused(replica.create(create("", 8, Some("n1"))).await, Code::InvalidArgument, "name");
    let mut request = create(CLAIM, -8, Some("n1"));
    refused(replica.create(request.clone()).await, Code::InvalidArgument, "capacity_range");
    request = create(CLAIM, 8, Some("n1"));
    request.parameters.insert("volumeGroup".into(), "-x".into());
    refused(replica.create(request).await, Code::InvalidArgument, "parameters");
}

#[tokio::test]
async fn with_immediate_binding_the_node_with_most_room_is_taken() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    n2.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(2), "vg0", 128));
    linked(&replica, "n1").await;
    linked(&replica, "n2").await;
    let volume = replica.create(create(CLAIM, 8, None)).await.unwrap();
    assert!(volume.volume_id.starts_with(&vg_uuid(2)));
    // n1 has most room now, and the name is asked for first.
    n1.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(1), "vg0", 512));
    let room = async || replica.maximum(Some(at_node("n1"))).await.unwrap();
    until("the newer state", room, |room| *room == 512 << 20).await;
    assert_eq!(replica.create(create(CLAIM, 8, None)).await.unwrap(), volume);
    let other = replica.create(create("pvc-other", 8, None)).await.unwrap();
    assert!(other.volume_id.starts_with(&vg_uuid(1)));
}

#[tokio::test]
async fn with_immediate_binding_a_volume_is_found_that_an_earlier_controller_had_made() {
    let server = ApiServer::new();
    let first = Replica::start(&server, hasty()).await;
    let node = Node::start(&server, "n1", 1, &[first.address]);
    linked(&first, "n1").await;
    let volume = first.create(create(CLAIM, 8, None)).await.unwrap();
    let (stub, _) = (node.stop().await, first.stop().await);
    let second = Replica::start(&server, patient()).await;
    // Its node has not dialled yet, and no other can be asked.
    let n2 = Node::start(&server, "n2", 2, &[second.address]);
    linked(&second, "n2").await;
    refused(second.create(create(CLAIM, 8, None)).await, Code::Unavailable, "n1");
    let token = super::api_server::token(&server, "n1", 1, Duration::from_secs(3600));
    let _n1 = Node::start_with(&server, ("n1", &token), stub, &[second.address]);
    linked(&second, "n1").await;
    assert_eq!(second.create(create(CLAIM, 8, None)).await.unwrap(), volume);
    assert!(n2.stub.volumes().is_empty());
}

#[tokio::test]
async fn with_immediate_binding_and_room_nowhere_it_is_said_how_much_there_is() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    refused(replica.create(create(CLAIM, 80, None)).await, Code::ResourceExhausted, "n1 64");
    assert!(replica.maximum(None).await.unwrap() < 80 << 20);
    // A node whose word is old refuses by itself, and the next one is asked.
    node.stub.mute();
    replica.create(create("pvc-1", 60, Some("n1"))).await.unwrap();
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    n2.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(2), "vg0", 32));
    linked(&replica, "n2").await;
    let volume = replica.create(create(CLAIM, 16, None)).await.unwrap();
    assert!(volume.volume_id.starts_with(&vg_uuid(2)));
    assert!(replica.maximum(Some(at_node("n1"))).await.unwrap() < 16 << 20);
}

#[tokio::test]
async fn with_no_node_at_all_immediate_binding_waits_for_one_and_then_gives_up() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    refused(replica.create(create(CLAIM, 8, None)).await, Code::Unavailable, "just started");
    refused(replica.maximum(None).await, Code::Unavailable, "just started");
    let replica = Replica::start(&server, hasty()).await;
    let room = async || replica.maximum(None).await.ok();
    until("it is new no more", room, |room| *room == Some(0)).await;
    refused(replica.create(create(CLAIM, 8, None)).await, Code::ResourceExhausted, "no node");
    assert_eq!(replica.maximum(Some(at_vg(&vg_uuid(1)))).await.unwrap(), 0);
}

#[tokio::test]
async fn the_same_name_twice_at_once_ends_on_one_node() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    linked(&replica, "n1").await;
    linked(&replica, "n2").await;
    let request = || create("slow-1", 8, None);
    let first = replica.create(request());
    let second = async {
        until(
            "the first is under way",
            async || n1.stub.calls().len() + n2.stub.calls().len(),
            |calls| *calls > 2,
        )
        .await;
        let answer = replica.create(request()).await;
        n1.stub.release();
        n2.stub.release();
        answer
    };
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    refused(second, Code::Aborted, "already");
    assert_eq!(n1.stub.volumes().len() + n2.stub.volumes().len(), 1);
}

#[tokio::test]
async fn a_node_of_an_older_release_that_cannot_be_asked_for_names_serves_all_the_same() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let stub = Stub::new(&vg_uuid(1));
    stub.age();
    server.put_node("n1", json!({}));
    let token = super::api_server::token(&server, "n1", 1, Duration::from_secs(3600));
    let _node = Node::start_with(&server, ("n1", &token), stub, &[replica.address]);
    linked(&replica, "n1").await;
    let volume = replica.create(create(CLAIM, 8, None)).await.unwrap();
    assert_eq!(replica.create(create(CLAIM, 8, None)).await.unwrap(), volume);
}

/// A create as csi-provisioner sends it for Immediate binding: any of these nodes will do.
fn any_of(name: &str, mib: i64, nodes: &[&str]) -> quarry::proto::csi::v1::CreateVolumeRequest {
    let mut request = create(name, mib, Some(nodes[0]));
    request.accessibility_requirements.as_mut().unwrap().requisite =
        nodes.iter().map(|node| at_node(node)).collect();
    request
}

#[tokio::test]
async fn of_several_nodes_the_one_with_most_room_is_taken_and_one_that_may_come_is_waited_for() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let all = ["n1", "n2", "n3"];
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    let n4 = Node::start(&server, "n4", 4, &[replica.address]);
    n2.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(2), "vg0", 100));
    n4.stub.groups(|groups| groups[0] = Stub::group(&vg_uuid(4), "vg0", 1000));
    for (node, mib) in [("n1", 64), ("n2", 100), ("n4", 1000)] {
        let room = async || replica.maximum(Some(at_node(node))).await.ok();
        until("its room", room, |room| *room == Some(mib << 20)).await;
    }
    let gone = async || replica.maximum(Some(at_node("n3"))).await.ok();
    until("n3 is not to be waited for", gone, |room| *room == Some(0)).await;
    let volume = replica.create(any_of(CLAIM, 80, &all)).await.unwrap();
    assert!(volume.volume_id.starts_with(&vg_uuid(2)), "n4 has more, and is not asked for");
    assert_eq!(replica.create(any_of(CLAIM, 80, &all)).await.unwrap(), volume);
    let room = async || replica.maximum(Some(at_node("n2"))).await.ok();
    until("its room", room, |room| *room == Some(20 << 20)).await;

    // No room anywhere: that is said of each.
    refused(replica.create(any_of("pvc-2", 80, &all)).await, Code::ResourceExhausted, "n1 64 MiB, n2 20 MiB");
    for node in all {
        assert!(replica.maximum(Some(at_node(node))).await.unwrap() < 80 << 20);
    }
    // A node whose word is old refuses by itself, and the other one is asked then.
    n1.stub.mute();
    replica.create(create("pvc-3", 60, Some("n1"))).await.unwrap();
    let volume = replica.create(any_of("pvc-4", 16, &all)).await.unwrap();
    assert!(volume.volume_id.starts_with(&vg_uuid(2)));
    assert!(replica.maximum(Some(at_node("n1"))).await.unwrap() < 16 << 20);

    // A node that has only just gone may have room when it is back.
    let late = Replica::start(&server, patient()).await;
    refused(late.create(any_of("pvc-5", 8, &["n5"])).await, Code::Unavailable, "n5");
    refused(late.create(any_of("pvc-5", 8, &["n5", "n6"])).await, Code::Unavailable, "");
}
