//! The ways in which pods use volumes: several pods on one, a pod with several, one pod alone, read-only, as a group's
//! own, with the pod's own life; and how a volume's place is chosen: by a class's group, by its topology, before any
//! pod, and after one that came too early.

mod alone;
mod groups;
mod order;
mod owners;
mod places;
mod shared;

use super::volumes::{MIB, clear};
use crate::report::Remark;
use crate::{Cluster, Error};

const SIZE: u64 = 128 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("ways-of-use").await?;
    // These two look at all volumes of a node, so they come first.
    groups::two_on_one_node(cluster, &space).await?;
    places::a_class_names_the_node(cluster, &space).await?;
    shared::a_file_system(cluster, &space).await?;
    shared::a_raw_device(&space).await?;
    alone::one_pod_at_a_time(&space).await?;
    owners::files_are_the_groups(&space).await?;
    owners::the_volume_lives_as_its_pod(cluster, &space).await?;
    order::the_pod_is_first(&space).await?;
    order::the_scheduler_is_left_out(&space).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(
        "shared, raw, read-only, for one pod, fsGroup, ephemeral; two groups on a node, a class with a node"
            .to_owned(),
    ))
}
