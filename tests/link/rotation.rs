//! Certificates and CAs that change while everything runs.

use quarry::link::Tuning;

use super::authority::Authority;
use super::brisk;
use super::controller::{Controller, ended};
use super::node::{Node, mounts, write_ca};
use super::raw::Raw;
use super::stub::create;
use quarry::proto::csi::v1::controller_client::ControllerClient;

#[tokio::test]
async fn a_new_certificate_is_shown_to_later_comers_and_ends_no_link() {
    let mut controller = Controller::start(Tuning::default()).await;
    let dir = mounts("token-n1", Some(controller.authority.pem()));
    let _node = Node::start(controller.address, dir, Tuning::default());
    let session = controller.session().await;
    let shown = async || Raw::connect(controller.address, controller.authority.pem()).await.unwrap().shown();
    let old = shown().await;
    let new = controller.authority.issue();
    let leaf = new.chain[0].clone();
    assert_ne!(old, leaf);
    controller.certificates.show(new).unwrap();
    assert_eq!(shown().await, leaf);
    ControllerClient::new(session.channel()).create_volume(create("pvc-1")).await.unwrap();
}

#[tokio::test]
async fn a_ca_is_changed_by_way_of_a_bundle_of_both() {
    let mut controller = Controller::start(brisk()).await;
    let (old, new) = (controller.authority.pem().to_owned(), Authority::new());
    let node = Node::start(controller.address, mounts("token-n1", Some(&old)), brisk());
    let first = controller.session().await;

    // The bundle first; then the new CA signs, and nodes that dial again take either.
    write_ca(node.dir.path(), &format!("{old}{}", new.pem()));
    first.close("the test goes on");
    let second = controller.session().await;
    controller.certificates.show(new.issue()).unwrap();
    second.close("the test goes on");
    let third = controller.session().await;

    // The old CA is gone from the bundle: it does not count any more.
    write_ca(node.dir.path(), new.pem());
    third.close("the test goes on");
    let fourth = controller.session().await;
    controller.certificates.show(controller.authority.issue()).unwrap();
    let asked = *controller.desk.asked().borrow();
    fourth.close("the test goes on");
    ended(&fourth).await;
    assert!(Raw::connect(controller.address, new.pem()).await.is_err());
    assert_eq!(*controller.desk.asked().borrow(), asked);
    controller.certificates.show(new.issue()).unwrap();
    controller.session().await;
}
