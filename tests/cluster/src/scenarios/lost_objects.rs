//! All objects of Kubernetes are lost, as when etcd's disk is: what the LVs' tags tell, put in with the commands of the
//! documentation, gives the data back, and nothing else is needed. Before that, a volume made by hand for an LV of the
//! driver's, with no class at all.

mod manual;
mod owned;
mod without_class;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::volumes::{GROUP, MIB, Mode, clear, ensure, gone};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Paths, Space, wait};
use manual::{APPLY, LET_GO, SEE, WRITE_DOWN};
use owned::Owned;

const SIZE: u64 = 128 * MIB;
/// The kubelet, which could not unmount while there was no driver, waits for up to two minutes before it tries again.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    without_class::is_used_by_its_name(cluster).await?;
    let (spaces, all) = owned_by_pods(cluster).await?;
    let before = lvs(cluster).await?;

    let start = Instant::now();
    cluster.lose_objects().await?;
    are_lost(cluster).await?;
    try_join_all(cluster.nodes().iter().map(|node| runs_no_pod(node))).await?;
    cluster.install_chart(&Paths::find()?).await?;
    brought_back(cluster).await?;
    for one in &all {
        one.is_back(cluster).await?;
    }
    let time = start.elapsed();
    same_lvs(cluster, &before, "with pods on the volumes that were brought back").await?;
    for one in &all {
        one.left_no_mount().await?;
    }

    manual::run(cluster, LET_GO).await?;
    for one in &all {
        one.goes_with_its_claim().await?;
    }
    gone(cluster).await?;
    for space in &spaces {
        clear(cluster, space).await?;
    }
    Ok(Remark::from(format!(
        "a volume without a class; {} volumes of {} nodes back in their pods {:.0} s after all objects were lost",
        all.len(),
        cluster.nodes().len(),
        time.as_secs_f64()
    )))
}

/// On each node a file system and a raw device, in a namespace of the node's own.
async fn owned_by_pods(cluster: &Cluster) -> Result<(Vec<Space>, Vec<Owned<'_>>), Error> {
    let (mut spaces, mut all) = (Vec::new(), Vec::new());
    for node in cluster.nodes() {
        let space = cluster.space(&format!("lost-objects-{}", node.name())).await?;
        for (name, mode) in [("files", Mode::Filesystem), ("device", Mode::Block)] {
            all.push(Owned::begin(&space, node, name, mode).await?);
        }
        spaces.push(space);
    }
    Ok((spaces, all))
}

/// Otherwise all that follows would show nothing.
async fn are_lost(cluster: &Cluster) -> Result<(), Error> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let left = volumes.list(&ListParams::default()).await.map_err(Error::api("list the volumes"))?;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    ensure(left.is_empty(), || format!("volumes are left after etcd was emptied: {left:?}"))
}

/// Waits until the kubelet has ended all pods of a node: there is no API server's pod that it could run.
async fn runs_no_pod(node: &Node) -> Result<(), Error> {
    let crictl = Paths::find()?.bin().join("crictl").display().to_string();
    let look = || async {
        let pods = node.run_ok(&[&crictl, "pods", "--state", "ready"]).await?;
        // The first line is a heading.
        ensure(pods.lines().count() <= 1, || format!("still there:\n{pods}"))
    };
    wait::try_until(&format!("the lost cluster's pods on {} to end", node.name()), PATIENCE, look).await
}

/// Does what the documentation says; once more changes nothing.
async fn brought_back(cluster: &Cluster) -> Result<(), Error> {
    manual::run(cluster, WRITE_DOWN).await?;
    let twice = manual::run(cluster, SEE).await?;
    ensure(twice.trim().is_empty(), || format!("these objects are written down twice: {twice}"))?;
    manual::run(cluster, APPLY).await?;
    let again = manual::run(cluster, APPLY).await?;
    let changed: Vec<_> = again.lines().filter(|line| line.contains("configured")).collect();
    ensure(changed.is_empty(), || format!("applied once more, these were changed: {changed:?}"))
}

/// The LVs of each node: names, UUIDs and sizes.
type Lvs = BTreeMap<String, String>;

async fn lvs(cluster: &Cluster) -> Result<Lvs, Error> {
    let mut all = Lvs::new();
    for node in cluster.nodes() {
        let report = ["lvs", "--noheadings", "--options", "lv_name,lv_uuid,lv_size", GROUP];
        all.insert(node.name().to_owned(), node.run_ok(&report).await?);
    }
    Ok(all)
}

async fn same_lvs(cluster: &Cluster, before: &Lvs, when: &str) -> Result<(), Error> {
    let now = lvs(cluster).await?;
    ensure(now == *before, || format!("the LVs were {before:#?}, and {when} they are {now:#?}"))
}
