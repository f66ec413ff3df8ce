//! GetCapacity: how much room is said to be, for which class, and after what was refused.

use super::api_server::ApiServer;
use super::rig::{MIB, Node, Replica, Stub, at_node, patient, until, vg_uuid};

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
