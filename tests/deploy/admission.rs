//! The admission policy: of a Node, the controller changes the labels of volume groups and nothing else.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use quarry::types::VG_KEY_PREFIX;
use serde_json::{Value, json};

use super::apply::NAMESPACE;
use super::calls::{GROUP, NODE};
use super::server::Server;

/// How long the API server may take to go by a policy that is new.
const ARRIVAL: Duration = Duration::from_secs(30);

/// What each of the account's attempts comes to, with RBAC as the chart has it.
pub(super) async fn holds(server: &Server) {
    let admin: Api<Node> = Api::all(server.admin());
    let label = format!("{VG_KEY_PREFIX}/{GROUP}");
    let labels = |value: Value| json!({"metadata": {"labels": value}});
    // Somebody else's, for the attempts to take it away or change it.
    patch(&admin, &labels(json!({"zone": "a"}))).await.unwrap();
    let controller: Api<Node> = Api::all(server.account(NAMESPACE, "quarry-controller"));
    arrived(&controller).await;

    patch(&controller, &labels(json!({&label: "true"}))).await.unwrap();
    patch(&controller, &labels(json!({&label: null}))).await.unwrap();
    patch(&controller, &labels(json!({&label: "true"}))).await.unwrap();
    for (attempt, words) in [
        (labels(json!({"zone": "b"})), "may set no labels"),
        (labels(json!({"fresh": "b"})), "may set no labels"),
        (labels(json!({"lvm.csi.quarry/node": "b"})), "may set no labels"),
        (labels(json!({"zone": null})), "may remove no labels"),
        (labels(json!({&label: "false"})), "have the value true"),
        (json!({"spec": {"unschedulable": true}}), "may change nothing of nodes but labels"),
        (json!({"metadata": {"annotations": {"a": "b"}}}), "may change nothing of nodes but labels"),
        (json!({"metadata": {"finalizers": ["a/b"]}}), "may change nothing of nodes but labels"),
    ] {
        let refusal = patch(&controller, &attempt).await.unwrap_err();
        assert!(refusal.contains(words), "{attempt}: {refusal}");
    }
    // It is about nobody else.
    patch(&admin, &labels(json!({"zone": "b", "fresh": "b"}))).await.unwrap();
    patch(&admin, &json!({"spec": {"unschedulable": true}})).await.unwrap();
    // Labels that others have changed do not stand in the controller's way.
    patch(&controller, &labels(json!({&label: null}))).await.unwrap();
}

async fn arrived(controller: &Api<Node>) {
    let (start, attempt) = (Instant::now(), json!({"metadata": {"annotations": {"arrived": "no"}}}));
    while patch(controller, &attempt).await.is_ok() {
        assert!(start.elapsed() < ARRIVAL, "the policy does not hold");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn patch(api: &Api<Node>, patch: &Value) -> Result<(), String> {
    let answer = api.patch(NODE, &PatchParams::default(), &Patch::Merge(patch)).await;
    answer.map(drop).map_err(|error| error.to_string())
}
