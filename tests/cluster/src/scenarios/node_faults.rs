//! The cluster itself, without a driver: what happens to nodes can be made to happen, and they come back.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use crate::report::Remark;
use crate::{Cluster, Error, Node, Service, Space, wait};

const LIMIT: Duration = Duration::from_secs(180);
const NODE: &str = "node1";

/// It writes down each of its starts.
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: survivor
spec:
  nodeName: node1
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2
      command: [sh, -c, "echo start >> /data/starts; sync; exec sleep 3600"]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, emptyDir: {} }]
"#;

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("node-faults").await?;
    let node = cluster.node(NODE)?;
    space.apply(POD).await?;
    space.pod_ready("survivor", LIMIT).await?;

    for service in [Service::Kubelet, Service::Containerd] {
        node.kill_service(service).await?;
        if node.run(&["pgrep", "-x", service.name()]).await?.status == 0 {
            return Err(Error::other(format!("{} runs although it was killed", service.name())));
        }
        node.start_service(service).await?;
        starts(&space, 1).await?;
    }
    let time = power_cut(cluster, node, &space).await?;
    space.remove().await?;
    Ok(format!("power on to Ready {:.1} s", time.as_secs_f64()).into())
}

/// Cuts the power under a pod and a logical volume; both are there again afterwards.
async fn power_cut(cluster: &Cluster, node: &Node, space: &Space) -> Result<Duration, Error> {
    node.run_ok(&["lvcreate", "--yes", "--size", "16m", "--name", "survivor", "quarry"]).await?;
    node.run_ok(&["sync"]).await?;
    node.cut_power().await?;
    if node.run(&["true"]).await.is_ok() {
        return Err(Error::other("a node without power answers"));
    }
    let start = Instant::now();
    node.start().await?;
    cluster.node_ready(NODE, LIMIT).await?;
    let time = start.elapsed();
    node.run_ok(&["lvremove", "--yes", "quarry/survivor"]).await?;
    let what = "the pod to be started again";
    wait::until(&space.api(), "survivor", what, LIMIT, is_started_again).await?;
    starts(space, 2).await?;
    Ok(time)
}

fn is_started_again(pod: Option<&Pod>) -> bool {
    let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
    let started = statuses.is_some_and(|all| all.iter().all(|one| one.restart_count > 0));
    started && wait::is_pod_ready(pod)
}

/// The pod is there, and has been started so many times.
async fn starts(space: &Space, times: usize) -> Result<(), Error> {
    // The kubelet that has just been started has yet to learn which pods it has.
    let look = || space.exec_ok("survivor", &["cat", "/data/starts"]);
    let text = wait::try_until("the pod's file to be read", LIMIT, look).await?;
    match text.lines().count() {
        found if found == times => Ok(()),
        found => Err(Error::other(format!("the pod was started {found} times, not {times}"))),
    }
}
