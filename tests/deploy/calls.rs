//! With the chart's roles the driver can do all that it does, and a node nothing.

use std::collections::BTreeSet;
use std::time::SystemTime;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client};
use quarry::cluster::authority::{Authority, Names};
use quarry::cluster::{Cluster, Election, Labels, LostGroups, Nodes, Replica, Replicas, TokenError, Tokens};
use quarry::csi::DRIVER_NAME;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::apply::NAMESPACE;
use super::server::Server;

/// The node that these tests label.
pub(super) const NODE: &str = "node-1";
/// A volume group's UUID.
pub(super) const GROUP: &str = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4";

/// Our own code, as the account that it has.
pub(super) async fn all_are_allowed(server: &Server) {
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}})).unwrap();
    Api::<Node>::all(server.admin()).create(&PostParams::default(), &node).await.unwrap();
    let cluster = Cluster::new(server.account(NAMESPACE, "quarry-controller"), NAMESPACE);
    assert!(!cluster.identity().await.unwrap().is_empty());
    assert!(cluster.volume_handles(DRIVER_NAME).await.unwrap().is_empty());
    assert_eq!(cluster.claim("default", "none").await.unwrap(), None);
    assert_eq!(cluster.volume_uid("none").await.unwrap(), None);
    let review = Tokens::new(&cluster, "quarry-node").review("no-token", SystemTime::now()).await;
    assert!(matches!(review, Err(TokenError::Invalid(_))), "{review:?}");
    let names = Names { secret: "quarry-ca".to_owned(), config_map: "quarry-ca".to_owned() };
    // What the test of upgrades has put in is no authority, and it has not touched this key.
    assert!(Authority::new(&cluster, names).round(true, SystemTime::now()).await.unwrap().is_some());
    lost(&cluster).await;
    leases(&cluster).await;
    labels(&cluster).await;
}

/// What `quarry lost` and the controller do.
async fn lost(cluster: &Cluster) {
    let (list, vg) = (LostGroups::new(cluster, "quarry-lost"), GROUP.parse().unwrap());
    assert_eq!(cluster.node_views().await.unwrap().len(), 1);
    list.declare(&vg).await.unwrap();
    assert!(list.read().await.unwrap()[&vg].starts_with("declared 2"));
    list.withdraw(&vg).await.unwrap();
    assert!(list.read().await.unwrap().is_empty());
}

async fn leases(cluster: &Cluster) {
    let (mut election, leadership) = Election::new(cluster, "controller-1");
    election.round().await;
    assert!(leadership.holds());
    election.release().await;
    let mut replica = Replica::new(cluster, "controller-1".parse().unwrap(), None);
    replica.record(&BTreeSet::from([NODE.to_owned()])).await.unwrap();
    replica.record(&BTreeSet::new()).await.unwrap();
    Replicas::new(cluster).look().await.unwrap();
    replica.retire().await.unwrap();
}

async fn labels(cluster: &Cluster) {
    let stop = CancellationToken::new();
    let (nodes, watch) = Nodes::new(cluster, stop.clone());
    let watch = tokio_util::task::TaskTracker::new().spawn(watch);
    assert!(nodes.live().await.unwrap().nodes.contains_key(NODE));
    let (labels, group) = (Labels::new(cluster, nodes), GROUP.parse().unwrap());
    labels.add(NODE, &group).await.unwrap();
    labels.remove(NODE, &group).await.unwrap();
    stop.cancel();
    watch.await.unwrap();
}

/// A node's account may ask what everybody may, and no more.
pub(super) async fn nodes_may_do_nothing(server: &Server) {
    let node = rules(server.account(NAMESPACE, "quarry-node")).await;
    let nobody = rules(server.account("default", "somebody-else")).await;
    assert_eq!(node, nobody);
    assert!(!may(server.account(NAMESPACE, "quarry-node"), "get", "nodes").await);
    assert!(may(server.account(NAMESPACE, "quarry-controller"), "patch", "nodes").await);
}

/// What the account may do in the driver's namespace, in an order that does not change.
async fn rules(client: Client) -> Vec<String> {
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(NAMESPACE.to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let answer = Api::all(client).create(&PostParams::default(), &review).await.unwrap();
    let status = answer.status.unwrap();
    assert!(!status.incomplete, "{status:?}");
    let mut rules: Vec<_> = status.resource_rules.iter().map(|rule| format!("{rule:?}")).collect();
    rules.sort();
    rules
}

async fn may(client: Client, verb: &str, resource: &str) -> bool {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    Api::all(client).create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}
