//! A claim is asked to grow while its node has no power: that waits, is told, and holds up nobody else.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;

use super::{LARGEST, writers_grow};
use crate::scenarios::grow::is_infeasible;
use crate::scenarios::requests::{fills, reads, told, writes};
use crate::scenarios::volumes::{LIMIT, MIB, Mode, bytes_of, ensure, on, pair, resize, resized};
use crate::{Cluster, Error, Node, Space, wait};

const NAME: &str = "cut-off";
const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;

pub(super) async fn grows_when_the_node_is_back(
    cluster: &Cluster,
    space: &Space,
    node: &Node,
) -> Result<(), Error> {
    space.apply(&pair(NAME, SIZE, Mode::Filesystem, &on(node.name()))).await?;
    space.pod_ready(NAME, LIMIT).await?;
    writes(space, NAME).await?;
    node.cut_power().await?;
    resize(space, NAME, LARGER).await?;
    told(space, NAME, "VolumeResizeFailed").await?;
    waits(space).await?;
    writers_grow(space, LARGEST).await?;
    waits(space).await?;

    node.start().await?;
    cluster.node_ready(node.name(), LIMIT).await?;
    resized(space, NAME, LARGER).await?;
    reads(space, NAME).await?;
    let is_grown = || fills(space, NAME, "/data", LARGER);
    wait::try_until("the file system to be grown after the node's start", LIMIT, is_grown).await
}

/// The claim has its old size and may still get the new one.
async fn waits(space: &Space) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let claim = claims.get(NAME).await.map_err(Error::api(format!("read the claim {NAME}")))?;
    ensure(!is_infeasible(Some(&claim)), || {
        format!("{NAME} is told that it cannot grow, where its node is down")
    })?;
    let size = claim.status.and_then(|status| bytes_of(status.capacity?.get("storage")?));
    ensure(size == Some(SIZE), || format!("{NAME} has {size:?} bytes by its claim while its node is down"))
}
