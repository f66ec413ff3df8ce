//! A node has two volume groups: a class names one of them, and a class that names none takes the one with most room.
//! A pod has a volume in each.

use kube::ResourceExt;

use super::SIZE;
use crate::scenarios::capacity::published;
use crate::scenarios::requests::{Claim, delete_claim, pod_of, waits_because};
use crate::scenarios::volumes::{
    GIB, GROUP, LIMIT, Mode, SPARE_DISK, claim, delete_pair, delete_pod, ensure, fill, gone, node_of, on,
    pair, place, places, room, unfill, volume, volumes_in,
};
use crate::{Cluster, Error, Node, Space};

/// The node that gets a second group; no other has it.
const NODE: &str = "node1";
/// The group that a class of the examples names, and that class.
const FAST: &str = "quarry-nvme";
const FAST_CLASS: &str = "quarry-fast";

const POD: &str = "both";
const ANY: &str = "any";

/// Writes to both volumes, and shows what is on them.
const WRITE: &str = "echo kept > /volumes/fast/file && echo kept | dd of=/dev/roomy conv=notrunc,fsync 2>/dev/null \
                         && cat /volumes/fast/file && head -c 5 /dev/roomy";

pub(super) async fn two_on_one_node(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    let node = cluster.node(NODE)?;
    space.apply(&Claim::new("fast", SIZE, Mode::Filesystem).class(FAST_CLASS).manifest()).await?;
    space.apply(&claim("roomy", SIZE, Mode::Block)).await?;
    let claims = [("fast", Mode::Filesystem), ("roomy", Mode::Block)];
    space.apply(&pod_of(POD, &claims, "")).await?;
    waits_because(space, POD, "did not have enough free storage").await?;

    node.run_ok(&["vgcreate", FAST, SPARE_DISK]).await?;
    a_volume_in_each(cluster, space, node).await?;
    gone(cluster).await?;
    the_one_with_most_room(space, node).await?;
    gone(cluster).await?;
    node.run_ok(&["vgremove", "--yes", FAST]).await?;
    node.run_ok(&["pvremove", SPARE_DISK]).await?;
    published(cluster, node, 0).await
}

async fn a_volume_in_each(cluster: &Cluster, space: &Space, node: &Node) -> Result<(), Error> {
    let running = space.pod_ready(POD, LIMIT).await?;
    let found = node_of(cluster, &running)?.name();
    ensure(found == NODE, || format!("the pod is on {found}, which has no group {FAST}"))?;
    is_in(space, node, "fast", FAST).await?;
    is_in(space, node, "roomy", GROUP).await?;

    let mounts = space.exec_ok(POD, &["grep", " /volumes/fast ", "/proc/mounts"]).await?;
    ensure(mounts.contains("noatime"), || {
        format!("the class {FAST_CLASS} asks for noatime, and it is mounted so: {mounts:?}")
    })?;
    let text = space.exec_ok(POD, &["sh", "-c", WRITE]).await?;
    ensure(text == "kept\nkept\n", || format!("two volumes of a pod hold {text:?}"))?;
    delete_pod(&space.api(), POD).await?;
    delete_claim(space, "fast").await?;
    delete_claim(space, "roomy").await
}

/// The larger group is filled until it has less room than the other.
async fn the_one_with_most_room(space: &Space, node: &Node) -> Result<(), Error> {
    fill(node, room(node).await? - GIB).await?;
    space.apply(&pair(ANY, SIZE, Mode::Filesystem, &on(NODE))).await?;
    space.pod_ready(ANY, LIMIT).await?;
    is_in(space, node, ANY, FAST).await?;
    delete_pair(space, ANY).await?;
    unfill(node).await
}

/// A claim's volume is an LV of that group, whose label is its place.
async fn is_in(space: &Space, node: &Node, claim: &str, group: &str) -> Result<(), Error> {
    let volume = volume(space, claim).await?;
    let (found, expected) = (places(&volume), place(node, group).await?);
    ensure(found == [expected.as_str()], || {
        format!("the volume of {claim} should be in {group}, at {expected}, and is at {found:?}")
    })?;
    let (name, lvs) = (volume.name_any(), volumes_in(node, group).await?);
    ensure(lvs.get(&name) == Some(&SIZE), || format!("{name} of {SIZE} bytes is not in {group}: {lvs:?}"))
}
