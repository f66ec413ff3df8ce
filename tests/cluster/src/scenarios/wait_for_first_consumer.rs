//! A claim waits for a pod; the volume is made on the node that the scheduler chose, and goes with the claim.

use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::volumes::{
    self, GIB, GROUP, LIMIT, MIB, Mode, ensure, fill, node_of, place, places, pod, unfill, volume, volumes_on,
};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Space, wait};

const NAME: &str = "first";
const SIZE: u64 = GIB;
/// What is left of the group of the node that is to have no room.
const LEFT: u64 = 512 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("wait-for-first-consumer").await?;
    let full = cluster.node("node1")?;
    fill(full, volumes::room(full).await? - LEFT).await?;
    super::capacity::published(cluster, full, 0).await?;

    space.apply(&volumes::claim(NAME, SIZE, Mode::Filesystem)).await?;
    waits(cluster, &space).await?;
    space.apply(&pod(NAME, NAME, Mode::Filesystem, "")).await?;
    let running = space.pod_ready(NAME, LIMIT).await?;
    let node = node_of(cluster, &running)?;
    ensure(node.name() != full.name(), || format!("the pod is on {}, which has no room", full.name()))?;
    let volume = volume(&space, NAME).await?;
    is_there(node, &volume).await?;
    space.exec_ok(NAME, &["sh", "-c", "echo kept > /data/file; sync; test $(cat /data/file) = kept"]).await?;

    space
        .api::<k8s_openapi::api::core::v1::Pod>()
        .delete(NAME, &DeleteParams::default())
        .await
        .map_err(Error::api("delete the pod"))?;
    space
        .api::<PersistentVolumeClaim>()
        .delete(NAME, &DeleteParams::default())
        .await
        .map_err(Error::api("delete the claim"))?;
    unfill(full).await?;
    gone(cluster, &volume).await?;
    volumes::clear(cluster, &space).await?;
    Ok(Remark::from(format!("on {}, which had room", node.name())))
}

/// The claim is seen by Kubernetes, which waits for a pod, and no volume is made meanwhile.
async fn waits(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    let events: Api<Event> = space.api();
    let show = |all: &[Event]| format!("{} events", all.len());
    let is_told =
        |all: &[Event]| all.iter().any(|event| event.reason.as_deref() == Some("WaitForFirstConsumer"));
    wait::until_all(&events, "the claim to wait for a pod", LIMIT, show, is_told).await?;
    for node in cluster.nodes() {
        let there: Vec<_> = volumes_on(node).await?.into_keys().filter(|name| name != "filler").collect();
        ensure(there.is_empty(), || format!("{there:?} on {} before there was a pod", node.name()))?;
    }
    Ok(())
}

/// The volume's place is the node's group, and its LV is there with the size that was asked for.
async fn is_there(node: &Node, volume: &PersistentVolume) -> Result<(), Error> {
    let (expected, found) = (place(node, GROUP).await?, places(volume));
    ensure(found == [expected.as_str()], || format!("the volume's place is {found:?}, not {expected}"))?;
    let (there, name) = (volumes_on(node).await?, volume.name_any());
    ensure(there.get(&name) == Some(&SIZE), || format!("{name} of {SIZE} bytes is not among {there:?}"))
}

/// With the claim its volume goes, in Kubernetes and on the node's disks.
async fn gone(cluster: &Cluster, volume: &PersistentVolume) -> Result<(), Error> {
    let api: Api<PersistentVolume> = Api::all(cluster.client());
    let name = volume.name_any();
    wait::until(&api, &name, "the volume to be gone", LIMIT, |volume| volume.is_none()).await?;
    for node in cluster.nodes() {
        let there = volumes_on(node).await?;
        ensure(!there.contains_key(&name), || format!("{name} is still on {}", node.name()))?;
    }
    Ok(())
}
