use std::fmt;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::api::ask;
use super::vg_label::{VALUE, groups_of, vg_label};
use super::{Cluster, ClusterError, Nodes};
use crate::types::VgUuid;

/// Who wrote a field, in the API server's record of it.
const MANAGER: &str = "quarry-controller";

/// A label that a node does not have.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// Another node has it, and may have the group.
    #[error(
        "volume group {vg} is shown by node {node}, and its label is still on node {on}: it moves once that \
         node has been away, or without the group, for a minute"
    )]
    Elsewhere {
        /// The group.
        vg: VgUuid,
        /// The node that is to have the label.
        node: String,
        /// The node that has it.
        on: String,
    },
    /// It was written, and is not there: something in the cluster takes it away.
    #[error(
        "the label {} was written to node {node} and is not there: an admission webhook or policy may remove it",
        vg_label(vg)
    )]
    Taken {
        /// The group.
        vg: VgUuid,
        /// The node.
        node: String,
    },
    /// Nobody knows which nodes have labels.
    #[error("the watch of the cluster's nodes does not work: the log says more")]
    Blind,
    /// The API server did not do it.
    #[error(transparent)]
    Api(#[from] ClusterError),
}

/// The labels of nodes under [`crate::types::VG_KEY_PREFIX`], and no others.
#[derive(Clone)]
pub struct Labels {
    api: Api<PartialObjectMeta<Node>>,
    nodes: Nodes,
}

impl Labels {
    /// The labels of the cluster's nodes, which `nodes` watches.
    pub fn new(cluster: &Cluster, nodes: Nodes) -> Self {
        Self { api: Api::all(cluster.client.clone()), nodes }
    }

    /// Sees to it that the node has the group's label. Comes back only once the API server has shown the
    /// Node with it.
    ///
    /// # Errors
    /// See [`LabelError`].
    pub async fn ensure(&self, node: &str, vg: &VgUuid) -> Result<(), LabelError> {
        let known = self.nodes.live().await.ok_or(LabelError::Blind)?;
        if known.nodes.get(node).is_some_and(|known| known.groups.contains(vg)) {
            return Ok(());
        }
        if let Some(on) = known.labelled(vg).into_iter().find(|name| *name != node) {
            return Err(LabelError::Elsewhere { vg: vg.clone(), node: node.to_owned(), on: on.to_owned() });
        }
        self.add(node, vg).await
    }

    /// Gives the node the group's label, whoever else has it.
    ///
    /// # Errors
    /// The API server did not do it, or shows the node without it.
    pub async fn add(&self, node: &str, vg: &VgUuid) -> Result<(), LabelError> {
        let written = self.patch("label a node", node, vg, json!(VALUE)).await?;
        if !groups_of(written.labels()).contains(vg) {
            return Err(LabelError::Taken { vg: vg.clone(), node: node.to_owned() });
        }
        tracing::info!(node, %vg, "the node has the volume group's label now");
        Ok(())
    }

    /// Takes the group's label away from the node. A node that is gone has none.
    ///
    /// # Errors
    /// The API server did not do it.
    pub async fn remove(&self, node: &str, vg: &VgUuid) -> Result<(), ClusterError> {
        match self.patch("take a label from a node", node, vg, Value::Null).await {
            Ok(_) => tracing::info!(node, %vg, "the node has the volume group's label no more"),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A merge patch names one label and leaves all else as it is (RFC 7386).
    async fn patch(
        &self,
        what: &'static str,
        node: &str,
        vg: &VgUuid,
        value: Value,
    ) -> Result<PartialObjectMeta<Node>, ClusterError> {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { vg_label(vg): value } } }));
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        ask(what, self.api.patch(node, &parameters, &patch)).await
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labels").finish_non_exhaustive()
    }
}
