//! Volumes follow their disks: to another node when their own has died, and nowhere when the disks hold something
//! new. What is lost for good can be declared lost.

use std::fs::File;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Event, Node as NodeObject, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::restarts::controller;
use super::volumes::{
    GIB, LIMIT, MIB, Mode, clear, delete_pod, ensure, gone, node_of, pair, place, pod, resize, resized,
    volume,
};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Paths, Space, driver, wait};

/// The group that moves, and a class of its own.
const GROUP: &str = "quarry-moving";
const CLASS: &str = "moving";
const VOLUME: &str = "moved";
const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("moved-disks").await?;
    let (from, to) = nodes(cluster).await?;
    space.apply(&class()).await?;
    let image = image()?;
    let disk = from.plug(&image).await?;
    from.run_ok(&["vgcreate", GROUP, &disk]).await?;
    let label = place(from, GROUP).await?;
    is_at(cluster, &label, from, true).await?;
    let made = is_used(cluster, &space, from).await?;

    from.cut_power().await?;
    let disk = to.plug(&image).await?;
    is_at(cluster, &label, to, true).await?;
    is_at(cluster, &label, from, false).await?;
    is_as_it_was(cluster, &space, to, &made).await?;
    from.start().await?;
    cluster.node_ready(from.name(), LIMIT).await?;
    cluster.driver_ready().await?;
    is_at(cluster, &label, from, false).await?;

    let old = label.rsplit('/').next().unwrap_or_default();
    is_made_anew(&space, to, &disk, old).await?;
    is_declared_lost(cluster, &space, old).await?;
    to.run_ok(&["vgremove", "--yes", GROUP]).await?;
    space.delete(&class()).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from("from a dead node to another; made anew under its name; declared lost".to_owned()))
}

/// The node that dies, and the one with the controller, which Kubernetes would start elsewhere after minutes only.
async fn nodes(cluster: &Cluster) -> Result<(&Node, &Node), Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    let to = node_of(cluster, &controller(&pods).await?)?;
    let from = cluster.nodes().iter().find(|node| node.name() != to.name());
    let from = from.ok_or_else(|| Error::other("it takes two nodes"))?;
    Ok((from, to))
}

fn class() -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {CLASS}}}\nprovisioner: {}\n\
         volumeBindingMode: WaitForFirstConsumer\nallowVolumeExpansion: true\nparameters: {{volumeGroup: {GROUP}}}\n",
        driver::NAME
    )
}

/// The disk that moves: an empty one.
fn image() -> Result<PathBuf, Error> {
    let path = Paths::find()?.run().join("moving.img");
    let file = File::create(&path).and_then(|file| file.set_len(2 * GIB));
    file.map_err(Error::at("make", &path)).map(|()| path)
}

/// A pod uses a volume there; the volume is returned.
async fn is_used(cluster: &Cluster, space: &Space, node: &Node) -> Result<PersistentVolume, Error> {
    let wanted = format!("storageClassName: {}\n", driver::CLASS);
    let pair = pair(VOLUME, SIZE, Mode::Filesystem, "");
    space.apply(&pair.replace(&wanted, &format!("storageClassName: {CLASS}\n"))).await?;
    let running = space.pod_ready(VOLUME, LIMIT).await?;
    ensure(node_of(cluster, &running)?.name() == node.name(), || format!("it is not on {}", node.name()))?;
    space.exec_ok(VOLUME, &["sh", "-c", "echo kept > /data/file; sync"]).await?;
    volume(space, VOLUME).await
}

/// Waits until the node has the label, or has it no more.
async fn is_at(cluster: &Cluster, label: &str, node: &Node, wanted: bool) -> Result<(), Error> {
    let nodes: Api<NodeObject> = Api::all(cluster.client());
    let what = format!("{} {} the label {label}", node.name(), if wanted { "to have" } else { "to lose" });
    let is = |node: Option<&NodeObject>| node.is_some_and(|node| node.labels().contains_key(label) == wanted);
    wait::until(&nodes, node.name(), &what, LIMIT, is).await.map(drop)
}

/// A new pod finds the data on the other node, where the volume also grows; Kubernetes knows the same volume.
async fn is_as_it_was(
    cluster: &Cluster,
    space: &Space,
    node: &Node,
    before: &PersistentVolume,
) -> Result<(), Error> {
    // As an administrator does with the pods of a node that is gone.
    let pods: Api<Pod> = space.api();
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete(VOLUME, &at_once).await.map_err(Error::api("delete the pod of the dead node"))?;
    space.pod_gone(VOLUME, LIMIT).await?;
    space.apply(&pod(VOLUME, VOLUME, Mode::Filesystem, "")).await?;
    let running = space.pod_ready(VOLUME, LIMIT).await?;
    ensure(node_of(cluster, &running)?.name() == node.name(), || format!("it is not on {}", node.name()))?;
    let text = space.exec_ok(VOLUME, &["cat", "/data/file"]).await?;
    ensure(text.trim() == "kept", || format!("the file holds {text:?}"))?;
    let after = volume(space, VOLUME).await?;
    ensure(after.uid() == before.uid() && after.spec == before.spec, || {
        format!("the volume was {before:?}, and is {after:?}")
    })?;
    resize(space, VOLUME, LARGER).await?;
    resized(space, VOLUME, LARGER).await
}

/// The group is removed by hand and another one made under its name: the volume is not taken for one of it.
async fn is_made_anew(space: &Space, node: &Node, disk: &str, old: &str) -> Result<(), Error> {
    delete_pod(&space.api(), VOLUME).await?;
    node.run_ok(&["vgremove", "--yes", "--force", GROUP]).await?;
    node.run_ok(&["vgcreate", GROUP, disk]).await?;
    let new = place(node, GROUP).await?;
    let new = new.rsplit('/').next().unwrap_or_default();
    // Past the scheduler, which may know already that the old group is nowhere.
    let on = format!("  nodeName: {}\n", node.name());
    space.apply(&pod("late", VOLUME, Mode::Filesystem, &on)).await?;
    let words = [format!("volume group {old} is not on this machine now"), format!("{GROUP} ({new})")];
    let events: Api<Event> = space.api();
    let said = |all: &[Event]| all.iter().filter_map(|event| event.message.clone()).collect::<Vec<_>>();
    let is_told = |all: &[Event]| said(all).iter().any(|text| words.iter().all(|word| text.contains(word)));
    wait::until_all(&events, "an event that names both groups", LIMIT, |all| said(all).join("\n"), is_told)
        .await?;
    delete_pod(&space.api(), "late").await
}

/// The claim cannot be deleted while its group may come back, and can once it is declared lost.
async fn is_declared_lost(cluster: &Cluster, space: &Space, old: &str) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let name = volume(space, VOLUME).await?.name_any();
    claims.delete(VOLUME, &DeleteParams::default()).await.map_err(Error::api("delete the claim"))?;
    let is_released = |volume: Option<&PersistentVolume>| {
        volume.and_then(|volume| volume.status.as_ref()?.phase.as_deref()) == Some("Released")
    };
    wait::until(&volumes, &name, "the volume to be released", LIMIT, is_released).await?;
    cluster.set_values(&format!("controller.lostVolumeGroups={{{old}}}")).await?;
    gone(cluster).await?;
    cluster.set_values("controller.lostVolumeGroups=null").await
}
