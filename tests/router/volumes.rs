//! Calls for a volume that is there: they go to whoever shows its group.

use quarry::proto::csi::v1 as csi;
use tonic::Code;

use super::api_server::ApiServer;
use super::rig::{
    MIB, Node, Replica, Stub, at_node, block, create, hasty, linked, patient, refused, until, vg_uuid,
};

const CLAIM: &str = "pvc-3f6f0e3c-5d0a-4a55-9c8c-1d6f3b3c2f10";

/// Ids that this driver never gave.
const STRANGE: [&str; 6] = ["fake-vol-id-1", "../x", "vg/../../etc", "-y", "vg/lv;rm", "a\0b"];

fn id(vg: u32) -> String {
    format!("{}/{CLAIM}", vg_uuid(vg))
}

fn question(id: &str) -> csi::ValidateVolumeCapabilitiesRequest {
    csi::ValidateVolumeCapabilitiesRequest {
        volume_id: id.into(),
        volume_capabilities: vec![block()],
        ..Default::default()
    }
}

#[tokio::test]
async fn calls_go_to_the_node_that_shows_the_volumes_group() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let n1 = Node::start(&server, "n1", 1, &[replica.address]);
    let n2 = Node::start(&server, "n2", 2, &[replica.address]);
    linked(&replica, "n1").await;
    linked(&replica, "n2").await;
    assert_eq!(replica.expand(&id(2), 99 * MIB).await.unwrap(), 99 * MIB);
    refused(replica.expand(&id(2), 2048 * MIB).await, Code::OutOfRange, "no room to grow");
    let answer = replica.client().validate_volume_capabilities(question(&id(2))).await.unwrap();
    assert_eq!(answer.into_inner().message, "the node's own words");
    replica.delete(&id(2)).await.unwrap();
    let expected = [
        format!("expand {}", id(2)),
        format!("expand {}", id(2)),
        format!("validate {}", id(2)),
        format!("delete {}", id(2)),
    ];
    assert_eq!(n2.stub.calls(), expected);
    assert!(n1.stub.calls().is_empty());
}

#[tokio::test]
async fn an_id_that_is_none_of_ours_is_unknown_and_nobody_is_asked() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    for strange in STRANGE {
        replica.delete(strange).await.unwrap();
        refused(replica.expand(strange, MIB).await, Code::NotFound, "");
        let answer = replica.client().validate_volume_capabilities(question(strange)).await;
        refused(answer, Code::NotFound, "");
    }
    refused(replica.delete("").await, Code::InvalidArgument, "volume_id");
    refused(replica.expand("", MIB).await, Code::InvalidArgument, "volume_id");
    refused(replica.expand(&id(1), 0).await, Code::InvalidArgument, "capacity_range");
    let mut request = question(&id(1));
    request.volume_capabilities.clear();
    refused(
        replica.client().validate_volume_capabilities(request).await,
        Code::InvalidArgument,
        "volume_capabilities",
    );
}

#[tokio::test]
async fn a_group_that_nobody_shows_is_not_known_to_be_gone() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let _other = Node::start(&server, "n2", 2, &[replica.address]);
    linked(&replica, "n2").await;
    for answer in [replica.delete(&id(1)).await, replica.expand(&id(1), MIB).await.map(drop)] {
        refused(answer, Code::Unavailable, "is shown by no connected node");
    }
    let answer = replica.client().validate_volume_capabilities(question(&id(1))).await;
    refused(answer, Code::Unavailable, &vg_uuid(1));
}

#[tokio::test]
async fn what_is_offered_is_what_a_node_offers_and_no_lists() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let request = csi::ControllerGetCapabilitiesRequest {};
    let answer = replica.client().controller_get_capabilities(request).await.unwrap().into_inner();
    assert_eq!(answer.capabilities, quarry::csi::router_capabilities());
    assert_eq!(answer.capabilities.len(), quarry::csi::CONTROLLER.len() - 1);
    let listed = replica.client().list_volumes(csi::ListVolumesRequest::default()).await;
    refused(listed, Code::Unimplemented, "");
}

#[tokio::test]
async fn a_volume_is_found_wherever_its_group_goes_and_whatever_it_is_called() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    let volume = replica.create(create(CLAIM, 8, Some("n1"))).await.unwrap();
    // vgrename: the class with the old name has no room, that with the new one has; the volume stays.
    node.stub.groups(|groups| groups[0].name = "renamed".into());
    let old = async || replica.maximum(Some(at_node("n1"))).await.unwrap();
    until("the old name is gone", old, |room| *room == 0).await;
    assert!(replica.maximum_of(Some("renamed"), Some(at_node("n1"))).await.unwrap() > 0);
    replica.expand(&volume.volume_id, 16 * MIB).await.unwrap();
    // A second group.
    node.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(5), "vg0", 1000)));
    until("the new group", old, |room| *room == 1000 * MIB).await;
    let other = replica.create(create("pvc-other", 900, Some("n1"))).await.unwrap();
    assert!(other.volume_id.starts_with(&vg_uuid(5)));
    // The disks move to another node.
    node.stub.groups(|groups| drop(groups.remove(0)));
    let n2 = Node::start(&server, "n2", 1, &[replica.address]);
    linked(&replica, "n2").await;
    until("it is found", async || replica.expand(&volume.volume_id, 24 * MIB).await.ok(), Option::is_some)
        .await;
    assert_eq!(n2.stub.calls(), [format!("expand {}", volume.volume_id)]);
}

#[tokio::test]
async fn a_node_without_groups_is_there_and_has_no_room() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    node.stub.groups(|groups| groups.clear());
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("it is there", room, |room| *room == Some(0)).await;
    // vgcreate.
    node.stub.groups(|groups| groups.push(Stub::group(&vg_uuid(1), "vg0", 10)));
    until("there is a group", room, |room| *room == Some(10 * MIB)).await;
    replica.create(create(CLAIM, 8, Some("n1"))).await.unwrap();
}

#[tokio::test]
async fn deletions_for_a_node_that_is_gone_hold_up_nothing_however_many_they_are() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let node = Node::start(&server, "n2", 2, &[replica.address]);
    linked(&replica, "n2").await;
    let deletions: Vec<_> = (0..1000)
        .map(|number| {
            let mut client = replica.client();
            let volume_id = format!("{}/pvc-{number}", vg_uuid(1));
            let request = csi::DeleteVolumeRequest { volume_id, ..Default::default() };
            tokio::spawn(async move { client.delete_volume(request).await })
        })
        .collect();
    replica.create(create(CLAIM, 8, Some("n2"))).await.unwrap();
    for deletion in deletions {
        refused(deletion.await.unwrap(), Code::Unavailable, "is shown by no connected node");
    }
    assert!(node.stub.calls().iter().all(|call| !call.starts_with("delete")), "nobody else is asked");
}
