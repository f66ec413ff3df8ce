use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::api::{PAGE, ask};
use super::vg_label::groups_of;
use super::{Cluster, ClusterError};
use crate::types::VgUuid;

/// What somebody sees of a node who looks once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Whether its condition Ready is true.
    pub ready: bool,
    /// The groups whose label it has.
    pub groups: BTreeSet<VgUuid>,
}

/// What somebody sees of a PersistentVolume who looks once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeView {
    /// Its name.
    pub name: String,
    /// What the driver knows the volume by.
    pub handle: String,
    /// The claim that it is for, as `namespace/name`.
    pub claim: Option<String>,
    /// How large it is, as Kubernetes writes it: `10Gi`.
    pub capacity: Option<String>,
}

impl Cluster {
    /// All nodes.
    ///
    /// # Errors
    /// The API server did not tell all of them.
    pub async fn node_views(&self) -> Result<Vec<NodeView>, ClusterError> {
        let view = |node: Node| {
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            let ready = conditions
                .is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
            Some(NodeView { name: node.name_any(), ready, groups: groups_of(node.labels()) })
        };
        all("list the nodes", &Api::all(self.client.clone()), view).await
    }

    /// The PersistentVolumes of one driver.
    ///
    /// # Errors
    /// The API server did not tell all of them.
    pub async fn volume_views(&self, driver: &str) -> Result<Vec<VolumeView>, ClusterError> {
        let api = Api::all(self.client.clone());
        all("list the PersistentVolumes", &api, |volume| view(driver, volume)).await
    }
}

fn view(driver: &str, volume: PersistentVolume) -> Option<VolumeView> {
    let (name, spec) = (volume.name_any(), volume.spec?);
    let csi = spec.csi.filter(|csi| csi.driver == driver)?;
    let claim = spec.claim_ref.and_then(|claim| Some(format!("{}/{}", claim.namespace?, claim.name?)));
    let capacity = spec.capacity.and_then(|mut sizes| sizes.remove("storage")).map(|size| size.0);
    Some(VolumeView { name, handle: csi.volume_handle, claim, capacity })
}

/// What is wanted of all objects of a kind. They come page by page, and nothing else is kept of them.
async fn all<K, T>(
    what: &'static str,
    api: &Api<K>,
    view: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, ClusterError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug + Resource,
{
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let mut page = ListParams::default().limit(PAGE);
        page.continue_token = token;
        let list = ask(what, api.list(&page)).await?;
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        found.extend(list.items.into_iter().filter_map(&view));
        if token.is_none() {
            return Ok(found);
        }
    }
}
