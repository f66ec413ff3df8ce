use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::vg_label::groups_of;
use super::{Cluster, PATIENCE};
use crate::types::VgUuid;

/// How many nodes come in one answer of the first listing.
const PAGE: u32 = 500;

/// What is kept of a Node object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownNode {
    /// The object's UID, which tells a node from its successor of the same name.
    pub uid: String,
    /// The groups whose label it has.
    pub groups: BTreeSet<VgUuid>,
}

/// The nodes of the cluster, as the watch last showed them.
#[derive(Debug, Clone, Default)]
pub struct KnownNodes {
    /// Whether the watch works: what it shows is then true but for the moment that news take.
    pub live: bool,
    /// By name.
    pub nodes: HashMap<String, KnownNode>,
}

impl KnownNodes {
    /// Whether the nodes were listed ever.
    pub fn is_listed(&self) -> bool {
        self.live || !self.nodes.is_empty()
    }

    /// The nodes that have the group's label, in order.
    pub fn labelled(&self, vg: &VgUuid) -> Vec<&str> {
        let has = self.nodes.iter().filter(|(_, node)| node.groups.contains(vg));
        let mut names: Vec<&str> = has.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

/// The one watch of the cluster's nodes.
#[derive(Debug, Clone)]
pub struct Nodes {
    known: watch::Receiver<Arc<KnownNodes>>,
}

impl Nodes {
    /// The nodes, and what watches them: it is to be run until `stop` is cancelled.
    pub fn new(
        cluster: &Cluster,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (sender, known) = watch::channel(Arc::default());
        let api: Api<PartialObjectMeta<Node>> = Api::all(cluster.client.clone());
        (Self { known }, async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follow(api, &sender) => {}
            }
        })
    }

    /// What is known now.
    pub fn known(&self) -> Arc<KnownNodes> {
        Arc::clone(&self.known.borrow())
    }

    /// What is known, once the watch works; `None` if it does not come to that within [`PATIENCE`].
    pub async fn live(&self) -> Option<Arc<KnownNodes>> {
        let mut known = self.known.clone();
        let live = tokio::time::timeout(PATIENCE, known.wait_for(|known| known.live)).await;
        live.ok()?.ok().map(|known| Arc::clone(&known))
    }

    /// Waits until something about the nodes changed since it was last asked. `false` if nothing ever will.
    pub async fn changed(&mut self) -> bool {
        self.known.changed().await.is_ok()
    }
}

/// Keeps `known` as the API server shows the nodes. Comes to no end: a watch that fails is taken up again.
async fn follow(api: Api<PartialObjectMeta<Node>>, known: &watch::Sender<Arc<KnownNodes>>) {
    let events = watcher(api, Config::default().page_size(PAGE)).default_backoff();
    let mut events = pin!(events);
    let mut listed = HashMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => apply(known, &mut listed, event),
            Err(error) => lost(known, &error),
        }
    }
}

fn lost(known: &watch::Sender<Arc<KnownNodes>>, error: &watcher::Error) {
    tracing::warn!(%error, "the watch of the nodes broke: trying again");
    known.send_if_modified(|known| std::mem::replace(&mut Arc::make_mut(known).live, false));
}

fn apply(
    known: &watch::Sender<Arc<KnownNodes>>,
    listed: &mut HashMap<String, KnownNode>,
    event: Event<PartialObjectMeta<Node>>,
) {
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(node) => drop(listed.insert(node.name_any(), look(&node))),
        Event::InitDone => {
            let nodes = std::mem::take(listed);
            tracing::info!(nodes = nodes.len(), "watching the nodes");
            known.send_replace(Arc::new(KnownNodes { live: true, nodes }));
        }
        Event::Apply(node) => drop(change(known, |known| {
            let seen = look(&node);
            let before = known.nodes.insert(node.name_any(), seen.clone());
            before.as_ref() != Some(&seen)
        })),
        Event::Delete(node) => drop(change(known, |known| known.nodes.remove(&node.name_any()).is_some())),
    }
}

/// A watch that shows something works, whatever it was before.
fn change(known: &watch::Sender<Arc<KnownNodes>>, change: impl FnOnce(&mut KnownNodes) -> bool) -> bool {
    known.send_if_modified(|known| {
        let known = Arc::make_mut(known);
        let was_live = std::mem::replace(&mut known.live, true);
        change(known) || !was_live
    })
}

fn look(node: &PartialObjectMeta<Node>) -> KnownNode {
    KnownNode { uid: node.uid().unwrap_or_default(), groups: groups_of(node.labels()) }
}
