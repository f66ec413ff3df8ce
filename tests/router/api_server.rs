//! An API server in memory: objects, versions, conflicts and watches as the real one has them, token
//! reviews as a test scripts them, and a record of what was asked.

mod objects;
mod serve;

pub(crate) use objects::Asked;
pub(crate) use serve::Cut;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quarry::cluster::{Cluster, PATIENCE};
use serde_json::{Value, json};
use tokio::sync::watch;

use objects::Objects;

/// The namespace that the driver is installed in.
pub(crate) const NAMESPACE: &str = "quarry";

/// The service account of the nodes.
pub(crate) const ACCOUNT: &str = "quarry-node";

/// The list of volume groups that are declared lost.
const LOST: (&str, &str) = ("/api/v1/namespaces/quarry/configmaps", "quarry-lost");

/// What a request is answered with instead.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// This status.
    Code(u16),
    /// Nothing, ever.
    Silence,
}

struct Rule {
    method: String,
    path: String,
    fault: Fault,
}

struct State {
    objects: Objects,
    rules: Vec<Rule>,
    reviews: HashMap<String, Value>,
}

/// The server; clones are the same.
#[derive(Clone)]
pub(crate) struct ApiServer {
    state: Arc<Mutex<State>>,
    /// Told after every change and every request.
    news: watch::Sender<u64>,
    /// Told when all watches are to break.
    breaks: watch::Sender<u64>,
}

impl ApiServer {
    /// An empty cluster but for what every cluster and the chart have.
    pub(crate) fn new() -> Self {
        let state = State { objects: Objects::default(), rules: Vec::new(), reviews: HashMap::new() };
        let (news, breaks) = (watch::channel(0).0, watch::channel(0).0);
        let server = Self { state: Arc::new(Mutex::new(state)), news, breaks };
        server.put("/api/v1/namespaces", json!({"metadata": {"name": "kube-system"}}));
        let ours = |kind: &str| format!("/api/v1/namespaces/{NAMESPACE}/{kind}");
        server.put(&ours("secrets"), json!({"metadata": {"name": "quarry-ca", "namespace": NAMESPACE}}));
        for name in ["quarry-ca", "quarry-lost"] {
            server.put(&ours("configmaps"), json!({"metadata": {"name": name, "namespace": NAMESPACE}}));
        }
        server
    }

    /// Makes these the volume groups that are declared lost.
    pub(crate) fn declare_lost(&self, groups: &[&str]) {
        let data: serde_json::Map<String, Value> =
            groups.iter().map(|vg| ((*vg).to_owned(), json!("declared by a test"))).collect();
        let metadata = json!({"name": LOST.1, "namespace": NAMESPACE});
        self.put(LOST.0, json!({"metadata": metadata, "data": data}));
    }

    /// The volume groups that are declared lost.
    pub(crate) fn declared_lost(&self) -> Vec<String> {
        let map = self.get(LOST.0, LOST.1).unwrap();
        map["data"].as_object().map(|data| data.keys().cloned().collect()).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn told(&self) {
        self.news.send_modify(|number| *number += 1);
    }

    /// The cluster, for whoever asks without a socket in between.
    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(kube::Client::new(self.service(), NAMESPACE), NAMESPACE)
    }

    /// The cluster, and what can cut its user off.
    pub(crate) fn cluster_with_cut(&self) -> (Cluster, Cut) {
        let cut = Cut::default();
        (Cluster::new(kube::Client::new(self.service_behind(cut.clone()), NAMESPACE), NAMESPACE), cut)
    }

    /// Makes or changes an object, as somebody else would.
    pub(crate) fn put(&self, collection: &str, object: Value) {
        self.state().objects.put(collection, object);
        self.told();
    }

    /// Removes an object, as somebody else would.
    pub(crate) fn delete(&self, collection: &str, name: &str) {
        self.state().objects.remove(collection, name);
        self.told();
    }

    /// A Node with these labels.
    pub(crate) fn put_node(&self, name: &str, labels: Value) {
        self.put("/api/v1/nodes", json!({"metadata": {"name": name, "labels": labels}}));
    }

    pub(crate) fn get(&self, collection: &str, name: &str) -> Option<Value> {
        self.state().objects.get(collection, name)
    }

    /// All objects of a collection.
    pub(crate) fn list(&self, collection: &str) -> Vec<Value> {
        let list = self.state().objects.list(collection, None, None);
        list["items"].as_array().unwrap().clone()
    }

    /// The labels of a Node.
    pub(crate) fn labels(&self, node: &str) -> Vec<String> {
        let node = self.get("/api/v1/nodes", node).unwrap();
        let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.keys().cloned().collect()
    }

    /// The reasons and notes of all events about objects of that name.
    pub(crate) fn events(&self, about: &str) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let events = self.state().objects.all("events");
        let about = events.iter().filter(|event| event["regarding"]["name"] == about);
        about.map(|event| (text(&event["reason"]), text(&event["note"]))).collect()
    }

    /// Answers reviews of the token with this status.
    pub(crate) fn know_token(&self, token: &str, status: Value) {
        self.state().reviews.insert(token.to_owned(), status);
    }

    /// From now on meets such requests with a fault. An empty text matches all.
    pub(crate) fn fault(&self, method: &str, path: &str, fault: Fault) {
        self.state().rules.push(Rule { method: method.to_owned(), path: path.to_owned(), fault });
    }

    /// Faults are over.
    pub(crate) fn heal(&self) {
        self.state().rules.clear();
    }

    /// Breaks the watches that are open.
    pub(crate) fn break_watches(&self) {
        self.breaks.send_modify(|number| *number += 1);
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state().objects.asked.clone()
    }

    pub(crate) fn asked_for(&self, method: &str, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method.contains(method) && asked.path.contains(path)).count()
    }

    /// Has a new value after every change and every request.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Waits until something holds. What it looks at must be this server's.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let mut news = self.news.subscribe();
        let wait = async {
            while !holds(self) {
                news.changed().await.unwrap();
            }
        };
        // Longer than any one question may take, also where time is paused.
        tokio::time::timeout(PATIENCE * 12, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    fn fault_for(&self, method: &str, path: &str) -> Option<Fault> {
        let state = self.state();
        let meets =
            |rule: &&Rule| (rule.method.is_empty() || rule.method == method) && path.contains(&rule.path);
        state.rules.iter().find(meets).map(|rule| rule.fault)
    }
}

/// A token that ends after that time, and the API server's word on it where it is a node's.
pub(crate) fn token(server: &ApiServer, node: &str, number: u32, lasts: Duration) -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let end = std::time::SystemTime::now() + lasts;
    let end = end.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"exp": end, "sub": node, "jti": number}).to_string();
    let token = format!("e30.{}.c2ln", engine.encode(claims));
    server.know_token(&token, good(node));
    token
}

/// A review's status for a good token of a node.
pub(crate) fn good(node: &str) -> Value {
    json!({
        "authenticated": true,
        "audiences": ["lvm.csi.quarry"],
        "user": {
            "username": format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"),
            "extra": {
                "authentication.kubernetes.io/node-name": [node],
                "authentication.kubernetes.io/pod-name": [format!("quarry-node-{node}")],
            },
        },
    })
}
