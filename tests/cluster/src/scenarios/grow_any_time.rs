//! Volumes grow whatever file system is on them and whether anybody uses them: under pods that write all the time,
//! while no pod has them, ten at once, and after a node was down. What is asked for too much can be taken back.

mod at_once;
mod node_down;
mod unused;

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;

use super::requests::{Claim, begin_to_write, class, fills, were_not_stopped, writes_on};
use super::volumes::{LIMIT, MIB, Mode, clear, on, pod, resize, resized, steady_and_other};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Space};

/// A class of the examples.
const XFS: &str = "quarry-xfs";
const BTRFS: &str = "grow-btrfs";
/// The pods that write all the time: a claim of this name, of this class.
const WRITERS: [(&str, &str); 2] = [("on-xfs", XFS), ("on-btrfs", BTRFS)];

/// What every file system fits on.
const SIZE: u64 = 320 * MIB;
const LARGER: u64 = 640 * MIB;
const LARGEST: u64 = 1280 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("grow-any-time").await?;
    let btrfs = class(BTRFS, "parameters: {csi.storage.k8s.io/fstype: btrfs}");
    space.apply(&btrfs).await?;
    let (steady, other) = steady_and_other(cluster).await?;
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
    space.delete(&btrfs).await?;
    Ok(Remark::from(format!(
        "xfs and btrfs under pods that write; unused; a node down meanwhile; ten at once in {seconds:.1} s"
    )))
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
