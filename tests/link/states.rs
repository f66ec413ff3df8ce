//! The states that a node sends.

use std::time::Duration;

use quarry::link::Tuning;
use quarry::proto::quarry::v1 as proto;
use quarry::proto::quarry::v1::agent_client::AgentClient;
use quarry::types::{Bytes, NodeState};
use tonic::Streaming;

use super::controller::{Controller, ended};
use super::node::{Node, group, mounts};
use super::{brisk, soon};

async fn watched(heartbeat: Duration) -> (Controller, Node, Streaming<proto::NodeState>) {
    let tuning = Tuning { heartbeat, ..brisk() };
    let mut controller = Controller::start(tuning.clone()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let node = Node::start(controller.address, dir, tuning);
    let channel = controller.session().await.channel();
    let states =
        AgentClient::new(channel).watch_state(proto::WatchStateRequest {}).await.unwrap().into_inner();
    (controller, node, states)
}

#[tokio::test]
async fn a_controller_takes_note_of_them() {
    let mut controller = Controller::start(brisk()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let node = Node::start(controller.address, dir, brisk());
    let session = controller.session().await;
    let mut states = session.states();
    let first = soon("a state", states.wait_for(Option::is_some)).await.unwrap().clone().unwrap();
    assert_eq!(first.groups, [group(Bytes::mib(64))]);
    *node.states.lock().unwrap() = vec![group(Bytes::mib(8))];
    node.changes.send_modify(|count| *count += 1);
    let newer =
        |state: &Option<NodeState>| state.as_ref().is_some_and(|s| s.groups == [group(Bytes::mib(8))]);
    let second = soon("a newer state", states.wait_for(newer)).await.unwrap().clone().unwrap();
    assert!(second.generation > first.generation);
}

#[tokio::test]
async fn a_node_that_sends_none_loses_its_link() {
    let mut controller = Controller::start(Tuning { heartbeat: Duration::from_millis(50), ..brisk() }).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node =
        Node::start(controller.address, dir, Tuning { heartbeat: Duration::from_secs(3600), ..brisk() });
    let session = controller.session().await;
    ended(&session).await;
}

async fn next(states: &mut Streaming<proto::NodeState>) -> proto::NodeState {
    soon("a state", states.message()).await.unwrap().expect("no more states")
}

#[tokio::test]
async fn a_state_comes_at_once_and_after_each_change() {
    let (_controller, node, mut states) = watched(Duration::from_secs(3600)).await;
    let first = next(&mut states).await;
    let [vg] = first.volume_groups.as_slice() else { panic!("{first:?}") };
    assert_eq!((vg.name.as_str(), vg.health.as_str()), ("vg0", ""));
    assert_eq!((vg.available_bytes, vg.maximum_volume_bytes), (64 << 20, 64 << 20));
    assert_eq!(vg.uuid, "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4");

    let sick =
        quarry::types::GroupState { trouble: Some("a disk is missing".to_owned()), ..group(Bytes::ZERO) };
    *node.states.lock().unwrap() = vec![sick];
    node.changes.send_modify(|count| *count += 1);
    let second = next(&mut states).await;
    assert!(second.generation > first.generation);
    assert_eq!(second.volume_groups[0].health, "a disk is missing");

    *node.states.lock().unwrap() = Vec::new();
    node.changes.send_modify(|count| *count += 1);
    let third = next(&mut states).await;
    assert!(third.generation > second.generation && third.volume_groups.is_empty());
}

#[tokio::test]
async fn a_state_comes_now_and_then_without_a_change() {
    let (_controller, _node, mut states) = watched(Duration::from_millis(50)).await;
    let mut last = 0;
    for _ in 0..4 {
        let state = next(&mut states).await;
        assert!(state.generation > last);
        last = state.generation;
    }
}

#[tokio::test]
async fn a_node_that_starts_again_counts_on() {
    let (mut controller, node, mut states) = watched(Duration::from_millis(50)).await;
    let before = next(&mut states).await;
    let dir = node.stopped().await;
    let _node = Node::start(controller.address, dir, brisk());
    let channel = controller.session().await.channel();
    let mut states =
        AgentClient::new(channel).watch_state(proto::WatchStateRequest {}).await.unwrap().into_inner();
    assert!(next(&mut states).await.generation > before.generation);
}
