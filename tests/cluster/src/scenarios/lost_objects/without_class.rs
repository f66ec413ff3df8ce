//! A volume made by hand over an LV that the driver made: neither it nor its claim has a class.

use super::SIZE;
use crate::scenarios::by_hand::{ByHand, Lv, is_bound_to};
use crate::scenarios::requests::{Claim, reads};
use crate::scenarios::volumes::{LIMIT, Mode, clear, delete_pair, ensure, node_of, pod};
use crate::{Cluster, Error};

const NAME: &str = "without-class";

/// The claim finds it by its name. The LV goes with the claim, since the volume says so.
pub(super) async fn is_used_by_its_name(cluster: &Cluster) -> Result<(), Error> {
    let space = cluster.space(NAME).await?;
    let (lv, node) = Lv::left(cluster, &space, "first", SIZE).await?;
    let volume = ByHand { name: NAME, class: "", mode: Mode::Filesystem, policy: "Delete", claim: None };
    space.apply(&volume.manifest(&lv)).await?;
    let claim = Claim::new("static", SIZE, Mode::Filesystem).class("").volume(NAME);
    space.apply(&claim.manifest()).await?;
    is_bound_to(&space, "static", NAME).await?;
    space.apply(&pod("static", "static", Mode::Filesystem, "")).await?;
    let running = space.pod_ready("static", LIMIT).await?;
    let found = node_of(cluster, &running)?.name();
    ensure(found == node.name(), || format!("the pod is on {found}, its LV on {}", node.name()))?;
    reads(&space, "static").await?;
    lv.is_on(node).await?;
    delete_pair(&space, "static").await?;
    clear(cluster, &space).await
}
