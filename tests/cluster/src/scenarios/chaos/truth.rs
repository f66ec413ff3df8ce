//! Whether all that was answered is true once the faults are over.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::PATIENCE;
use super::faults::nodes_ready;
use super::volume::Volume;
use crate::scenarios::volumes::{bytes_of, ensure, volumes_on};
use crate::{Cluster, Error, Space, wait};

/// Fails unless nodes and driver are well, each of these volumes is what it was answered to be and its pod runs, and
/// there are no others.
pub(super) async fn holds(cluster: &Cluster, space: &Space, volumes: &[Volume]) -> Result<(), Error> {
    nodes_ready(cluster).await?;
    cluster.driver_ready().await?;
    try_join_all(volumes.iter().map(Volume::is_whole)).await?;
    pods_are_well(space, volumes).await?;
    // What is to become part of a volume is an LV of its own for a while.
    wait::try_until("LVs and volumes to be one", PATIENCE, || {
        lvs_are_those_of_claims(cluster, space, volumes)
    })
    .await
}

/// The pods of these volumes are there and no others, and none is about to go.
async fn pods_are_well(space: &Space, volumes: &[Volume]) -> Result<(), Error> {
    let pods: Api<Pod> = space.api();
    let all = pods.list(&ListParams::default()).await.map_err(Error::api("list the pods"))?.items;
    let wanted: BTreeSet<_> = volumes.iter().map(|volume| volume.name.clone()).collect();
    let found: BTreeSet<_> = all.iter().map(ResourceExt::name_any).collect();
    ensure(found == wanted, || format!("the pods are {found:?}, and should be {wanted:?}"))?;
    let is_well = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && wait::is_pod_ready(Some(*pod));
    let ill: Vec<_> =
        all.iter().filter(|pod| !is_well(pod)).map(|pod| (pod.name_any(), &pod.status)).collect();
    ensure(ill.is_empty(), || format!("not ready, or about to go: {ill:?}"))
}

/// Each claim is bound to an LV that is as large as the claim says, and there is no volume and no LV besides.
async fn lvs_are_those_of_claims(cluster: &Cluster, space: &Space, volumes: &[Volume]) -> Result<(), Error> {
    let lvs = lvs(cluster).await?;
    let claims: Api<PersistentVolumeClaim> = space.api();
    let claims = claims.list(&ListParams::default()).await.map_err(Error::api("list the claims"))?.items;
    let answered: BTreeMap<_, _> = volumes.iter().map(|volume| (volume.name.as_str(), volume.size)).collect();
    ensure(claims.len() == answered.len(), || format!("{} claims for {answered:?}", claims.len()))?;
    let mut wanted = BTreeSet::new();
    for claim in &claims {
        let (name, least) = (claim.name_any(), answered.get(claim.name_any().as_str()).copied());
        let (volume, size) = bound(claim);
        let real = lvs.get(&volume).copied();
        let holds = size.is_some() && size >= least && least.is_some() && real >= size;
        ensure(holds, || {
            format!(
                "{name} was answered to have {least:?} bytes, its claim says {size:?}, its LV {volume:?} has {real:?}"
            )
        })?;
        wanted.insert(volume);
    }
    let others: Vec<_> = lvs.keys().filter(|name| !wanted.contains(*name)).collect();
    ensure(others.is_empty(), || format!("LVs that belong to no claim: {others:?}"))?;
    let all: Api<PersistentVolume> = Api::all(cluster.client());
    let all = all.list(&ListParams::default()).await.map_err(Error::api("list the volumes"))?;
    let found: BTreeSet<_> = all.iter().map(ResourceExt::name_any).collect();
    ensure(found == wanted, || format!("the volumes are {found:?}, and those of claims {wanted:?}"))
}

/// The volume of a claim, whose name its LV has too, and the size that the claim says, if it is bound.
fn bound(claim: &PersistentVolumeClaim) -> (String, Option<u64>) {
    let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
    let status = claim.status.as_ref().filter(|status| status.phase.as_deref() == Some("Bound"));
    let size = status.and_then(|status| bytes_of(status.capacity.as_ref()?.get("storage")?));
    (name, size)
}

/// The LVs of all nodes, each of which is on one alone.
async fn lvs(cluster: &Cluster) -> Result<BTreeMap<String, u64>, Error> {
    let mut all = BTreeMap::new();
    for node in cluster.nodes() {
        for (name, size) in volumes_on(node).await? {
            let twice = all.insert(name.clone(), size).is_some();
            ensure(!twice, || format!("{name} is on {} and on another node", node.name()))?;
        }
    }
    Ok(all)
}
