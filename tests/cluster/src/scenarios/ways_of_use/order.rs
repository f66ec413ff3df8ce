//! What comes in another order, or by another way, than people think of.

use super::SIZE;
use crate::scenarios::requests::{Claim, class, delete_claim, still_waits, told, waits_because};
use crate::scenarios::volumes::{LIMIT, Mode, claim, delete_pod, ensure, on, pod};
use crate::{Error, Space};

const EARLY: &str = "early";

/// A pod comes before its claim, and the claim before its class.
pub(super) async fn the_pod_is_first(space: &Space) -> Result<(), Error> {
    space.apply(&pod(EARLY, EARLY, Mode::Filesystem, "")).await?;
    waits_because(space, EARLY, "persistentvolumeclaim \"early\" not found").await?;
    space.apply(&Claim::new(EARLY, SIZE, Mode::Filesystem).class("late").manifest()).await?;
    waits_because(space, EARLY, "storageclass.storage.k8s.io \"late\" not found").await?;
    let class = class("late", "");
    space.apply(&class).await?;
    space.pod_ready(EARLY, LIMIT).await?;
    delete_pod(&space.api(), EARLY).await?;
    delete_claim(space, EARLY).await?;
    space.delete(&class).await
}

const BYPASS: &str = "bypass";

/// A pod that names its node by itself has no volume ever, and an event says so; one that asks the scheduler has.
pub(super) async fn the_scheduler_is_left_out(space: &Space) -> Result<(), Error> {
    space.apply(&claim(BYPASS, SIZE, Mode::Filesystem)).await?;
    space.apply(&pod(BYPASS, BYPASS, Mode::Filesystem, "  nodeName: node1\n")).await?;
    told(space, BYPASS, "PodBypassesScheduler: pod bypass names its node node1 by itself").await?;
    still_waits(space, BYPASS).await?;
    delete_pod(&space.api(), BYPASS).await?;
    space.apply(&pod(BYPASS, BYPASS, Mode::Filesystem, &on("node1"))).await?;
    let running = space.pod_ready(BYPASS, LIMIT).await?;
    let node = running.spec.and_then(|spec| spec.node_name);
    ensure(node.as_deref() == Some("node1"), || format!("the pod asked for node1 and is on {node:?}"))?;
    delete_pod(&space.api(), BYPASS).await?;
    delete_claim(space, BYPASS).await
}
