//! GetCapacity: how much room is said to be, for which class, and after what was refused.

use std::time::Duration;

use tonic::Code;

use super::api_server::{ApiServer, token};
use super::rig::{MIB, Node, Replica, Stub, at_node, create, linked, patient, refused, until, vg_uuid};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_parameter_that_only_newer_nodes_know_changes_nothing_of_a_classes_room() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    node.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(2), "other", 1000)));
    let all = async || replica.maximum_of(None, Some(at_node("n1"))).await.ok();
    until("both groups", all, |room| *room == Some(1000 * MIB)).await;
    let room = async |parameters: &[(&str, &str)]| {
        let request = quarry::proto::csi::v1::GetCapacityRequest {
            parameters: parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            accessible_topology: Some(at_node("n1")),
            ..Default::default()
        };
        replica.client().get_capacity(request).await.unwrap().into_inner().available_capacity
    };
    assert_eq!(room(&[("volumeGroup", "vg0"), ("invented", "later")]).await, 64 * MIB);
    assert_eq!(room(&[("volumeGroup", "vg0"), ("mkfsOptions", "invented=later")]).await, 64 * MIB);
    assert_eq!(room(&[("volumeGroup", "vg9"), ("invented", "later")]).await, 0);
    assert_eq!(room(&[("invented", "later")]).await, 1064 * MIB);
}

#[tokio::test]
async fn what_was_refused_before_a_nodes_clock_was_set_back_is_not_refused_for_ever() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    // A node counts its states from the time of day at its start.
    (0..100).for_each(|_| node.stub.tell());
    node.stub.mute();
    replica.create(create("pvc-1", 60, Some("n1"))).await.unwrap();
    refused(replica.create(create("pvc-2", 8, Some("n1"))).await, Code::ResourceExhausted, "no room here");
    assert!(replica.maximum(Some(at_node("n1"))).await.unwrap() < 8 * MIB);
    node.stop().await;
    let (stub, token) = (Stub::new(&vg_uuid(1)), token(&server, "n1", 2, HOUR));
    let _node = Node::start_with(&server, ("n1", &token), stub, &[replica.address]);
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("its own word counts", room, |room| *room == Some(64 * MIB)).await;
}
