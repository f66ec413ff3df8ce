//! Links that end: by either side, by the network, and by nobody saying anything.

use std::time::{Duration, Instant};

use quarry::link::{Controllers, Tuning, Versions};
use quarry::proto::csi::v1::controller_client::ControllerClient;
use tonic::Code;

use super::authority::Authority;
use super::controller::{Controller, ended};
use super::mute::Mute;
use super::node::{Node, mounts};
use super::proxy::Proxy;
use super::raw::{Raw, hello};
use super::stub::create;
use super::{brisk, soon};

#[tokio::test]
async fn a_node_that_starts_again_is_linked_again() {
    let mut controller = Controller::start(brisk()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let node = Node::start(controller.address, dir, brisk());
    let first = controller.session().await;
    let dir = node.stopped().await;
    ended(&first).await;
    let _node = Node::start(controller.address, dir, brisk());
    let second = controller.session().await;
    assert!(second.id() > first.id() && second.node() == first.node());
}

#[tokio::test]
async fn a_controller_that_starts_again_is_found_again() {
    let mut controller = Controller::start(brisk()).await;
    let address = controller.address;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(address, dir, brisk());
    let session = controller.session().await;
    let authority = controller.stop().await;
    ended(&session).await;
    let certificate = authority.issue();
    let mut controller = Controller::start_at(address, authority, brisk()).await;
    controller.certificates.show(certificate).unwrap();
    controller.session().await;
}

#[tokio::test]
async fn each_controller_has_a_link_of_its_own() {
    let mut first = Controller::start(brisk()).await;
    let mut second = Controller::start(brisk()).await;
    let bundle = format!("{}{}", first.authority.pem(), second.authority.pem());
    let controllers = Controllers::Fixed([first.address, second.address].into());
    let _node = Node::start_for(controllers, mounts("token-n1", Some(&bundle)), brisk());
    let (one, other) = (first.session().await, second.session().await);
    for session in [one, other] {
        ControllerClient::new(session.channel()).create_volume(create("pvc-1")).await.unwrap();
    }
}

#[tokio::test]
async fn controllers_are_found_by_name() {
    let mut controller = Controller::start(brisk()).await;
    let name = Controllers::Name { host: "localhost".to_owned(), port: controller.address.port() };
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start_for(name, dir, brisk());
    controller.session().await;
}

#[tokio::test]
async fn a_newer_link_replaces_the_older_and_other_nodes_keep_theirs() {
    let mut controller = Controller::start(Tuning::default()).await;
    let mut raws = Vec::new();
    for token in ["token-n1", "token-n2", "token-n1"] {
        let mut raw = Raw::connect(controller.address, controller.authority.pem()).await.unwrap();
        assert_eq!(raw.say(&hello(token, Versions::CURRENT)).await.unwrap().refusal, "");
        raws.push((raw, controller.session().await));
    }
    let [older, other, newer] = [0, 1, 2].map(|i: usize| &raws[i].1);
    ended(older).await;
    assert!(!other.ended().is_cancelled() && !newer.ended().is_cancelled());
}

#[tokio::test]
async fn a_half_open_link_is_noticed_on_both_sides() {
    let mut controller = Controller::start(brisk()).await;
    let proxy = Proxy::start(controller.address).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(proxy.address, dir, brisk());
    let first = controller.session().await;
    let mut connections = proxy.connections();
    assert_eq!(*connections.borrow_and_update(), 1);
    // Once it answers, the node is beyond its hello.
    ControllerClient::new(first.channel()).create_volume(create("pvc-1")).await.unwrap();

    proxy.freeze();
    let frozen = Instant::now();
    // The node: nothing tells it but its pings, and it dials again.
    soon("another connection", connections.changed()).await.unwrap();
    let node_noticed = frozen.elapsed();
    let second = controller.session().await;
    assert_eq!(second.node(), first.node());
    let bound = 2 * (brisk().ping + brisk().pong) + Duration::from_secs(2);
    assert!(node_noticed < bound, "{node_noticed:?}");
}

#[tokio::test]
async fn a_half_open_link_is_noticed_by_the_controller_alone() {
    let mut controller = Controller::start(brisk()).await;
    let proxy = Proxy::start(controller.address).await;
    let mut raw = Raw::connect(proxy.address, controller.authority.pem()).await.unwrap();
    raw.say(&hello("token-n1", Versions::CURRENT)).await.unwrap();
    let session = controller.session().await;
    let call = ControllerClient::new(session.channel()).create_volume(create("pvc-1")).await.unwrap_err();
    assert_eq!(call.code(), Code::Unavailable, "nobody answers pings here: {call}");
    ended(&session).await;
}

#[tokio::test]
async fn a_controller_that_falls_silent_right_after_its_welcome_is_dialled_again() {
    let authority = Authority::new();
    let mute = Mute::start(&authority).await;
    let tuning = Tuning { hello: Duration::from_millis(300), ..brisk() };
    let _node = Node::start(mute.address, mounts("token-n1", Some(authority.pem())), tuning);
    let mut welcomed = mute.welcomed();
    soon("a second hello", welcomed.wait_for(|count| *count >= 2)).await.unwrap();
}

#[tokio::test]
async fn a_call_in_flight_ends_unavailable_when_its_link_is_cut_and_the_node_goes_on() {
    let mut controller = Controller::start(Tuning::default()).await;
    let proxy = Proxy::start(controller.address).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let mut node = Node::start(proxy.address, dir, brisk());
    let session = controller.session().await;
    let mut client = ControllerClient::new(session.channel());
    let call = controller.tracker.spawn(async move { client.create_volume(create("slow")).await });
    assert_eq!(node.event().await, "began");
    proxy.cut();
    let status = soon("an answer", call).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("the link to node n1 was lost"), "{status}");
    ended(&session).await;
    let status = ControllerClient::new(session.channel()).create_volume(create("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    node.stub.release.add_permits(1);
    assert_eq!(node.event().await, "ended");
}

#[tokio::test]
async fn a_call_in_flight_ends_unavailable_when_its_link_freezes_or_is_closed() {
    let mut controller = Controller::start(brisk()).await;
    let proxy = Proxy::start(controller.address).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let mut node = Node::start(proxy.address, dir, brisk());
    for freeze in [true, false] {
        let session = controller.session().await;
        let mut client = ControllerClient::new(session.channel());
        let call = controller.tracker.spawn(async move { client.create_volume(create("slow")).await });
        assert_eq!(node.event().await, "began");
        if freeze {
            proxy.freeze()
        } else {
            session.close("the test goes on")
        }
        let status = soon("an answer", call).await.unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
    }
}

#[tokio::test]
async fn a_node_that_stops_answers_what_runs_and_takes_no_more() {
    let mut controller = Controller::start(Tuning::default()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let mut node = Node::start(controller.address, dir, brisk());
    let session = controller.session().await;
    let mut client = ControllerClient::new(session.channel());
    let call = controller.tracker.spawn(async move { client.create_volume(create("slow")).await });
    assert_eq!(node.event().await, "began");

    node.stop.cancel();
    ended(&session).await;
    let status = ControllerClient::new(session.channel()).create_volume(create("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(!call.is_finished());

    node.stub.release.add_permits(1);
    soon("an answer", call).await.unwrap().unwrap();
    node.stopped().await;
    controller.stop().await;
}

#[tokio::test]
async fn a_node_can_stop_while_its_link_is_frozen() {
    let mut controller = Controller::start(Tuning::default()).await;
    let proxy = Proxy::start(controller.address).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let node = Node::start(proxy.address, dir, brisk());
    controller.session().await;
    proxy.freeze();
    node.stopped().await;
}
