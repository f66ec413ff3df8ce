//! An LV whose class retains it outlives claim and volume. Volumes made for it by hand give the data back: one that
//! names its claim, one whose claim names it; shown in another mode than it has, it is refused and stays as it is.

use super::SIZE;
use crate::scenarios::by_hand::{ByHand, Lv, RETAINING, delete_released, is_bound_to};
use crate::scenarios::requests::{Claim, delete_claim, reads, told, waits_because};
use crate::scenarios::volumes::{LIMIT, Mode, delete_pair, delete_pod, gone, pod};
use crate::{Cluster, Error, Node, Space};

pub(super) async fn outlives_its_objects(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    let (lv, node) = Lv::left(cluster, space, "kept", SIZE).await?;
    comes_back_by_the_volume(cluster, space, &lv).await?;
    lv.is_on(node).await?;
    is_not_shown_raw(cluster, space, &lv).await?;
    lv.is_on(node).await?;
    comes_back_by_the_claim(cluster, space, &lv, node).await
}

fn claim(name: &str, mode: Mode) -> Claim<'_> {
    Claim::new(name, SIZE, mode).class(RETAINING)
}

fn by_hand<'a>(name: &'a str, policy: &'a str) -> ByHand<'a> {
    ByHand { name, class: RETAINING, mode: Mode::Filesystem, policy, claim: None }
}

/// The volume names its claim, which names no volume.
async fn comes_back_by_the_volume(cluster: &Cluster, space: &Space, lv: &Lv) -> Result<(), Error> {
    const NAME: &str = "reclaim-for-a-claim";
    let volume = ByHand { claim: Some((space.name(), "again")), ..by_hand(NAME, "Retain") };
    space.apply(&volume.manifest(lv)).await?;
    space.apply(&claim("again", Mode::Filesystem).manifest()).await?;
    is_bound_to(space, "again", NAME).await?;
    space.apply(&pod("again", "again", Mode::Filesystem, "")).await?;
    space.pod_ready("again", LIMIT).await?;
    reads(space, "again").await?;
    delete_pair(space, "again").await?;
    delete_released(cluster, NAME).await
}

/// The volume says that it is a raw one, which Kubernetes believes: the driver knows better.
async fn is_not_shown_raw(cluster: &Cluster, space: &Space, lv: &Lv) -> Result<(), Error> {
    const NAME: &str = "reclaim-raw";
    let volume = ByHand { mode: Mode::Block, ..by_hand(NAME, "Retain") };
    space.apply(&volume.manifest(lv)).await?;
    space.apply(&claim("raw", Mode::Block).volume(NAME).manifest()).await?;
    is_bound_to(space, "raw", NAME).await?;
    space.apply(&pod("raw", "raw", Mode::Block, "")).await?;
    waits_because(space, "raw", "ext4 file system, and cannot be used as raw block volume").await?;
    delete_pod(&space.api(), "raw").await?;
    delete_claim(space, "raw").await?;
    delete_released(cluster, NAME).await
}

/// A claim names the volume before that is there; one that names it and wants a raw one is refused by Kubernetes. With
/// this volume's claim the LV goes at last.
async fn comes_back_by_the_claim(
    cluster: &Cluster,
    space: &Space,
    lv: &Lv,
    node: &Node,
) -> Result<(), Error> {
    const NAME: &str = "reclaim-by-name";
    let volume = by_hand(NAME, "Delete");
    space.apply(&claim("mismatch", Mode::Block).volume(NAME).manifest()).await?;
    space.apply(&pod("mismatch", "mismatch", Mode::Block, "")).await?;
    space.apply(&volume.manifest(lv)).await?;
    told(space, "mismatch", "VolumeMismatch").await?;
    told(space, "mismatch", "incompatible volumeMode").await?;
    waits_because(space, "mismatch", "unbound immediate PersistentVolumeClaims").await?;
    delete_pair(space, "mismatch").await?;

    space.apply(&claim("named", Mode::Filesystem).volume(NAME).manifest()).await?;
    is_bound_to(space, "named", NAME).await?;
    space.apply(&pod("named", "named", Mode::Filesystem, "")).await?;
    space.pod_ready("named", LIMIT).await?;
    reads(space, "named").await?;
    lv.is_on(node).await?;
    delete_pair(space, "named").await?;
    gone(cluster).await
}
