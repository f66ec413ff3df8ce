//! Pod, claim and volume are deleted in every order, one right after the other, and by force: nothing is left of them.

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::SIZE;
use crate::scenarios::requests::{delete, writes};
use crate::scenarios::volumes::{LIMIT, Mode, ensure, gone, pair, volume, volumes_on};
use crate::{Cluster, Error, Space, wait};

/// What is deleted.
#[derive(Debug, Clone, Copy)]
enum Part {
    Pod,
    /// Its node is not waited for: the volume is still mounted when it is to be deleted.
    PodByForce,
    Claim,
    Volume,
}

/// Each by the name of its pod and claim.
const ORDERS: [(&str, [Part; 3]); 7] = [
    ("pod-claim-volume", [Part::Pod, Part::Claim, Part::Volume]),
    ("pod-volume-claim", [Part::Pod, Part::Volume, Part::Claim]),
    ("claim-pod-volume", [Part::Claim, Part::Pod, Part::Volume]),
    ("claim-volume-pod", [Part::Claim, Part::Volume, Part::Pod]),
    ("volume-pod-claim", [Part::Volume, Part::Pod, Part::Claim]),
    ("volume-claim-pod", [Part::Volume, Part::Claim, Part::Pod]),
    ("by-force", [Part::PodByForce, Part::Claim, Part::Volume]),
];

/// Returns how many orders there are.
pub(super) async fn all_end_clean(cluster: &Cluster, space: &Space) -> Result<usize, Error> {
    let all: Vec<_> = ORDERS.iter().map(|(name, _)| pair(name, SIZE, Mode::Filesystem, "")).collect();
    space.apply(&all.join("---\n")).await?;
    for (name, _) in ORDERS {
        space.pod_ready(name, LIMIT).await?;
        writes(space, name).await?;
    }
    try_join_all(ORDERS.iter().map(|(name, order)| in_order(space, name, order))).await?;
    gone(cluster).await?;
    for node in cluster.nodes() {
        let left = volumes_on(node).await?;
        ensure(left.is_empty(), || format!("deleted in all orders, and left on {}: {left:?}", node.name()))?;
    }
    Ok(ORDERS.len())
}

async fn in_order(space: &Space, name: &str, order: &[Part]) -> Result<(), Error> {
    let (pods, claims): (Api<Pod>, Api<PersistentVolumeClaim>) = (space.api(), space.api());
    let volumes: Api<PersistentVolume> = Api::all(space.client().clone());
    let volume = volume(space, name).await?.name_any();
    for part in order {
        match part {
            Part::Pod => delete(&pods, name).await?,
            Part::PodByForce => by_force(&pods, name).await?,
            Part::Claim => delete(&claims, name).await?,
            Part::Volume => delete(&volumes, &volume).await?,
        }
    }
    let what = |what: &str| format!("the {what} to be gone, deleted as {order:?}");
    wait::until(&pods, name, &what("pod"), LIMIT, |pod| pod.is_none()).await?;
    wait::until(&claims, name, &what("claim"), LIMIT, |claim| claim.is_none()).await?;
    wait::until(&volumes, &volume, &what("volume"), LIMIT, |volume| volume.is_none()).await.map(drop)
}

async fn by_force(pods: &Api<Pod>, name: &str) -> Result<(), Error> {
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete(name, &at_once).await.map(drop).map_err(Error::api(format!("delete the pod {name} by force")))
}
