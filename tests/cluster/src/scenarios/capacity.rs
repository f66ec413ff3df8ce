//! What is published for the scheduler is what LVM has; more pods than a node has room for spread; a group that was
//! filled by somebody else costs a pod one try.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::storage::v1::CSIStorageCapacity;
use kube::Api;
use kube::api::ListParams;

use super::volumes::{
    self, GIB, GROUP, LIMIT, MIB, Mode, SPARE_DISK, bytes_of, clear, delete_pair, ensure, fill, node_of,
    pair, room, unfill, volumes_on,
};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Space, driver, wait};

/// What creation leaves free in each group.
const RESERVE: u64 = 512 * MIB;
/// A pod is on another node within seconds, on a slow machine; the scheduler's own pauses are ten times longer.
const MOVED_LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("capacity").await?;
    set_reserve(cluster, RESERVE).await?;
    follows(cluster, &space).await?;
    let spread = burst(cluster, &space).await?;
    let (refusals, moved) = filled_by_others(cluster, &space).await?;
    clear(cluster, &space).await?;
    set_reserve(cluster, 0).await?;
    Ok(Remark::from(format!(
        "a burst spread as {spread:?}; after {refusals} refusal(s) a pod was elsewhere in {:.1} s",
        moved.as_secs_f64()
    )))
}

async fn set_reserve(cluster: &Cluster, reserve: u64) -> Result<(), Error> {
    let values = format!("volumeGroups[0].name=quarry*,volumeGroups[0].reserve={}MiB", reserve / MIB);
    cluster.set_values(&values).await?;
    for node in cluster.nodes() {
        published(cluster, node, reserve).await?;
    }
    Ok(())
}

/// The classes of the examples, and whether their group is there.
const CLASSES: [(&str, bool); 4] =
    [("quarry", true), ("quarry-retain", true), ("quarry-xfs", true), ("quarry-fast", false)];

/// Waits until what is published for a node and each class is what its LVM has free, less a reserve.
pub(super) async fn published(cluster: &Cluster, node: &Node, reserve: u64) -> Result<(), Error> {
    publishes(cluster, node, room(node).await?.saturating_sub(reserve)).await
}

/// Waits until this is published for a node and each class of a group that is there, in bytes.
pub(super) async fn publishes(cluster: &Cluster, node: &Node, wanted: u64) -> Result<(), Error> {
    let capacities: Api<CSIStorageCapacity> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    let what = format!("{wanted} bytes to be published for {}", node.name());
    let show = |all: &[CSIStorageCapacity]| format!("{:?}", all.iter().map(shown).collect::<Vec<_>>());
    let is_there = |all: &[CSIStorageCapacity]| {
        let of_node: Vec<_> = all.iter().filter(|one| is_for(one, node.name())).collect();
        of_node.len() == CLASSES.len()
            && CLASSES.iter().all(|(class, has_group)| {
                let bytes = if *has_group { wanted } else { 0 };
                of_node.iter().any(|one| one.storage_class_name == *class && says(one, bytes))
            })
    };
    wait::until_all(&capacities, &what, LIMIT, show, is_there).await.map(drop)
}

fn is_for(capacity: &CSIStorageCapacity, node: &str) -> bool {
    let labels = capacity.node_topology.as_ref().and_then(|topology| topology.match_labels.as_ref());
    labels.is_some_and(|labels| labels.values().any(|value| value == node))
}

/// Of linear volumes the largest is as large as all that is free.
fn says(capacity: &CSIStorageCapacity, bytes: u64) -> bool {
    [&capacity.capacity, &capacity.maximum_volume_size]
        .iter()
        .all(|size| size.as_ref().and_then(bytes_of) == Some(bytes))
}

fn shown(capacity: &CSIStorageCapacity) -> String {
    let labels = capacity.node_topology.as_ref().and_then(|topology| topology.match_labels.as_ref());
    let sizes =
        [&capacity.capacity, &capacity.maximum_volume_size].map(|size| size.as_ref().map(|size| &size.0));
    format!("{} {labels:?} {sizes:?}", capacity.storage_class_name)
}

