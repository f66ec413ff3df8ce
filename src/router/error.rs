//! The codes of what the controller answers itself. What a node answers is handed back as it is.
//!
//! csi-provisioner takes UNAVAILABLE for "may still be running" and asks the same node again; with
//! RESOURCE_EXHAUSTED the scheduler chooses another. Whoever answers the latter here has made sure that
//! GetCapacity says the same at that moment.

use tonic::{Code, Status};

use super::contest::Disputed;
use crate::cluster::{ClusterError, LabelError, vg_label};
use crate::types::{Bytes, NodeName, VgUuid, VolumeId, chain};

/// Why a call was not passed on, or not answered as its node answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum RouteError {
    /// The node may come back any moment, or may have made the volume already.
    #[error("node {0} is not connected to this controller now: the call is tried again when it is")]
    Away(NodeName),
    /// The node is gone, and has nothing of that name.
    #[error("node {0} has not been connected for over a minute: no volume can be made there now")]
    Gone(NodeName),
    /// No node is there at all.
    #[error("no node is connected to this controller")]
    Nobody,
    /// This controller has only just started.
    #[error("this controller has just started, and not all nodes have connected yet: {0}")]
    New(String),
    /// The API server has not listed the nodes, so nobody knows which labels they have.
    #[error("this controller has not been told the nodes of the cluster yet: its log says more")]
    Unlisted,
    /// No node that may hold the volume has room for it.
    #[error("no node that the volume may be made on has room for {size}: {offers}")]
    Full { size: Bytes, offers: String },
    /// It is asked for in a place that nobody knows.
    #[error("the places asked for have topology segments that no node of this driver has")]
    Nowhere,
    /// Nobody shows the volume's group.
    #[error(
        "volume group {vg} of volume {id} is shown by no connected node: its node must come back, or its \
         disks be connected to another one. If it is lost for good, declare it lost: see quarry lost"
    )]
    Unseen { id: VolumeId, vg: VgUuid },
    /// Nobody shows the volume's group, and whether it is lost is not known.
    #[error(
        "volume {id} is shown by no connected node, and whether its volume group is lost is not known: {}",
        chain(source)
    )]
    Unsaid { id: VolumeId, source: ClusterError },
    /// Two nodes show the volume's group.
    #[error(
        "volume group {vg} is shown by nodes {}: nothing is changed in it until only one shows it", .nodes.join(" and ")
    )]
    Twice { vg: VgUuid, nodes: Vec<String> },
    /// Something was to be made or changed in a group that another node may have.
    #[error(
        "volume group {vg} is shown by node {node}, and its label {} is still on node {on}: it moves once that \
         node has been away, or without the group, for a minute",
        vg_label(vg)
    )]
    Elsewhere { vg: VgUuid, node: String, on: String },
    /// Something was to be made or changed in a group of which nobody knows which node has a copy.
    #[error("{0}")]
    Disputed(Disputed),
    /// The volume is made, and cannot be used before its node has the label.
    #[error("volume {id} is made, and its node cannot be labelled yet: {}", chain(source))]
    Label { id: String, source: LabelError },
    /// The same call is being worked on.
    #[error("a place for this volume is being chosen already")]
    Busy,
    /// A node answered what no node answers.
    #[error("node {node} answered with {what}")]
    Strange { node: NodeName, what: String },
}

impl RouteError {
    fn code(&self) -> Code {
        match self {
            Self::Away(_)
            | Self::New(_)
            | Self::Unlisted
            | Self::Unseen { .. }
            | Self::Unsaid { .. }
            | Self::Twice { .. }
            | Self::Elsewhere { .. }
            | Self::Disputed(_)
            | Self::Label { .. } => Code::Unavailable,
            Self::Gone(_) | Self::Nobody | Self::Full { .. } | Self::Nowhere => Code::ResourceExhausted,
            Self::Busy => Code::Aborted,
            Self::Strange { .. } => Code::Internal,
        }
    }
}

impl From<RouteError> for Status {
    fn from(error: RouteError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
