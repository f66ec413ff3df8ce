//! Volumes follow their disks: to another node when their own has died, and nowhere when the disks hold something
//! new. What is lost for good can be declared lost.

use std::fs::File;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::requests::{Claim, class, reads, told_all, writes};
use super::volumes::{
    GIB, LIMIT, MIB, Mode, clear, delete_pod, ensure, gone, labelled, node_of, place, pod, resize, resized,
    steady_and_other, volume,
};
use crate::driver::NAMESPACE;
use crate::report::Remark;
use crate::{Cluster, Error, Node, Paths, Space, wait};

/// The group that moves, and a class of its own.
const GROUP: &str = "quarry-moving";
const CLASS: &str = "moving";
const VOLUME: &str = "moved";
const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("moved-disks").await?;
    // Kubernetes would start the controller of a dead node elsewhere after minutes only.
    let (to, from) = steady_and_other(cluster).await?;
    let class = class(CLASS, &format!("parameters: {{volumeGroup: {GROUP}}}"));
    space.apply(&class).await?;
    let image = image()?;
    let disk = from.plug(&image).await?;
    from.run_ok(&["vgcreate", GROUP, &disk]).await?;
    let label = place(from, GROUP).await?;
    labelled(cluster, from.name(), &label, true).await?;
    let old = label.rsplit('/').next().unwrap_or_default();
    let made = is_used(cluster, &space, from).await?;

    is_declared_lost(cluster, from, old).await?;
    let disk = to.plug(&image).await?;
    labelled(cluster, to.name(), &label, true).await?;
    labelled(cluster, from.name(), &label, false).await?;
    ensure(!lost(cluster, "").await?.contains(old), || "it has come back, and is declared lost".to_owned())?;
    is_as_it_was(cluster, &space, to, &made).await?;
    from.start().await?;
    cluster.node_ready(from.name(), LIMIT).await?;
    cluster.driver_ready().await?;
    labelled(cluster, from.name(), &label, false).await?;

    is_made_anew(&space, to, &disk, old).await?;
    is_deleted_once_lost(cluster, &space, to, old).await?;
    to.run_ok(&["vgremove", "--yes", GROUP]).await?;
    space.delete(&class).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(
        "from a dead node to another; made anew under its name; declared lost, once until it came back"
            .to_owned(),
    ))
}

/// The disk that moves: an empty one.
fn image() -> Result<PathBuf, Error> {
    let path = Paths::find()?.run().join("moving.img");
    let file = File::create(&path).and_then(|file| file.set_len(2 * GIB));
    file.map_err(Error::at("make", &path)).map(|()| path)
}

/// A pod uses a volume there; the volume is returned.
async fn is_used(cluster: &Cluster, space: &Space, node: &Node) -> Result<PersistentVolume, Error> {
    space.apply(&Claim::new(VOLUME, SIZE, Mode::Filesystem).class(CLASS).manifest()).await?;
    space.apply(&pod(VOLUME, VOLUME, Mode::Filesystem, "")).await?;
    let running = space.pod_ready(VOLUME, LIMIT).await?;
    ensure(node_of(cluster, &running)?.name() == node.name(), || format!("it is not on {}", node.name()))?;
    writes(space, VOLUME).await?;
    volume(space, VOLUME).await
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
    reads(space, VOLUME).await?;
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
    told_all(space, "late", &words.each_ref().map(String::as_str)).await?;
    delete_pod(&space.api(), "late").await
}

/// The claim cannot be deleted while its group may come back, and can once it is declared lost.
async fn is_deleted_once_lost(cluster: &Cluster, space: &Space, node: &Node, old: &str) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let name = volume(space, VOLUME).await?.name_any();
    claims.delete(VOLUME, &DeleteParams::default()).await.map_err(Error::api("delete the claim"))?;
    let is_released = |volume: Option<&PersistentVolume>| {
        volume.and_then(|volume| volume.status.as_ref()?.phase.as_deref()) == Some("Released")
    };
    wait::until(&volumes, &name, "the volume to be released", LIMIT, is_released).await?;
    // As the refusal says that the node is to lose the label.
    let unlabel = format!("kubectl label node {} vg.lvm.csi.quarry/{old}-", node.name());
    cluster.shell(&Paths::find()?, &unlabel).await?;
    let means = lost(cluster, &format!("--declare {old}")).await?;
    ensure(means.contains(&name), || format!("{name} is not among what is lost: {means}"))?;
    gone(cluster).await?;
    lost(cluster, &format!("--withdraw {old}")).await.map(drop)
}

/// `quarry lost` with these arguments, as a person types it.
async fn lost(cluster: &Cluster, arguments: &str) -> Result<String, Error> {
    let command =
        format!("kubectl -n {NAMESPACE} exec deploy/quarry-controller -c quarry -- quarry lost {arguments}");
    cluster.shell(&Paths::find()?, &command).await
}

/// The group of a node that works is not declared lost; that of one that is off can be.
async fn is_declared_lost(cluster: &Cluster, from: &Node, group: &str) -> Result<(), Error> {
    let declare = format!("--declare {group}");
    let refused = lost(cluster, &declare).await.err().map(|error| error.chain()).unwrap_or_default();
    ensure(refused.contains("which is ready"), || format!("declared lost on a ready node: {refused}"))?;
    from.cut_power().await?;
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.client());
    let is_away = |node: Option<&_>| !wait::is_node_ready(node);
    wait::until(&nodes, from.name(), "the node to be known to be off", LIMIT, is_away).await?;
    lost(cluster, &declare).await?;
    let told = lost(cluster, "").await?;
    ensure(told.contains(group) && told.contains("lost (declared"), || format!("it is not told: {told}"))
}