/// Creates, deletes and new disks all show.
async fn follows(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.apply(&pair("one", GIB, Mode::Filesystem, "")).await?;
    let pod = space.pod_ready("one", LIMIT).await?;
    let node = node_of(cluster, &pod)?;
    published(cluster, node, RESERVE).await?;
    delete_pair(space, "one").await?;
    volumes::gone(cluster).await?;
    published(cluster, node, RESERVE).await?;
    node.run_ok(&["vgextend", GROUP, SPARE_DISK]).await?;
    published(cluster, node, RESERVE).await?;
    node.run_ok(&["vgreduce", GROUP, SPARE_DISK]).await?;
    node.run_ok(&["pvremove", SPARE_DISK]).await?;
    published(cluster, node, RESERVE).await
}

/// As many pods at once as all nodes together have room for. Returns how many are on each node.
async fn burst(cluster: &Cluster, space: &Space) -> Result<Vec<usize>, Error> {
    const EACH: u64 = 3;
    let mut least = u64::MAX;
    for node in cluster.nodes() {
        least = least.min(room(node).await? - RESERVE);
    }
    // So that no more than this many fit on a node.
    let size = least / EACH / (4 * MIB) * (4 * MIB);
    let names: Vec<_> =
        (0..EACH * cluster.nodes().len() as u64).map(|number| format!("burst-{number}")).collect();
    let all: Vec<_> = names.iter().map(|name| pair(name, size, Mode::Filesystem, "")).collect();
    space.apply(&all.join("---\n")).await?;
    for name in &names {
        space.pod_ready(name, LIMIT).await?;
    }
    let mut spread = Vec::new();
    for node in cluster.nodes() {
        let free = room(node).await?;
        ensure(free >= RESERVE, || format!("{} has {free} bytes free, less than its reserve", node.name()))?;
        spread.push(volumes_on(node).await?.len());
    }
    try_join_all(names.iter().map(|name| delete_pair(space, name))).await?;
    volumes::gone(cluster).await?;
    Ok(spread)
}

/// A node is full, and nobody has told the scheduler: the pod that would rather be there is elsewhere soon.
/// Returns how often it was refused before, and how long it took.
async fn filled_by_others(cluster: &Cluster, space: &Space) -> Result<(i32, Duration), Error> {
    let node = cluster.node("node1")?;
    for node in cluster.nodes() {
        published(cluster, node, RESERVE).await?;
    }
    fill(node, room(node).await?).await?;
    let start = Instant::now();
    space.apply(&pair("moved", GIB, Mode::Filesystem, &prefers(node.name()))).await?;
    let pod = space.pod_ready("moved", MOVED_LIMIT).await?;
    let time = start.elapsed();
    unfill(node).await?;
    let found = node_of(cluster, &pod)?;
    ensure(found.name() != node.name(), || format!("the pod is on {}, which was full", node.name()))?;
    let refusals = refusals(space).await?;
    ensure(refusals <= 1, || format!("the pod was sent back {refusals} times"))?;
    delete_pair(space, "moved").await?;
    volumes::gone(cluster).await?;
    Ok((refusals, time))
}

fn prefers(node: &str) -> String {
    format!(
        "  affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, \
         preference: {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}}}]}}}}\n"
    )
}

/// How often a volume for the claim `moved` was refused.
async fn refusals(space: &Space) -> Result<i32, Error> {
    let api: Api<Event> = space.api();
    let events = api.list(&ListParams::default()).await.map_err(Error::api("list the events"))?;
    let of_claim = events.iter().filter(|event| event.involved_object.name.as_deref() == Some("moved"));
    let refusals = of_claim.filter(|event| event.reason.as_deref() == Some("ProvisioningFailed"));
    Ok(refusals.map(|event| event.count.unwrap_or(1)).sum())
}
