//! A class says on which nodes its volumes may be, and that they need not wait for a pod.

use kube::ResourceExt;

use super::SIZE;
use crate::scenarios::capacity::published;
use crate::scenarios::requests::{Claim, delete_claim};
use crate::scenarios::volumes::{
    GIB, LIMIT, Mode, delete_pod, ensure, fill, gone, node_of, pod, unfill, volume, volumes_on,
};
use crate::{Cluster, Error, Space};

const NAME: &str = "placed";

/// The class names the node that has the least room, which the driver would not take by itself.
pub(super) async fn a_class_names_the_node(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    let node = cluster.node("node2")?;
    let class = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: placed}}\n\
         provisioner: lvm.csi.quarry\nvolumeBindingMode: Immediate\nallowedTopologies:\n  \
         - matchLabelExpressions: [{{key: lvm.csi.quarry/node, values: [{}]}}]\n",
        node.name()
    );
    fill(node, GIB).await?;
    published(cluster, node, 0).await?;
    space.apply(&class).await?;
    space.apply(&Claim::new(NAME, SIZE, Mode::Filesystem).class("placed").manifest()).await?;
    let name = volume(space, NAME).await?.name_any();
    let lvs = volumes_on(node).await?;
    ensure(lvs.contains_key(&name), || {
        format!("{name} is not on {}, which its class names; there is {lvs:?}", node.name())
    })?;
    unfill(node).await?;
    space.apply(&pod(NAME, NAME, Mode::Filesystem, "")).await?;
    let running = space.pod_ready(NAME, LIMIT).await?;
    let found = node_of(cluster, &running)?.name();
    ensure(found == node.name(), || format!("the pod is on {found}, its volume on {}", node.name()))?;
    delete_pod(&space.api(), NAME).await?;
    delete_claim(space, NAME).await?;
    gone(cluster).await?;
    space.delete(&class).await
}
