//! Links that come, go, break and are refused, as the sidecars see them.

use std::time::Duration;

use serde_json::json;
use tonic::Code;

use super::api_server::{ApiServer, Fault, good, token};
use super::rig::{
    Node, Replica, Stub, at_node, create, hasty, linked, patient, refused, soon, until, vg_uuid,
};
use crate::link::proxy::Proxy;

const HOUR: Duration = Duration::from_secs(3600);

async fn away(replica: &Replica, node: &str) {
    let refusal = async || replica.maximum(Some(at_node(node))).await.err().map(|status| status.code());
    until("the node is away", refusal, |code| *code == Some(Code::Unavailable)).await;
}

/// A controller and a node that is linked to it by a connection that can be frozen and cut.
async fn behind_proxy() -> (ApiServer, Replica, Proxy, Node) {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let proxy = Proxy::start(replica.address).await;
    let node = Node::start(&server, "n1", 1, &[proxy.address]);
    linked(&replica, "n1").await;
    (server, replica, proxy, node)
}

#[tokio::test]
async fn a_node_that_restarts_is_there_again_with_its_volumes() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    let volume = replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
    let stub = node.stop().await;
    away(&replica, "n1").await;
    refused(replica.delete(&volume.volume_id).await, Code::Unavailable, "no connected node");
    let _node = Node::start_with(&server, ("n1", &token(&server, "n1", 2, HOUR)), stub, &[replica.address]);
    linked(&replica, "n1").await;
    assert_eq!(replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap(), volume);
    replica.delete(&volume.volume_id).await.unwrap();
}

#[tokio::test]
async fn a_controller_that_restarts_never_says_that_there_is_no_room_before_its_nodes_are_back() {
    let server = ApiServer::new();
    let first = Replica::start(&server, patient()).await;
    let proxy = Proxy::start(first.address).await;
    let _node = Node::start(&server, "n1", 1, &[proxy.address]);
    linked(&first, "n1").await;
    first.stop().await;
    let second = Replica::start(&server, patient()).await;
    refused(second.maximum(Some(at_node("n1"))).await, Code::Unavailable, "n1");
    refused(second.create(create("pvc-1", 8, Some("n1"))).await, Code::Unavailable, "n1");
}

#[tokio::test]
async fn a_newer_link_takes_over_from_an_older_one() {
    let (server, replica, proxy, node) = behind_proxy().await;
    let stub = Stub::new(&vg_uuid(1));
    stub.groups(|groups| groups[0].maximum_volume_bytes = 7);
    // The old one hangs, and nobody has noticed when the newer one comes.
    proxy.freeze();
    node.abandon();
    let newer = Node::start_with(&server, ("n1", &token(&server, "n1", 2, HOUR)), stub, &[replica.address]);
    let room = async || replica.maximum(Some(at_node("n1"))).await.ok();
    until("the newer link's word", room, |room| *room == Some(7)).await;
    replica.delete(&format!("{}/pvc-1", vg_uuid(1))).await.unwrap();
    assert_eq!(newer.stub.calls().len(), 1);
    assert!(node.stub.calls().is_empty());
}

#[tokio::test]
async fn a_half_open_link_is_noticed_and_its_calls_may_go_on() {
    let (_server, replica, proxy, node) = behind_proxy().await;
    let call = replica.create(create("slow-1", 8, Some("n1")));
    let freeze = async {
        node.stub.called("create slow-1").await;
        proxy.freeze();
    };
    let (answer, ()) = tokio::join!(call, freeze);
    refused(answer, Code::Unavailable, "link to node n1 was lost");
    node.stub.release();
    // It dials again, and the volume that was made meanwhile is the one.
    let answer = async || replica.create(create("slow-1", 8, Some("n1"))).await.ok();
    node.stub.release();
    until("the repeat", answer, Option::is_some).await;
    assert_eq!(node.stub.volumes().len(), 1);
}

#[tokio::test]
async fn a_connection_lost_in_the_middle_of_a_call_is_no_end_of_it() {
    let (_server, replica, proxy, node) = behind_proxy().await;
    let call = replica.create(create("slow-1", 8, Some("n1")));
    let cut = async {
        node.stub.called("create slow-1").await;
        proxy.cut();
    };
    let (answer, ()) = tokio::join!(call, cut);
    refused(answer, Code::Unavailable, "link to node n1 was lost");
}

#[tokio::test]
async fn nor_is_it_the_end_of_a_deletion_or_an_expansion() {
    let id = format!("{}/pvc-1", vg_uuid(1));
    for verb in ["delete", "expand"] {
        let server = ApiServer::new();
        let replica = Replica::start(&server, patient()).await;
        let proxy = Proxy::start(replica.address).await;
        let node = Node::start(&server, "n1", 1, &[proxy.address]);
        linked(&replica, "n1").await;
        node.stub.hold();
        let call = async {
            match verb {
                "delete" => replica.delete(&id).await,
                _ => replica.expand(&id, 16 << 20).await.map(drop),
            }
        };
        let cut = async {
            node.stub.called(&format!("{verb} {id}")).await;
            proxy.cut();
        };
        let (answer, ()) = tokio::join!(call, cut);
        refused(answer, Code::Unavailable, "link to node n1 was lost");
    }
}

