//! Whatever is started again in the middle of a create or an expansion, it completes, and nothing is left over. Pods
//! that run do not notice that the driver under them is replaced.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::requests::{begin_to_write, were_not_stopped, writes_on};
use super::volumes::{
    LIMIT, MIB, Mode, clear, delete_pair, ensure, gone, is_resized, on, pair, resize, resized, volume,
    volumes_on,
};
use crate::report::Remark;
use crate::{Cluster, Error, Node, Paths, Service, Space, driver, wait};

const NODE: &str = "node1";
const SIZE: u64 = 128 * MIB;
const LARGER: u64 = 256 * MIB;
/// A node starts, its pods after it, and each part waits some time before it tries again.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is started again.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Driver,
    Controller,
    Sidecars,
    Kubelet,
    Node,
}

const FAULTS: [Fault; 5] = [Fault::Driver, Fault::Controller, Fault::Sidecars, Fault::Kubelet, Fault::Node];

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("restarts").await?;
    for fault in FAULTS {
        let name = format!("{fault:?}").to_lowercase();
        in_create_and_expand(cluster, &space, fault, &name)
            .await
            .map_err(|error| Error::Other(format!("with the {name} started again: {}", error.chain())))?;
        delete_pair(&space, &name).await?;
        gone(cluster).await?;
    }
    rollout(cluster, &space).await?;
    clear(cluster, &space).await?;
    Ok(Remark::from(format!("{FAULTS:?} in the middle of create and of expand; a rollout under a pod")))
}

async fn in_create_and_expand(
    cluster: &Cluster,
    space: &Space,
    fault: Fault,
    name: &str,
) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    space.apply(&pair(name, SIZE, Mode::Filesystem, &on(NODE))).await?;
    wait::until(&claims, name, "a node to be chosen", LIMIT, has_node).await?;
    strike(cluster, fault).await?;
    space.pod_ready(name, PATIENCE).await?;
    has_one_volume(cluster, space, name, SIZE).await?;
    let write = || space.exec_ok(name, &["sh", "-c", "echo kept > /data/file; sync"]);
    wait::try_until("the pod to write", PATIENCE, write).await?;

    resize(space, name, LARGER).await?;
    let is_begun = |claim: Option<&_>| is_under_way(claim) || is_resized(claim, LARGER);
    wait::until(&claims, name, "the expansion to begin", LIMIT, is_begun).await?;
    strike(cluster, fault).await?;
    wait::until(&claims, name, "the expansion to end", PATIENCE, |claim| is_resized(claim, LARGER)).await?;
    resized(space, name, LARGER).await?;
    has_one_volume(cluster, space, name, LARGER).await?;
    let look =
        || space.exec_ok(name, &["sh", "-c", "test $(cat /data/file) = kept; df -k /data | tail -n 1"]);
    let text = wait::try_until("the pod's data to be read", PATIENCE, look).await?;
    let blocks = text.split_whitespace().nth(1).and_then(|blocks| blocks.parse::<u64>().ok());
    ensure(blocks.is_some_and(|blocks| blocks * 1024 > SIZE), || format!("the file system shows {text:?}"))
}

fn has_node(claim: Option<&PersistentVolumeClaim>) -> bool {
    claim.is_some_and(|claim| claim.annotations().contains_key("volume.kubernetes.io/selected-node"))
}

fn is_under_way(claim: Option<&PersistentVolumeClaim>) -> bool {
    let statuses = claim.and_then(|claim| claim.status.as_ref()?.allocated_resource_statuses.as_ref());
    statuses.is_some_and(|all| !all.is_empty())
}

async fn has_one_volume(cluster: &Cluster, space: &Space, claim: &str, size: u64) -> Result<(), Error> {
    let name = volume(space, claim).await?.name_any();
    let all = volumes_on(cluster.node(NODE)?).await?;
    ensure(all.get(&name) == Some(&size) && all.len() == 1, || {
        format!("there should be {name} of {size} bytes alone, and there is {all:?}")
    })
}

async fn strike(cluster: &Cluster, fault: Fault) -> Result<(), Error> {
    let node = cluster.node(NODE)?;
    match fault {
        Fault::Driver => kill(node, "^/usr/bin/quarry node").await,
        Fault::Controller => {
            let pods: Api<Pod> = Api::namespaced(cluster.client(), driver::NAMESPACE);
            let pod = cluster.controller().await?.name_any();
            let at_once = DeleteParams::default().grace_period(1);
            pods.delete(&pod, &at_once).await.map(drop).map_err(Error::api("delete the controller's pod"))
        }
        Fault::Sidecars => {
            let pod = cluster.controller().await?;
            kill(super::volumes::node_of(cluster, &pod)?, "^/csi-(provisioner|resizer)").await
        }
        Fault::Kubelet => node.restart_service(Service::Kubelet).await,
        Fault::Node => {
            node.cut_power().await?;
            node.start().await?;
            cluster.node_ready(NODE, LIMIT).await
        }
    }
}

/// Kills all processes of a node whose command line fits; there has to be one.
async fn kill(node: &Node, pattern: &str) -> Result<(), Error> {
    node.run_ok(&["pkill", "-KILL", "-f", pattern]).await.map(drop)
}

/// The driver's DaemonSet is rolled out anew: the pod's container is the same, and none of its writes has failed.
async fn rollout(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.apply(&pair("steady", SIZE, Mode::Filesystem, "")).await?;
    let before = space.pod_ready("steady", LIMIT).await?;
    begin_to_write(space, "steady").await?;
    let command = format!("kubectl -n {} rollout restart daemonset/quarry-node", driver::NAMESPACE);
    cluster.shell(&Paths::find()?, &command).await?;
    cluster.driver_ready().await?;
    writes_on(space, "steady").await?;
    were_not_stopped(space, &[before]).await
}
