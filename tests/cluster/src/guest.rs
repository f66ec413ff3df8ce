//! What runs inside a guest to make it a node: the machine's preparation, the node's services, and the agent.

mod agent;
mod config;
mod disk;
mod images;
mod prepare;
mod services;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::unistd::dup2_stderr;
use serde::{Deserialize, Serialize};

use crate::program::open_log;
use crate::{Error, paths};

pub(crate) use config::containerd as containerd_config;
pub(crate) use images::{NAMESPACE, fill_disk};

/// What this program writes inside a guest, in the folder that host and node share.
pub(crate) const LOG: &str = "node.log";

/// All that a node has to know of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    /// The host's address, where the control plane and the cluster's DNS are.
    pub(crate) gateway: Ipv4Addr,
    pub(crate) pod_subnet: String,
    /// All pods of all nodes.
    pub(crate) cluster_subnet: String,
    /// The other nodes' pods, and the nodes by which they are reached.
    pub(crate) routes: Vec<(String, Ipv4Addr)>,
    /// The volume group to make on each disk after the first, if any.
    pub(crate) groups: Vec<Option<String>>,
    /// The folder of programs.
    pub(crate) bin: PathBuf,
    pub(crate) credentials: Credentials,
    /// The folder that host and node share.
    pub(crate) folder: PathBuf,
}

/// The files by which a node and the API server know each other. The node sees them where the host does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Credentials {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) kubelet: PathBuf,
    pub(crate) kube_proxy: PathBuf,
}

impl Order {
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(Error::other)?;
        paths::write(path, text)
    }

    fn load(path: &Path) -> Result<Order, Error> {
        serde_json::from_str(&paths::read(path)?).map_err(Error::other)
    }
}

/// The first disk holds what containerd and the kubelet keep; the others are for volume groups.
fn disks() -> Result<(PathBuf, Vec<PathBuf>), Error> {
    let mut disks = lab::disks();
    if disks.is_empty() {
        return Err(Error::other("this is no guest, or one without disks"));
    }
    let first = disks.remove(0);
    Ok((first, disks))
}

/// Turns this guest into a node, and serves until the guest's end.
///
/// # Errors
///
/// When the guest cannot be made a node.
pub(crate) async fn node(order: &Path) -> Result<(), Error> {
    let order = Order::load(order)?;
    log_to(&order.folder.join(LOG))?;
    let (first, others) = disks()?;
    prepare::machine(&order).await?;
    disk::attach(&first)?;
    prepare::groups(&others, &order.groups).await?;
    config::write(&order)?;
    let services = services::Services::new(&order);
    services.change(crate::Service::Containerd, crate::agent::Action::Start).await?;
    agent::serve(order.address, services).await
}

/// Sends this program's words, also its last ones, to a file. Each line is on the host at once.
fn log_to(path: &Path) -> Result<(), Error> {
    dup2_stderr(open_log(path)?).map_err(Error::at("log to", path))
}
