use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};

use super::api::ask;
use super::{Cluster, ClusterError};

/// The namespace whose UID stands for the cluster: it lives as long as the cluster does.
const CLUSTER_NAMESPACE: &str = "kube-system";

/// What is looked at in a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    /// The object's UID.
    pub uid: String,
    /// The name of the PersistentVolume that it is bound to, or is to be bound to.
    pub volume: Option<String>,
}

/// The handles of all PersistentVolumes of one driver.
pub type VolumeHandles = HashSet<String>;

impl Cluster {
    /// The handles that the PersistentVolumes of the driver hold.
    ///
    /// # Errors
    /// The API server did not tell all of them.
    pub async fn volume_handles(&self, driver: &str) -> Result<VolumeHandles, ClusterError> {
        let volumes = self.volume_views(driver).await?;
        Ok(volumes.into_iter().map(|volume| volume.handle).collect())
    }

    /// The claim of that name; `None` where there is none.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn claim(&self, namespace: &str, name: &str) -> Result<Option<ClaimView>, ClusterError> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let claim = ask("read a claim", api.get_opt(name)).await?;
        Ok(claim.map(|claim| ClaimView {
            uid: claim.uid().unwrap_or_default(),
            volume: claim.spec.and_then(|spec| spec.volume_name).filter(|name| !name.is_empty()),
        }))
    }

    /// The UID of the PersistentVolume of that name; `None` where there is none.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn volume_uid(&self, name: &str) -> Result<Option<String>, ClusterError> {
        let api: Api<PartialObjectMeta<PersistentVolume>> = Api::all(self.client.clone());
        Ok(ask("read a PersistentVolume", api.get_opt(name)).await?.and_then(|volume| volume.uid()))
    }

    /// What tells this cluster from every other one.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn identity(&self) -> Result<String, ClusterError> {
        const WHAT: &str = "read the UID of the namespace kube-system";
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let namespace = ask(WHAT, api.get(CLUSTER_NAMESPACE)).await?;
        let missing = || ClusterError::Strange { what: WHAT, why: "it has none".to_owned() };
        namespace.uid().ok_or_else(missing)
    }
}
