use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};

use super::Cluster;
use super::api::PAGE;

/// The annotation by which the scheduler says which node it chose.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim that has no volume yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingClaim {
    /// The claim's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object's UID.
    pub uid: String,
    /// The name of its StorageClass.
    pub class: String,
    /// Whether the scheduler has chosen a node for it.
    pub has_node: bool,
}

type Key = (String, String);

/// The claims of the cluster that wait for a volume, whoever is to make it.
#[derive(Debug, Clone, Default)]
pub struct WaitingClaims(Arc<Mutex<BTreeMap<Key, WaitingClaim>>>);

impl WaitingClaims {
    /// The claims, and what watches them, which comes to no end: a watch that fails is taken up again.
    pub fn new(cluster: &Cluster) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let waiting = Self::default();
        let api: Api<PersistentVolumeClaim> = Api::all(cluster.client.clone());
        let follower = waiting.clone();
        (waiting, async move { follower.follow(api).await })
    }

    /// Those that wait now.
    pub fn all(&self) -> Vec<WaitingClaim> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, WaitingClaim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(self, api: Api<PersistentVolumeClaim>) {
        let events = watcher(api, Config::default().page_size(PAGE)).default_backoff();
        let (mut events, mut listed) = (pin!(events), BTreeMap::new());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(claim)) => apply(&mut listed, &claim),
                Ok(Event::InitDone) => *self.known() = std::mem::take(&mut listed),
                Ok(Event::Apply(claim)) => apply(&mut self.known(), &claim),
                Ok(Event::Delete(claim)) => drop(self.known().remove(&key(&claim))),
                Err(error) => tracing::warn!(%error, "the watch of the claims broke: trying again"),
            }
        }
    }
}

fn key(claim: &PersistentVolumeClaim) -> Key {
    (claim.namespace().unwrap_or_default(), claim.name_any())
}

/// All others are forgotten, so that a cluster with many claims costs no memory here.
fn apply(waiting: &mut BTreeMap<Key, WaitingClaim>, claim: &PersistentVolumeClaim) {
    match look(claim) {
        Some(view) => drop(waiting.insert(key(claim), view)),
        None => drop(waiting.remove(&key(claim))),
    }
}

fn look(claim: &PersistentVolumeClaim) -> Option<WaitingClaim> {
    let spec = claim.spec.as_ref()?;
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let bound = spec.volume_name.as_ref().is_some_and(|name| !name.is_empty());
    if bound || claim.metadata.deletion_timestamp.is_some() || phase.is_some_and(|phase| phase != "Pending") {
        return None;
    }
    let (namespace, name) = key(claim);
    Some(WaitingClaim {
        namespace,
        name,
        uid: claim.uid()?,
        class: spec.storage_class_name.clone().filter(|class| !class.is_empty())?,
        has_node: claim.annotations().contains_key(SELECTED_NODE),
    })
}
