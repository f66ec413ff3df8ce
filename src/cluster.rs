//! The Kubernetes cluster: everything that names the kube crate, and nothing that knows a volume.
//!
//! The controller alone uses it; a node needs no permission of the API server at all. What is here asks or
//! tells the API server one thing at a time, each within [`PATIENCE`], and keeps two watches: that of the
//! nodes' metadata, and as leader that of the claims. What is decided by them is decided elsewhere.

mod api;
pub mod authority;
mod claims;
mod classes;
mod election;
mod error;
mod events;
mod labels;
mod lease;
mod lost_groups;
mod nodes;
mod record;
mod replicas;
mod review;
mod sealed;
mod survey;
mod token;
mod vg_label;
mod waiting;

pub use api::{Cluster, ConnectError, PATIENCE};
pub use claims::{ClaimView, VolumeHandles};
pub use classes::{ClassView, StartingPod};
pub use election::{ELECTION, Election, Leadership};
pub use error::ClusterError;
pub use events::{Events, Notice, Subject};
pub use labels::{LabelError, Labels};
pub use lost_groups::LostGroups;
pub use nodes::{KnownNode, KnownNodes, Nodes};
pub use record::LinkRecord;
pub use replicas::{REPLICA_LABEL, Replica, ReplicaName, Replicas};
pub use review::{AUDIENCE, NodeToken, TokenError, Tokens};
pub use survey::{NodeView, VolumeView};
pub use vg_label::vg_label;
pub use waiting::{WaitingClaim, WaitingClaims};
