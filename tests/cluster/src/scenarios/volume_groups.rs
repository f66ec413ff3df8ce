//! A node registers whatever volume groups it has. One that is made, or renamed, after that is used at once, and a
//! kubelet that starts anew finds the driver again each time.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::CSINode;
use kube::{Api, ResourceExt};

use super::capacity::{published, publishes};
use super::volumes::{
    GROUP, LIMIT, MIB, Mode, SPARE_DISK, clear, delete_pair, delete_pod, ensure, gone, labelled, node_of, on,
    pair, place, pod, room_in,
};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Service, Space, driver, wait};

const NODE: &str = "node1";
/// A name that the driver's configuration does not choose.
const AWAY: &str = "away";
/// Two that it does.
const LATE: &str = "quarry-late";
const RENAMED: &str = "quarry-renamed";
const SIZE: u64 = 128 * MIB;
const VOLUME: &str = "late";
/// The only topology key that a node ever reports.
const KEY: &str = "lvm.csi.quarry/node";

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("volume-groups").await?;
    let node = cluster.node(NODE)?;
    node.run_ok(&["vgrename", GROUP, AWAY]).await?;
    starts_with_none(cluster, node).await?;
    let label = is_made_later(cluster, &space, node).await?;
    is_renamed(cluster, &space, node, &label).await?;
    delete_pair(&space, VOLUME).await?;
    gone(cluster).await?;
    node.run_ok(&["vgremove", "--yes", RENAMED]).await?;
    node.run_ok(&["pvremove", SPARE_DISK]).await?;
    node.run_ok(&["vgrename", AWAY, GROUP]).await?;
    published(cluster, node, 0).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(
        "none at the start, one made later, that one renamed; the kubelet anew after each".to_owned(),
    ))
}

async fn starts_with_none(cluster: &Cluster, node: &Node) -> Result<(), Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), driver::NAMESPACE);
    for pod in cluster.driver_pods("node").await? {
        if node_of(cluster, &pod)?.name() == node.name() {
            delete_pod(&pods, &pod.name_any()).await?;
        }
    }
    cluster.driver_ready().await?;
    publishes(cluster, node, 0).await?;
    node.restart_service(Service::Kubelet).await?;
    is_registered(cluster).await
}

/// Returns the label that stands for the new group.
async fn is_made_later(cluster: &Cluster, space: &Space, node: &Node) -> Result<String, Error> {
    node.run_ok(&["vgcreate", LATE, SPARE_DISK]).await?;
    let label = place(node, LATE).await?;
    labelled(cluster, NODE, &label, true).await?;
    publishes(cluster, node, room_in(node, LATE).await?).await?;
    space.apply(&pair(VOLUME, SIZE, Mode::Filesystem, &on(NODE))).await?;
    space.pod_ready(VOLUME, LIMIT).await?;
    space.exec_ok(VOLUME, &["sh", "-c", "echo kept > /data/file; sync"]).await?;
    node.restart_service(Service::Kubelet).await?;
    comes_back(space).await?;
    is_registered(cluster).await?;
    Ok(label)
}

async fn is_renamed(cluster: &Cluster, space: &Space, node: &Node, label: &str) -> Result<(), Error> {
    node.run_ok(&["vgrename", LATE, RENAMED]).await?;
    comes_back(space).await?;
    node.restart_service(Service::Kubelet).await?;
    comes_back(space).await?;
    labelled(cluster, NODE, label, true).await?;
    space.apply(&pair("new", SIZE, Mode::Filesystem, &on(NODE))).await?;
    space.pod_ready("new", LIMIT).await?;
    delete_pair(space, "new").await?;
    is_registered(cluster).await
}

/// A new pod mounts the volume, which a kubelet does only by a driver that it knows, and finds its data.
async fn comes_back(space: &Space) -> Result<(), Error> {
    delete_pod(&space.api(), VOLUME).await?;
    space.apply(&pod(VOLUME, VOLUME, Mode::Filesystem, &on(NODE))).await?;
    space.pod_ready(VOLUME, LIMIT).await?;
    let read = || space.exec_ok(VOLUME, &["cat", "/data/file"]);
    let text = wait::try_until("the pod's data to be read", LIMIT, read).await?;
    ensure(text.trim() == "kept", || format!("the file holds {text:?}"))
}

/// What the node reports of itself is one key, whatever groups it has.
async fn is_registered(cluster: &Cluster) -> Result<(), Error> {
    let nodes: Api<CSINode> = Api::all(cluster.client());
    let what = format!("the driver to be registered on {NODE} with one topology key");
    wait::until(&nodes, NODE, &what, LIMIT, |node| {
        let own = node.and_then(|node| node.spec.drivers.iter().find(|own| own.name == driver::NAME));
        own.is_some_and(|own| own.topology_keys.as_deref() == Some(&[KEY.to_owned()]))
    })
    .await
    .map(drop)
}
