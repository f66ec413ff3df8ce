//! Nodes, and the labels that say where volumes are.

use quarry::cluster::{LabelError, Labels, Nodes, vg_label};
use quarry::types::VgUuid;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::api_server::{ApiServer, Fault};

const VG: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

fn vg() -> VgUuid {
    VG.parse().unwrap()
}

/// The labels of a cluster whose nodes are watched.
fn labels(server: &ApiServer) -> (Labels, Nodes) {
    let (nodes, watch) = Nodes::new(&server.cluster(), CancellationToken::new());
    tokio::spawn(watch);
    (Labels::new(&server.cluster(), nodes.clone()), nodes)
}

fn patches(server: &ApiServer) -> usize {
    server.asked_for("PATCH", "/api/v1/nodes")
}

#[tokio::test]
async fn a_label_is_seen_on_the_node_before_it_counts_as_there() {
    let server = ApiServer::new();
    server.put_node("n1", json!({"zone": "z"}));
    let (labels, _) = labels(&server);
    labels.ensure("n1", &vg()).await.unwrap();
    assert_eq!(server.labels("n1"), [&vg_label(&vg()), "zone"]);
    assert_eq!(vg_label(&vg()), format!("vg.lvm.csi.quarry/{VG}"));
}

#[tokio::test]
async fn a_label_that_is_there_is_not_written_again() {
    let server = ApiServer::new();
    server.put_node("n1", json!({ vg_label(&vg()): "true" }));
    let (labels, mut nodes) = labels(&server);
    labels.ensure("n1", &vg()).await.unwrap();
    assert_eq!(patches(&server), 0);
    // Somebody takes it away.
    server.put_node("n1", json!({}));
    while nodes.known().labelled(&vg()) == ["n1"] {
        nodes.changed().await;
    }
    labels.ensure("n1", &vg()).await.unwrap();
    assert_eq!((patches(&server), server.labels("n1")), (1, vec![vg_label(&vg())]));
}

#[tokio::test]
async fn a_label_with_another_value_is_none() {
    let server = ApiServer::new();
    server.put_node("n1", json!({ vg_label(&vg()): "false" }));
    let (labels, _) = labels(&server);
    labels.ensure("n1", &vg()).await.unwrap();
    assert_eq!(server.get("/api/v1/nodes", "n1").unwrap()["metadata"]["labels"][vg_label(&vg())], "true");
}

#[tokio::test]
async fn a_label_of_another_node_is_not_doubled() {
    let server = ApiServer::new();
    server.put_node("n1", json!({ vg_label(&vg()): "true" }));
    server.put_node("n2", json!({}));
    let (labels, _) = labels(&server);
    let error = labels.ensure("n2", &vg()).await.unwrap_err();
    assert!(matches!(&error, LabelError::Elsewhere { on, .. } if on == "n1"), "{error}");
    assert!(server.labels("n2").is_empty());
    labels.remove("n1", &vg()).await.unwrap();
    labels.add("n2", &vg()).await.unwrap();
    assert_eq!((server.labels("n1"), server.labels("n2")), (vec![], vec![vg_label(&vg())]));
}

#[tokio::test]
async fn a_node_that_is_gone_has_no_label_and_cannot_get_one() {
    let server = ApiServer::new();
    let (labels, _) = labels(&server);
    labels.remove("gone", &vg()).await.unwrap();
    assert!(matches!(labels.ensure("gone", &vg()).await, Err(LabelError::Api(_))));
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_no_label_counts_as_there() {
    let server = ApiServer::new();
    server.put_node("n1", json!({ vg_label(&vg()): "true" }));
    server.fault("GET", "/api/v1/nodes", Fault::Code(403));
    let (labels, nodes) = labels(&server);
    assert!(matches!(labels.ensure("n1", &vg()).await, Err(LabelError::Blind)));
    server.heal();
    nodes.clone().changed().await;
    labels.ensure("n1", &vg()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_broke_counts_again_once_the_nodes_are_listed_anew_though_none_changed() {
    let server = ApiServer::new();
    server.put_node("n1", json!({ vg_label(&vg()): "true" }));
    let (labels, mut nodes) = labels(&server);
    for number in 1..4 {
        let asked = |server: &ApiServer| server.asked_for("GET", "/api/v1/nodes");
        server.until("a list and a watch", |server| asked(server) == 2 * number).await;
        nodes.live().await.unwrap();
        server.break_watches();
        while nodes.known().live {
            assert!(nodes.changed().await);
        }
        assert_eq!(nodes.known().labelled(&vg()), ["n1"], "what was known is not forgotten");
        labels.ensure("n1", &vg()).await.unwrap();
    }
    assert_eq!(patches(&server), 0);
}

#[tokio::test]
async fn nodes_come_change_and_go() {
    let server = ApiServer::new();
    server.put_node("n1", json!({}));
    let (_, mut nodes) = labels(&server);
    nodes.live().await.unwrap();
    server.put_node("n2", json!({ vg_label(&vg()): "true", "vg.lvm.csi.quarry/nonsense": "true" }));
    while nodes.known().labelled(&vg()).is_empty() {
        nodes.changed().await;
    }
    assert_eq!(nodes.known().nodes["n2"].groups, [vg()].into());
    server.delete("/api/v1/nodes", "n1");
    while nodes.known().nodes.len() == 2 {
        nodes.changed().await;
    }
    assert!(nodes.known().nodes.contains_key("n2"));
}
