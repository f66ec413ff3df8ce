//! The authority that signs the controllers' certificates, and so says to nodes whom they may talk to.
//!
//! Its keys are in a Secret, its certificates in a ConfigMap that every node has mounted. Both are made empty
//! by whoever installs the driver, and filled by the first controller. An authority is followed by another
//! long before it ends: the next one's certificate is given to all nodes first, it signs only once there was
//! time for that to arrive, and the former one stays with the nodes until nothing that it signed is in
//! use. Every replica makes itself a key, in memory, and signs it.

mod issue;
mod keeper;
mod state;
mod store;

pub use issue::{IssueError, Leaf};
pub use keeper::{Authority, AuthorityError, Names};
pub use store::StoreError;

use std::time::Duration;

/// The name that certificates of controllers are for, whatever address they are dialled at.
pub const SERVER_NAME: &str = "quarry-controller";

/// How far the clock of a node may lag behind: by so much certificates are good before they are made.
const SKEW: Duration = Duration::from_secs(3600);

/// How long an authority is good.
const LIFE: Duration = Duration::from_secs(3 * 365 * DAY);

/// How long before an authority's end its successor is made.
const SUCCESSION: Duration = Duration::from_secs(365 * DAY);

/// How long the nodes have to get the next authority's certificate before it signs: the kubelet brings a
/// changed ConfigMap within about two minutes, and a node that is off gets it when it comes back.
const ARRIVAL: Duration = Duration::from_secs(3600);

/// How long a controller's certificate is good.
const LEAF_LIFE: Duration = Duration::from_secs(7 * DAY);

/// The age at which a controller makes itself another.
const LEAF_RENEWAL: Duration = Duration::from_secs(2 * DAY);

const DAY: u64 = 24 * 3600;
