//! Volumes grow whatever file system is on them and whether anybody uses them: under pods that write all the time,
//! while no pod has them, ten at once, and after a node was down. What is asked for too much can be taken back.

mod at_once;
mod node_down;
mod unused;

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::requests::{Claim, begin_to_write, fills, were_not_stopped, writes_on};
use super::volumes::{LIMIT, MIB, Mode, clear, node_of, on, pod, resize, resized};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Space, driver};

/// A class of the examples.
const XFS: &str = "quarry-xfs";
const BTRFS: &str = "grow-btrfs";
const BTRFS_CLASS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: grow-btrfs}\n\
                           provisioner: lvm.csi.quarry\nvolumeBindingMode: WaitForFirstConsumer\n\
                           allowVolumeExpansion: true\nparameters: {csi.storage.k8s.io/fstype: btrfs}\n";
/// The pods that write all the time: a claim of this name, of this class.
const WRITERS: [(&str, &str); 2] = [("on-xfs", XFS), ("on-btrfs", BTRFS)];

/// What every file system fits on.
const SIZE: u64 = 320 * MIB;
const LARGER: u64 = 640 * MIB;
const LARGEST: u64 = 1280 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("grow-any-time").await?;
    space.apply(BTRFS_CLASS).await?;
    let (steady, other) = nodes(cluster).await?;
    let writers = start_writers(&space, steady).await?;
    writers_grow(&space, LARGER).await?;
    unused::grows_at_the_next_use(cluster, &space).await?;
    let seconds = at_once::ten_grow(cluster, &space).await?;
    node_down::grows_when_the_node_is_back(cluster, &space, other).await?;
    were_not_stopped(&space, &writers).await?;
    for (name, _) in WRITERS {
        writes_on(&space, name).await?;
    }
    clear(cluster, &space).await?;
    space.delete(BTRFS_CLASS).await?;
    Ok(Remark::from(format!(
        "xfs and btrfs under pods that write; unused; a node down meanwhile; ten at once in {seconds:.1} s"
    )))
}

/// The node that the controller is on, which stays up, and another one.
async fn nodes(cluster: &Cluster) -> Result<(&Node, &Node), Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    let params = ListParams::default().labels("app.kubernetes.io/component=controller");
    let all = pods.list(&params).await.map_err(Error::api("list the controller's pods"))?;
    let there = all.iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
    let steady = node_of(cluster, there.ok_or_else(|| Error::other("there is no controller"))?)?;
    let other = cluster.nodes().iter().find(|node| node.name() != steady.name());
    let other = other.ok_or_else(|| Error::other("this needs a node beside that of the controller"))?;
    Ok((steady, other))
}

/// Returns the pods as they then are.
async fn start_writers(space: &Space, node: &Node) -> Result<Vec<Pod>, Error> {
    let mut pods = Vec::new();
    for (name, class) in WRITERS {
        space.apply(&Claim::new(name, SIZE, Mode::Filesystem).class(class).manifest()).await?;
        space.apply(&pod(name, name, Mode::Filesystem, &on(node.name()))).await?;
    }
    for (name, _) in WRITERS {
        pods.push(space.pod_ready(name, LIMIT).await?);
        fills(space, name, "/data", SIZE).await?;
        begin_to_write(space, name).await?;
    }
    Ok(pods)
}

/// The volumes of the pods that write grow to this size, and their file systems with them.
async fn writers_grow(space: &Space, size: u64) -> Result<(), Error> {
    try_join_all(WRITERS.iter().map(|(name, _)| resize(space, name, size))).await?;
    for (name, _) in WRITERS {
        resized(space, name, size).await?;
        fills(space, name, "/data", size).await?;
        writes_on(space, name).await?;
    }
    Ok(())
}
