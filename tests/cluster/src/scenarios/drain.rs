//! A node is drained: the pods that it had volumes for wait for it and say so, its volumes stay as they are, and all is
//! well when it is let back in.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, ResourceExt};

use super::requests::{reads, waits_because, writes};
use super::volumes::{LIMIT, MIB, Mode, clear, delete_pair, ensure, node_of, pair, pod, volume, volumes_on};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Paths, Space};

const NAME: &str = "drained";
const SIZE: u64 = 128 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("drain").await?;
    space.apply(&pair(NAME, SIZE, Mode::Filesystem, "")).await?;
    let running = space.pod_ready(NAME, LIMIT).await?;
    let node = node_of(cluster, &running)?;
    writes(&space, NAME).await?;
    kubectl(cluster, &format!("drain {} --ignore-daemonsets --delete-emptydir-data --force", node.name()))
        .await?;

    space.apply(&pod(NAME, NAME, Mode::Filesystem, "")).await?;
    waits_because(&space, NAME, "didn't match PersistentVolume's node affinity").await?;
    // The controller may have been on that node too.
    cluster.driver_ready().await?;
    is_untouched(&space, node).await?;

    kubectl(cluster, &format!("uncordon {}", node.name())).await?;
    space.pod_ready(NAME, LIMIT).await?;
    reads(&space, NAME).await?;
    delete_pair(&space, NAME).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(format!("a pod waited for {} and found its data", node.name())))
}

async fn kubectl(cluster: &Cluster, arguments: &str) -> Result<(), Error> {
    cluster.shell(&Paths::find()?, &format!("kubectl {arguments}")).await.map(drop)
}

/// The claim is bound, and its LV is what it was.
async fn is_untouched(space: &Space, node: &Node) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let claim = claims.get(NAME).await.map_err(Error::api(format!("read the claim {NAME}")))?;
    let phase = claim.status.and_then(|status| status.phase).unwrap_or_default();
    ensure(phase == "Bound", || format!("the claim of a drained pod is {phase}"))?;
    let (name, lvs) = (volume(space, NAME).await?.name_any(), volumes_on(node).await?);
    ensure(lvs.get(&name) == Some(&SIZE), || format!("{name} of {SIZE} bytes is not among {lvs:?}"))
}
