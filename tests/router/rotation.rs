//! A change of the authority, and of the protocol, under links that are in use.

use std::time::{Duration, SystemTime};

use quarry::cluster::authority::{Authority, Names};
use quarry::link::Versions;
use serde_json::json;
use tonic::Code;

use super::api_server::{ApiServer, Fault, token};
use super::rig::{Mounts, Node, Replica, Stub, at_node, bundle, create, patient, refused, until, vg_uuid};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long an authority is alone.
const ALONE: Duration = Duration::from_secs(2 * 365 * 24 * 3600);

async fn linked(replica: &Replica, node: &str) {
    let room = async || replica.maximum(Some(at_node(node))).await.ok();
    until("the node's room is known", room, |room| room.is_some_and(|room| room > 0)).await;
}

fn count(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

/// A leader's round at that time.
async fn round(server: &ApiServer, now: SystemTime) {
    let names = Names { secret: "quarry-ca".into(), config_map: "quarry-ca".into() };
    Authority::new(&server.cluster(), names).round(true, now).await.unwrap();
}

/// How many tokens were shown to controllers.
fn reviews(server: &ApiServer) -> usize {
    server.asked_for("POST", "tokenreviews")
}

#[tokio::test]
async fn an_authority_is_followed_by_another_and_no_link_ends_by_it() {
    let (server, now) = (ApiServer::new(), SystemTime::now());
    round(&server, now - ALONE - 10 * DAY).await;
    let first = bundle(&server);
    // Nobody leads yet, so nobody changes the authority.
    server.fault("", "leases", Fault::Code(403));
    let replica = Replica::start(&server, patient()).await;
    let _n1 = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    assert_eq!((bundle(&server), reviews(&server)), (first.clone(), 1));

    // A leader made the next one nine days ago and had it sign a day later: what the first signed has ended.
    round(&server, now - 9 * DAY).await;
    let both = bundle(&server);
    assert_eq!(count(&both), 2);
    round(&server, now - 8 * DAY).await;
    assert_eq!(count(&bundle(&server)), 2);
    server.heal();
    server.until("the first is given up", |server| count(&bundle(server)) == 1).await;
    let second = bundle(&server);
    assert!(second != first && both.contains(second.trim()) && both.contains(first.trim()));

    // The certificate that is shown now is the second's, and whoever held the first's alone is late.
    for (name, vg, certificates) in [("n2", 2, &second), ("n3", 3, &both), ("n4", 4, &first)] {
        server.put_node(name, json!({}));
        let mounts = Mounts::stale(&token(&server, name, vg, DAY), certificates);
        let node =
            Node::start_in(name, mounts, Stub::new(&vg_uuid(vg)), Versions::CURRENT, &[replica.address]);
        if name != "n4" {
            linked(&replica, name).await;
            node.stop().await;
        }
    }
    refused(replica.maximum(Some(at_node("n4"))).await, Code::Unavailable, "n4");
    assert_eq!(reviews(&server), 3, "n4 has shown its token to nobody, and n1 has been linked all the while");
    replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
}

#[tokio::test]
async fn a_controller_and_its_nodes_may_be_one_release_apart() {
    // The older ones of the first pairs are of a release that knew less.
    for (node_own, controller_own) in [(1, 2), (2, 3), (2, 1), (3, 2)] {
        let server = ApiServer::new();
        let replica = Replica::start_speaking(&server, Versions::up_to(controller_own)).await;
        let stub = Stub::new(&vg_uuid(1));
        if node_own < controller_own {
            stub.age();
        }
        server.put_node("n1", json!({}));
        let mounts = Mounts::fresh(&server, &token(&server, "n1", 1, DAY));
        let node = Node::start_in("n1", mounts, stub, Versions::up_to(node_own), &[replica.address]);
        linked(&replica, "n1").await;
        let chosen = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
        let anywhere = replica.create(create("pvc-2", 8, None)).await.unwrap();
        assert_eq!(replica.create(create("pvc-2", 8, None)).await.unwrap(), anywhere);
        assert_eq!(replica.expand(&chosen.volume_id, 16 << 20).await.unwrap(), 16 << 20);
        for volume in [chosen, anywhere] {
            replica.delete(&volume.volume_id).await.unwrap();
        }
        assert!(node.stub.volumes().is_empty());
    }
}

#[tokio::test]
async fn releases_further_apart_are_not_linked() {
    let server = ApiServer::new();
    let replica = Replica::start_speaking(&server, Versions::up_to(3)).await;
    let start = |name: &str, vg, own| {
        let mounts = Mounts::fresh(&server, &token(&server, name, vg, DAY));
        let versions = Versions::up_to(own);
        Node::start_in(name, mounts, Stub::new(&vg_uuid(vg)), versions, &[replica.address])
    };
    let _apart = [start("n1", 1, 1), start("n5", 5, 5)];
    let _near = start("n3", 3, 3);
    linked(&replica, "n3").await;
    for node in ["n1", "n5"] {
        assert_eq!(replica.maximum(Some(at_node(node))).await.ok().unwrap_or(0), 0);
    }
    assert_eq!(reviews(&server), 1, "nobody else's token was looked at");
}
