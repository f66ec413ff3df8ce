//! Two replicas of the controller: whichever of them goes, volumes are made, bound without a pod, grown and deleted.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::requests::Claim;
use super::volumes::{
    self, LIMIT, MIB, Mode, clear, delete_pair, ensure, fill, gone, node_of, pair, pod, resize, resized,
    unfill, volumes_on,
};
use crate::report::Remark;
use crate::{Cluster, Error, Space, driver, wait};

const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;
/// Whose holder moves labels and judges orphans.
const LEASE: &str = "quarry-controller";
/// An administrator's own volume: that node has the least room then.
const FILLER: u64 = 1024 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("replicas").await?;
    cluster.set_values("controller.replicas=2").await?;
    immediate(cluster, &space).await?;
    for round in ["first", "second"] {
        without_the_leader(cluster, &space, round).await?;
    }
    clear(cluster, &space).await?;
    cluster.set_values("controller.replicas=1").await?;
    Ok(Remark::from(
        "a claim bound without a pod; each leader deleted in turn, in the middle of a create".to_owned(),
    ))
}

/// A volume that waits for no pod is made where most room is, and its pod goes there.
async fn immediate(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    const CLASS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: immediate}\n\
                         provisioner: lvm.csi.quarry\nvolumeBindingMode: Immediate\n";
    let full = cluster.node("node1")?;
    fill(full, FILLER).await?;
    super::capacity::published(cluster, full, 0).await?;
    space.apply(CLASS).await?;
    space.apply(&Claim::new("unused", SIZE, Mode::Filesystem).class("immediate").manifest()).await?;
    volumes::volume(space, "unused").await?;
    unfill(full).await?;
    ensure(volumes_on(full).await?.is_empty(), || {
        format!("the volume is on {}, which is fuller", full.name())
    })?;
    space.apply(&pod("unused", "unused", Mode::Filesystem, "")).await?;
    let running = space.pod_ready("unused", LIMIT).await?;
    let node = node_of(cluster, &running)?;
    ensure(volumes_on(node).await?.len() == 1, || format!("there is no volume on {}", node.name()))?;
    delete_pair(space, "unused").await?;
    gone(cluster).await?;
    space.delete(CLASS).await
}

/// Deletes the replica that leads, right after a claim was made.
async fn without_the_leader(cluster: &Cluster, space: &Space, name: &str) -> Result<(), Error> {
    let leases: Api<Lease> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    let held =
        wait::until(&leases, LEASE, "a replica to lead", LIMIT, |lease| holder(lease).is_some()).await?;
    let leader = holder(held.as_ref()).unwrap_or_default();
    space.apply(&pair(name, SIZE, Mode::Filesystem, "")).await?;
    volumes::delete_pod(&pods, &leader).await?;
    space.pod_ready(name, LIMIT).await?;
    resize(space, name, LARGER).await?;
    resized(space, name, LARGER).await?;
    let what = format!("another replica than {leader} to lead");
    wait::until(&leases, LEASE, &what, LIMIT, |lease| holder(lease).is_some_and(|holder| holder != leader))
        .await?;
    delete_pair(space, name).await?;
    gone(cluster).await?;
    cluster.driver_ready().await
}

fn holder(lease: Option<&Lease>) -> Option<String> {
    lease?.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())
}
