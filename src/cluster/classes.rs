use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::api::ask;
use super::{Cluster, ClusterError};

/// How many pods are looked at.
const MOST_PODS: u32 = 500;

/// Pods that have a node, and whose containers do not run yet.
const STARTING: &str = "spec.nodeName!=,status.phase=Pending";

/// What is looked at in a StorageClass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassView {
    /// The driver that makes its volumes.
    pub provisioner: String,
    /// Whether a volume is made only once a pod that uses it has a node.
    pub waits_for_pod: bool,
    /// What its volumes are to be like, in the driver's own words.
    pub parameters: BTreeMap<String, String>,
    /// The topology keys that its volumes' places are chosen by.
    pub topology_keys: BTreeSet<String>,
}

/// A pod that has a node, and does not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartingPod {
    /// Its name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The names of the claims that it uses.
    pub claims: BTreeSet<String>,
}

impl Cluster {
    /// The StorageClass of that name; `None` where there is none.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn class(&self, name: &str) -> Result<Option<ClassView>, ClusterError> {
        let api: Api<StorageClass> = Api::all(self.client.clone());
        let class = ask("read a StorageClass", api.get_opt(name)).await?;
        Ok(class.map(|class| {
            let terms = class.allowed_topologies.unwrap_or_default();
            let parts = terms.into_iter().flat_map(|term| term.match_label_expressions.unwrap_or_default());
            ClassView {
                provisioner: class.provisioner,
                waits_for_pod: class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
                parameters: class.parameters.unwrap_or_default(),
                topology_keys: parts.map(|part| part.key).collect(),
            }
        }))
    }

    /// The pods of a namespace that have a node and do not run yet; where there are very many, some of them.
    ///
    /// # Errors
    /// The API server did not tell.
    pub async fn starting_pods(&self, namespace: &str) -> Result<Vec<StartingPod>, ClusterError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().fields(STARTING).limit(MOST_PODS);
        let pods = ask("list the pods of a namespace", api.list(&params)).await?;
        Ok(pods.items.into_iter().filter_map(starting).collect())
    }
}

fn starting(pod: Pod) -> Option<StartingPod> {
    let name = pod.name_any();
    let spec = pod.spec?;
    let node = spec.node_name.clone().filter(|node| !node.is_empty())?;
    Some(StartingPod { claims: claims(&name, &spec), name, node })
}

/// The claims by name, and those that Kubernetes makes for the pod.
fn claims(pod: &str, spec: &PodSpec) -> BTreeSet<String> {
    let volumes = spec.volumes.iter().flatten();
    let claim = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{pod}-{}", volume.name)),
        (None, None) => None,
    });
    claim.collect()
}
