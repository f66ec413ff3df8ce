//! What becomes of a volume when its claim goes: with the policy Delete its LV goes too, in whatever order pod, claim and
//! volume are deleted; with Retain it stays, and a volume that a person makes anew for it gives the data back.

mod any_order;
mod retained;

use super::volumes::{MIB, clear};
use crate::report::Remark;
use crate::{Cluster, Error};

const SIZE: u64 = 128 * MIB;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("reclaim").await?;
    let orders = any_order::all_end_clean(cluster, &space).await?;
    retained::outlives_its_objects(cluster, &space).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(format!(
        "{orders} orders of deletion; a retained LV given back twice, refused twice, and deleted at last"
    )))
}
