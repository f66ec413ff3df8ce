//! Calls over a link: deadlines, and refusals that say what they are newer than.

use std::time::Duration;

use quarry::link::{Tuning, generation};
use quarry::proto::csi::v1::controller_client::ControllerClient;
use quarry::proto::quarry::v1::agent_client::AgentClient;
use quarry::proto::quarry::v1::{IdentifyRequest, WatchStateRequest};
use quarry::types::Bytes;
use tonic::{Code, Request};

use super::controller::Controller;
use super::node::{Node, group, mounts, write_token};
use super::stub::create;
use super::{brisk, soon};

async fn linked(tuning: Tuning) -> (Controller, Node, quarry::link::Channel) {
    let mut controller = Controller::start(tuning.clone()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let node = Node::start(controller.address, dir, tuning);
    let channel = controller.session().await.channel();
    (controller, node, channel)
}

fn within<T>(limit: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

#[tokio::test]
async fn a_deadline_is_passed_on_a_second_shorter() {
    let (_controller, _node, channel) = linked(Tuning::default()).await;
    let mut client = ControllerClient::new(channel);
    for (limit, passed) in [(60, "59000000u"), (1, "500000u")] {
        let request = within(Duration::from_secs(limit), create("pvc-1"));
        let volume = client.create_volume(request).await.unwrap().into_inner().volume.unwrap();
        assert_eq!(volume.volume_id, passed);
    }
    let volume = client.create_volume(create("pvc-1")).await.unwrap().into_inner().volume.unwrap();
    assert_eq!(volume.volume_id, "110000m", "none is named");
}

#[tokio::test]
async fn the_node_answers_before_the_deadline_and_goes_on() {
    let (_controller, mut node, channel) = linked(Tuning::default()).await;
    let request = within(Duration::from_millis(800), create("slow"));
    let status = ControllerClient::new(channel).create_volume(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status}");
    assert_eq!(node.event().await, "began");
    node.stub.release.add_permits(1);
    assert_eq!(node.event().await, "ended");
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_stop_the_node() {
    let (_controller, mut node, channel) = linked(Tuning::default()).await;
    let mut client = ControllerClient::new(channel);
    tokio::select! {
        answer = client.create_volume(create("slow")) => panic!("{answer:?}"),
        event = node.event() => assert_eq!(event, "began"),
    }
    node.stub.release.add_permits(1);
    assert_eq!(node.event().await, "ended");
}

#[tokio::test]
async fn what_is_not_served_is_unimplemented_and_not_unavailable() {
    let (_controller, _node, channel) = linked(Tuning::default()).await;
    let request = quarry::proto::csi::v1::ListVolumesRequest::default();
    let status = ControllerClient::new(channel.clone()).list_volumes(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    let mut node = quarry::proto::csi::v1::node_client::NodeClient::new(channel);
    let status = node.node_get_info(quarry::proto::csi::v1::NodeGetInfoRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "the Node service is the kubelet's alone");
}

#[tokio::test]
async fn a_refusal_says_which_states_are_older_and_brings_a_newer_one() {
    let tuning = Tuning { heartbeat: Duration::from_secs(3600), ..Tuning::default() };
    let (_controller, node, channel) = linked(tuning).await;
    let mut states =
        AgentClient::new(channel.clone()).watch_state(WatchStateRequest {}).await.unwrap().into_inner();
    let before = soon("a state", states.message()).await.unwrap().unwrap();
    // What the node finds out while it refuses, and tells nobody.
    *node.states.lock().unwrap() = vec![group(Bytes::ZERO)];
    let status = ControllerClient::new(channel.clone()).create_volume(create("full")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let refused = generation(&status).expect("no generation");
    assert!(refused >= before.generation);
    let after = soon("a newer state", states.message()).await.unwrap().unwrap();
    assert!(after.generation > refused);
    assert_eq!(after.volume_groups[0].maximum_volume_bytes, 0, "it was read before the refusal");

    let fine = ControllerClient::new(channel).create_volume(create("pvc-1")).await.unwrap();
    assert!(fine.metadata().get(quarry::link::GENERATION).is_none());
}

#[tokio::test]
async fn a_node_shows_its_present_token() {
    let (_controller, node, channel) = linked(Tuning::default()).await;
    let mut agent = AgentClient::new(channel);
    let answer = agent.identify(IdentifyRequest {}).await.unwrap().into_inner();
    assert_eq!(answer.token, "token-n1");
    write_token(node.dir.path(), "another\n");
    assert_eq!(agent.identify(IdentifyRequest {}).await.unwrap().into_inner().token, "another");
    std::fs::remove_file(node.dir.path().join("token")).unwrap();
    assert_eq!(agent.identify(IdentifyRequest {}).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn the_end_of_a_node_ends_its_states() {
    let (_controller, node, channel) = linked(brisk()).await;
    let request = WatchStateRequest {};
    let mut states = AgentClient::new(channel).watch_state(request).await.unwrap().into_inner();
    soon("a state", states.message()).await.unwrap().unwrap();
    node.stopped().await;
    soon("the end of the states", async { while let Ok(Some(_)) = states.message().await {} }).await;
}