#[tokio::test]
async fn only_a_good_token_opens_a_link_and_only_for_its_own_node() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    let foreign = token(&server, "n3", 3, HOUR);
    let mut status = good("n3");
    status["user"]["username"] = json!("system:serviceaccount:other:quarry-node");
    server.know_token(&foreign, status);
    let for_others = token(&server, "n4", 4, HOUR);
    let mut status = good("n4");
    status["audiences"] = json!(["https://kubernetes.default.svc"]);
    server.know_token(&for_others, status);
    let expired = token(&server, "n5", 5, Duration::ZERO);
    let start = |name, token: &str, vg| {
        Node::start_with(&server, (name, token), Stub::new(&vg_uuid(vg)), &[replica.address])
    };
    let _refused = [
        start("n1", "e30.e30.wrong", 2),
        start("n3", &foreign, 3),
        start("n4", &for_others, 4),
        start("n5", &expired, 5),
    ];
    server.until("each was reviewed", |server| server.asked_for("POST", "tokenreviews") >= 4).await;
    // A token of another node's pod speaks for that node, wherever it is used.
    let _stolen = start("n2", &token(&server, "n2", 1, HOUR), 1);
    linked(&replica, "n2").await;
    let volume = format!("{}/pvc-1", vg_uuid(1));
    replica.delete(&volume).await.unwrap();
    for node in ["n1", "n3", "n4", "n5"] {
        refused(replica.maximum(Some(at_node(node))).await, Code::Unavailable, node);
    }
    for vg in 2..6 {
        let volume = format!("{}/pvc-1", vg_uuid(vg));
        refused(replica.delete(&volume).await, Code::Unavailable, "no connected node");
    }
}

#[tokio::test]
async fn an_api_server_that_cannot_review_is_asked_again() {
    let server = ApiServer::new();
    server.fault("POST", "tokenreviews", Fault::Code(503));
    let replica = Replica::start(&server, patient()).await;
    let _node = Node::start(&server, "n1", 1, &[replica.address]);
    server.until("a review", |server| server.asked_for("POST", "tokenreviews") > 0).await;
    server.heal();
    linked(&replica, "n1").await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let (ours, other) = (ApiServer::new(), ApiServer::new());
    let replica = Replica::start(&other, patient()).await;
    let proper = Replica::start(&ours, patient()).await;
    // A node of our cluster, whose token the other controller knows too, dials both.
    let text = token(&ours, "n1", 1, HOUR);
    other.know_token(&text, good("n1"));
    ours.put_node("n1", json!({}));
    let _node =
        Node::start_with(&ours, ("n1", &text), Stub::new(&vg_uuid(1)), &[replica.address, proper.address]);
    linked(&proper, "n1").await;
    assert_eq!(other.asked_for("POST", "tokenreviews"), 0, "nobody has shown it a token");
    refused(replica.maximum(Some(at_node("n1"))).await, Code::Unavailable, "n1");
}

#[tokio::test]
async fn a_node_whose_token_runs_out_is_asked_for_another() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, patient()).await;
    // Less is left of both than the time at which a successor is asked for, and one node has none.
    let start = |name: &str, vg| {
        server.put_node(name, json!({}));
        let short = token(&server, name, vg, Duration::from_secs(6));
        Node::start_with(&server, (name, &short), Stub::new(&vg_uuid(vg)), &[replica.address])
    };
    let n1 = start("n1", 1);
    linked(&replica, "n1").await;
    n1.mounts.renew(&token(&server, "n1", 11, HOUR));
    let _n2 = start("n2", 2);
    linked(&replica, "n2").await;
    away(&replica, "n2").await;
    assert!(replica.maximum(Some(at_node("n1"))).await.unwrap() > 0, "it outlives its first token");
    replica.create(create("pvc-1", 8, Some("n1"))).await.unwrap();
}

#[tokio::test]
async fn probes_learn_whether_nodes_can_be_linked() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = ApiServer::new();
    server.fault("GET", "secrets", Fault::Code(403));
    let replica = Replica::start(&server, patient()).await;
    let probe = async || {
        let mut stream = tokio::net::TcpStream::connect(replica.health).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut text = String::new();
        soon("an answer", stream.read_to_string(&mut text)).await.unwrap();
        text
    };
    assert!(probe().await.starts_with("HTTP/1.1 503"));
    server.heal();
    until("ready", probe, |answer| answer.starts_with("HTTP/1.1 200")).await;
}

#[tokio::test]
async fn a_call_that_runs_is_answered_before_the_controller_ends() {
    let server = ApiServer::new();
    let replica = Replica::start(&server, hasty()).await;
    let node = Node::start(&server, "n1", 1, &[replica.address]);
    linked(&replica, "n1").await;
    let call = replica.create(create("slow-1", 8, Some("n1")));
    let end = async {
        node.stub.called("create slow-1").await;
        replica.begin_to_stop();
        until("the socket is gone", async || replica.socket().exists(), |there| !there).await;
        node.stub.release();
    };
    let (answer, ()) = tokio::join!(call, end);
    answer.unwrap();
    assert_eq!(replica.stop().await, quarry::server::Drained::Complete);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/quarry/leases";
    let lease = server.get(leases, "quarry-controller").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "given up");
    assert!(server.get(leases, "replica-1.links").is_none());
}
