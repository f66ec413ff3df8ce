use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::runtime::watcher::{Config, DefaultBackoff, Event};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::api::PAGE;
use super::vg_label::groups_of;
use super::{Cluster, PATIENCE};
use crate::types::{ByGroup, VgUuid};

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
    /// Their names, by the groups whose label they have.
    labelled: ByGroup<String>,
}

impl KnownNodes {
    /// Whether the nodes were listed ever.
    pub fn is_listed(&self) -> bool {
        self.live || !self.nodes.is_empty()
    }

    /// The nodes that have the group's label, in order.
    pub fn labelled(&self, vg: &VgUuid) -> Vec<&str> {
        self.labelled.of(vg).map(String::as_str).collect()
    }

    /// The node is so now, or is gone.
    fn set(&mut self, name: &str, node: Option<KnownNode>) {
        let before = self.nodes.remove(name).unwrap_or_default();
        let now = node.iter().flat_map(|node| &node.groups);
        self.labelled.change(&name.to_owned(), &before.groups, now);
        if let Some(node) = node {
            self.nodes.insert(name.to_owned(), node);
        }
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

/// Keeps `known` as the API server shows the nodes. Comes to no end: whenever the watch breaks, the nodes are listed
/// anew. kube's watcher would go on by itself where it was, and say nothing of it before some node changes: until
/// then nobody could tell whether the watch works.
async fn follow(api: Api<PartialObjectMeta<Node>>, known: &watch::Sender<Arc<KnownNodes>>) {
    let mut pauses = DefaultBackoff::default();
    loop {
        if let Err(error) = list_and_watch(api.clone(), known).await {
            lost(known, &error);
        }
        // They come to no end.
        sleep(pauses.next().unwrap_or(PATIENCE)).await;
    }
}

/// Ends when the watch breaks.
async fn list_and_watch(
    api: Api<PartialObjectMeta<Node>>,
    known: &watch::Sender<Arc<KnownNodes>>,
) -> watcher::Result<()> {
    let mut listed = KnownNodes::default();
    let events = watcher(api, Config::default().page_size(PAGE));
    let taken = |event| {
        apply(known, &mut listed, event);
        ready(Ok(()))
    };
    events.try_for_each(taken).await
}

fn lost(known: &watch::Sender<Arc<KnownNodes>>, error: &watcher::Error) {
    tracing::warn!(%error, "the watch of the nodes broke: trying again");
    known.send_if_modified(|known| std::mem::replace(&mut Arc::make_mut(known).live, false));
}

fn apply(
    known: &watch::Sender<Arc<KnownNodes>>,
    listed: &mut KnownNodes,
    event: Event<PartialObjectMeta<Node>>,
) {
    match event {
        Event::Init => *listed = KnownNodes::default(),
        Event::InitApply(node) => listed.set(&node.name_any(), Some(look(&node))),
        Event::InitDone => {
            let nodes = KnownNodes { live: true, ..std::mem::take(listed) };
            tracing::info!(nodes = nodes.nodes.len(), "watching the nodes");
            known.send_replace(Arc::new(nodes));
        }
        Event::Apply(node) => seen(known, &node.name_any(), Some(look(&node))),
        Event::Delete(node) => seen(known, &node.name_any(), None),
    }
}

/// The watch has shown a node as it is now, or that it is gone. Most of what happens to nodes changes nothing here:
/// then nothing is copied, and nobody is told.
fn seen(known: &watch::Sender<Arc<KnownNodes>>, name: &str, node: Option<KnownNode>) {
    known.send_if_modified(|known| {
        if known.nodes.get(name) == node.as_ref() {
            return false;
        }
        Arc::make_mut(known).set(name, node);
        true
    });
}

fn look(node: &PartialObjectMeta<Node>) -> KnownNode {
    KnownNode { uid: node.uid().unwrap_or_default(), groups: groups_of(node.labels()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(letters: &str) -> BTreeSet<VgUuid> {
        let uuid = |one| format!("{one}vlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4").parse().unwrap();
        letters.chars().map(uuid).collect()
    }

    fn node(letters: &str) -> Option<KnownNode> {
        Some(KnownNode { uid: "uid".to_owned(), groups: groups(letters) })
    }

    #[test]
    fn a_label_has_the_nodes_that_have_it_now() {
        let known = watch::channel(Arc::new(KnownNodes::default())).0;
        let has = |vg: &str| {
            let known = Arc::clone(&known.borrow());
            known.labelled(groups(vg).first().unwrap()).join(" ")
        };
        seen(&known, "n2", node("ab"));
        seen(&known, "n1", node("b"));
        assert_eq!([has("a"), has("b"), has("c")], ["n2", "n1 n2", ""]);
        seen(&known, "n2", node("bc"));
        assert_eq!([has("a"), has("b"), has("c")], ["", "n1 n2", "n2"]);
        seen(&known, "n2", None);
        seen(&known, "n3", None);
        assert_eq!([has("a"), has("b"), has("c")], ["", "n1", ""]);
        let groups = known.borrow().labelled.groups().count();
        assert_eq!(groups, 1, "nothing is kept of labels that nobody has");
    }

    #[test]
    fn news_that_change_nothing_are_told_to_nobody() {
        let known = watch::channel(Arc::new(KnownNodes::default())).0;
        let mut told = known.subscribe();
        let mut is_told = || {
            let news = told.has_changed().unwrap();
            told.mark_unchanged();
            news
        };
        seen(&known, "n1", None);
        assert!(!is_told());
        seen(&known, "n1", node("a"));
        assert!(is_told());
        seen(&known, "n1", node("a"));
        assert!(!is_told());
        seen(&known, "n1", Some(KnownNode { uid: "successor".to_owned(), ..node("a").unwrap() }));
        assert!(is_told());
    }
}
