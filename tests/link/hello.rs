//! Who gets a link, and who does not and why.

use std::time::Duration;

use quarry::link::{ReviewError, Tuning, Versions};
use quarry::proto::csi::v1::controller_client::ControllerClient;
use tokio::io::AsyncReadExt as _;

use super::authority::Authority;
use super::controller::{Controller, ended};
use super::node::{Node, mounts, write_ca, write_token};
use super::raw::{Raw, hello};
use super::stub::create;
use super::{brisk, soon};

#[tokio::test]
async fn a_node_is_known_by_its_token_and_can_be_called() {
    let mut controller = Controller::start(Tuning::default()).await;
    let dir = mounts("token-n1\n", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, Tuning::default());
    let session = controller.session().await;
    assert_eq!((session.node().as_str(), session.object(), session.version()), ("n1", "n1", 1));
    assert_eq!(session.driver_version(), env!("CARGO_PKG_VERSION"));
    assert!(!session.ended().is_cancelled());
    let mut client = ControllerClient::new(session.channel());
    let answer = soon("an answer", client.create_volume(create("pvc-1"))).await.unwrap();
    assert!(answer.into_inner().volume.is_some());
}

#[tokio::test]
async fn a_token_that_is_not_good_is_refused_in_the_reviewers_words() {
    let mut controller = Controller::start(Tuning::default()).await;
    let refused = |why: &str| ReviewError::Refused(why.to_owned());
    controller.desk.fails("expired", refused("the token has run out"));
    controller.desk.fails("audience", refused("the token is for another audience"));
    controller.desk.fails("later", ReviewError::Unavailable("the API server does not answer".to_owned()));
    controller.desk.knows("nameless", "", Duration::from_secs(60));
    for (token, words) in [
        ("expired", "the token has run out"),
        ("audience", "for another audience"),
        ("later", "the API server does not answer"),
        ("unheard-of", "none of this cluster's"),
        ("", "none of this cluster's"),
        ("nameless", "must not be empty"),
    ] {
        let mut raw = Raw::connect(controller.address, controller.authority.pem()).await.unwrap();
        let welcome = raw.say(&hello(token, Versions::CURRENT)).await.unwrap();
        assert!(welcome.refusal.contains(words), "{token}: {}", welcome.refusal);
        assert_eq!(welcome.version, 0);
        assert_eq!(soon("the end", raw.stream.read(&mut [0; 8])).await.unwrap(), 0, "it was not closed");
    }
    assert!(controller.try_session().is_none());
}

#[tokio::test]
async fn a_node_that_was_refused_tries_again_with_a_fresh_token() {
    let mut controller = Controller::start(brisk()).await;
    let dir = mounts("stale", Some(controller.authority.pem()));
    let mut asked = controller.desk.asked();
    let node = Node::start(controller.address, dir, brisk());
    soon("a second attempt", asked.wait_for(|asked| *asked >= 2)).await.unwrap();
    assert!(controller.try_session().is_none());
    write_token(node.dir.path(), "token-n1");
    assert_eq!(controller.session().await.node().as_str(), "n1");
}

#[tokio::test]
async fn a_node_under_another_name_gets_no_link_that_lasts() {
    let mut controller = Controller::start(brisk()).await;
    let dir = mounts("token-n2", Some(controller.authority.pem()));
    let node = Node::start(controller.address, dir, brisk());
    for _ in 0..2 {
        ended(&controller.session().await).await;
    }
    write_token(node.dir.path(), "token-n1");
    while controller.session().await.node().as_str() != "n1" {}
}

#[tokio::test]
async fn releases_one_apart_link_either_way_round() {
    for (node_own, controller_own) in [(1, 2), (2, 1), (2, 2), (3, 2)] {
        let of = |own| Tuning { versions: Versions::up_to(own), ..brisk() };
        let mut controller = Controller::start(of(controller_own)).await;
        let dir = mounts("token-n1", Some(controller.authority.pem()));
        let _node = Node::start(controller.address, dir, of(node_own));
        let session = controller.session().await;
        assert_eq!(session.version(), node_own.min(controller_own));
        let mut client = ControllerClient::new(session.channel());
        soon("an answer", client.create_volume(create("pvc-1"))).await.unwrap();
    }
}

#[tokio::test]
async fn releases_two_apart_are_told_which_one_to_update() {
    let tuning = Tuning { versions: Versions::up_to(3), ..Tuning::default() };
    let controller = Controller::start(tuning).await;
    for (own, words) in [
        (1, ["speaks protocol 1,", "speaks 2 to 3", "update the node's driver"]),
        (5, ["speaks protocol 4 to 5,", "speaks 2 to 3", "update the controller's driver"]),
    ] {
        let mut raw = Raw::connect(controller.address, controller.authority.pem()).await.unwrap();
        let welcome = raw.say(&hello("token-n1", Versions::up_to(own))).await.unwrap();
        for word in words {
            assert!(welcome.refusal.contains(word), "{word} is not in: {}", welcome.refusal);
        }
    }
    assert_eq!(*controller.desk.asked().borrow(), 0, "a token was reviewed for nothing");
}

#[tokio::test]
async fn what_is_no_hello_ends_the_connection() {
    let mut controller = Controller::start(Tuning::default()).await;
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[0, 0, 0, 2, 0xff, 0xff], &[0xff; 64]] {
        let mut raw = Raw::connect(controller.address, controller.authority.pem()).await.unwrap();
        raw.send(bytes).await.unwrap();
        assert!(!matches!(soon("the end", raw.stream.read(&mut [0; 8])).await, Ok(1..)), "{bytes:?}");
    }
    assert!(controller.try_session().is_none());
}

#[tokio::test]
async fn a_token_goes_only_to_a_controller_of_the_nodes_own_cluster() {
    let other = Authority::new();
    let mut controller = Controller::start(brisk()).await;
    controller.certificates.show(other.issue()).unwrap();
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, brisk());
    // One from our CA, and for somebody else.
    let raw = Raw::connect(controller.address, controller.authority.pem()).await;
    assert!(raw.is_err());
    controller.certificates.show(controller.authority.issue_for("localhost")).unwrap();
    assert!(Raw::connect(controller.address, controller.authority.pem()).await.is_err());
    assert_eq!(*controller.desk.asked().borrow(), 0, "the token was shown to a stranger");
    controller.certificates.show(controller.authority.issue()).unwrap();
    assert_eq!(controller.session().await.node().as_str(), "n1");
}

#[tokio::test]
async fn a_node_waits_for_a_ca_that_comes_later() {
    let mut controller = Controller::start(brisk()).await;
    let node = Node::start(controller.address, mounts("token-n1", None), brisk());
    write_ca(node.dir.path(), "");
    write_ca(node.dir.path(), controller.authority.pem());
    assert_eq!(controller.session().await.node().as_str(), "n1");
}

#[tokio::test]
async fn a_node_waits_for_a_controller_that_comes_later() {
    let authority = Authority::new();
    // Nothing to show yet: the controller is up before its CA is.
    let mut controller = Controller::start_at("127.0.0.1:0".parse().unwrap(), authority, brisk()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, brisk());
    controller.certificates.show(controller.authority.issue()).unwrap();
    controller.session().await;
}

#[tokio::test]
async fn a_key_that_is_not_the_certificates_own_is_refused_and_the_old_one_stays() {
    let mut controller = Controller::start(brisk()).await;
    let (mut mixed, other) = (controller.authority.issue(), controller.authority.issue());
    mixed.key = other.key;
    assert!(controller.certificates.show(mixed).is_err());
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, brisk());
    controller.session().await;
}
