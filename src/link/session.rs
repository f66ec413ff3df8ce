use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Channel;
use crate::types::{NodeName, NodeState};

/// A live link to a node, as the controller has it. Clones are the same link.
#[derive(Clone)]
pub struct Session {
    pub(super) id: u64,
    pub(super) node: NodeName,
    pub(super) object: Arc<str>,
    pub(super) address: SocketAddr,
    pub(super) version: u32,
    pub(super) driver_version: Arc<str>,
    pub(super) channel: Channel,
    pub(super) states: watch::Receiver<Option<NodeState>>,
    /// Cancelled when the link takes no more calls; those that run may go on until it is gone.
    pub(super) ended: CancellationToken,
}

impl Session {
    /// The link's number. No other link of this process has it, and later links have greater ones.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The node, as topology and labels name it.
    pub const fn node(&self) -> &NodeName {
        &self.node
    }

    /// The name of the node's Node object.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// Where it was dialled from.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The protocol version that is spoken.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The version of the node's driver, for people.
    pub fn driver_version(&self) -> &str {
        &self.driver_version
    }

    /// The way to its services.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The node's state: nothing before the first has come, which is a moment after the link was made;
    /// and the last one when the link has ended.
    pub fn states(&self) -> watch::Receiver<Option<NodeState>> {
        self.states.clone()
    }

    /// Cancelled when the link takes no more calls, for whatever reason: it is gone, or the node is
    /// stopping and only ends what runs. Cancelling it does nothing.
    pub fn ended(&self) -> CancellationToken {
        self.ended.child_token()
    }

    /// Ends the link at once. Calls that run are answered UNAVAILABLE; on the node they run to their end.
    /// The node will dial again.
    pub fn close(&self, why: &str) {
        if !self.channel.gone.is_cancelled() {
            tracing::info!(node = %self.node, link = self.id, address = %self.address, why, "closing a link");
            self.ended.cancel();
            self.channel.gone.cancel();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, node, address, version, .. } = self;
        f.debug_struct("Session")
            .field("id", id)
            .field("node", node)
            .field("address", address)
            .field("version", version)
            .finish_non_exhaustive()
    }
}
