//! Tokens that run out while a link lives.

use std::time::Duration;

use quarry::link::{ReviewError, Tuning};
use quarry::proto::csi::v1::controller_client::ControllerClient;

use super::controller::{Controller, ended};
use super::node::{Node, mounts, write_token};
use super::stub::create;
use super::{brisk, soon};

/// Asks for a token's successor from the start, and often.
fn eager() -> Tuning {
    Tuning { renew_ahead: Duration::from_secs(3600), renew_retry: Duration::from_millis(20), ..brisk() }
}

/// A node whose token runs out after that time.
async fn linked(lasts: Duration) -> (Controller, Node, quarry::link::Session) {
    let mut controller = Controller::start(eager()).await;
    controller.desk.knows("short", "n1", lasts);
    let dir = mounts("short", Some(controller.authority.pem()));
    // It stays away when it has lost its link.
    let slow = Duration::from_secs(3600);
    let node =
        Node::start(controller.address, dir, Tuning { backoff_least: slow, backoff_most: slow, ..brisk() });
    let session = controller.session().await;
    (controller, node, session)
}

#[tokio::test]
async fn a_fresh_token_keeps_the_link() {
    let (controller, node, session) = linked(Duration::from_millis(1500)).await;
    let mut asked = controller.desk.asked();
    soon("a question", asked.wait_for(|asked| *asked >= 3)).await.unwrap();
    controller.desk.knows("fresh", "n1", Duration::from_secs(3600));
    write_token(node.dir.path(), "fresh");
    // The first token has run out by then, and the link is there.
    let outlived = tokio::time::timeout(Duration::from_secs(3), session.ended().cancelled()).await;
    assert!(outlived.is_err(), "the link ended");
    ControllerClient::new(session.channel()).create_volume(create("pvc-1")).await.unwrap();
}

#[tokio::test]
async fn a_token_that_is_not_renewed_ends_the_link() {
    let (_controller, _node, session) = linked(Duration::from_millis(500)).await;
    ended(&session).await;
}

#[tokio::test]
async fn a_token_of_another_node_ends_the_link() {
    let (_controller, node, session) = linked(Duration::from_secs(3600)).await;
    assert!(!session.ended().is_cancelled());
    write_token(node.dir.path(), "token-n2");
    ended(&session).await;
}

#[tokio::test]
async fn a_token_that_is_refused_later_ends_the_link() {
    let (controller, _node, session) = linked(Duration::from_secs(3600)).await;
    controller.desk.fails("short", ReviewError::Refused("the pod is gone".to_owned()));
    ended(&session).await;
}

#[tokio::test]
async fn trouble_with_the_review_ends_no_link_before_its_time() {
    let (controller, node, session) = linked(Duration::from_secs(3600)).await;
    controller.desk.fails("short", ReviewError::Unavailable("the API server does not answer".to_owned()));
    std::fs::remove_file(node.dir.path().join("token")).unwrap();
    let mut asked = controller.desk.asked();
    asked.mark_unchanged();
    write_token(node.dir.path(), "short");
    for _ in 0..3 {
        soon("another question", asked.changed()).await.unwrap();
    }
    assert!(!session.ended().is_cancelled());
}
