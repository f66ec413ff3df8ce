//! A volume that no pod uses grows at once, and its file system when a pod comes.

use kube::Api;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::{LARGER, SIZE, XFS};
use crate::scenarios::grow::is_infeasible;
use crate::scenarios::requests::{Claim, fills, reads, writes};
use crate::scenarios::volumes::{
    GIB, LIMIT, Mode, delete_pod, ensure, node_of, pod, resize, resized, volume, volumes_on,
};
use crate::{Cluster, Error, Node, Space, wait};

const NAME: &str = "unused";
/// More than any group of the lab has.
const TOO_LARGE: u64 = 1024 * GIB;

pub(super) async fn grows_at_the_next_use(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.apply(&Claim::new(NAME, SIZE, Mode::Filesystem).class(XFS).manifest()).await?;
    space.apply(&pod(NAME, NAME, Mode::Filesystem, "")).await?;
    let first = space.pod_ready(NAME, LIMIT).await?;
    let node = node_of(cluster, &first)?;
    writes(space, NAME).await?;
    delete_pod(&space.api(), NAME).await?;

    resize(space, NAME, TOO_LARGE).await?;
    let claims: Api<PersistentVolumeClaim> = space.api();
    wait::until(&claims, NAME, "1 TiB for a claim without a pod to be infeasible", LIMIT, is_infeasible)
        .await?;
    has(space, node, SIZE).await?;
    resize(space, NAME, LARGER).await?;
    resized(space, NAME, LARGER).await?;
    has(space, node, LARGER).await?;

    space.apply(&pod(NAME, NAME, Mode::Filesystem, "")).await?;
    space.pod_ready(NAME, LIMIT).await?;
    reads(space, NAME).await?;
    fills(space, NAME, "/data", LARGER).await
}

/// The claim's LV has this size.
async fn has(space: &Space, node: &Node, size: u64) -> Result<(), Error> {
    let name = volume(space, NAME).await?.name_any();
    let found = volumes_on(node).await?.get(&name).copied();
    ensure(found == Some(size), || format!("the LV {name} should have {size} bytes, and has {found:?}"))
}
