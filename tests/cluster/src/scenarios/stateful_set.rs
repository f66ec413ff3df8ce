//! The StatefulSet of the driver's examples: pods that are deleted come back to their own data on their own node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};

use super::volumes::{self, LIMIT, ensure};
use crate::report::Remark;
use crate::{Cluster, Error, Space, wait};

const EXAMPLE: &str = include_str!("../../../../deploy/examples/statefulset.yaml");
const REPLICAS: [&str; 3] = ["store-0", "store-1", "store-2"];
const WRITE: &str = "hostname > /data/name; sync";

pub(super) async fn run(cluster: &Cluster) -> Result<Remark, Error> {
    let space = cluster.space("stateful-set").await?;
    space.apply(EXAMPLE).await?;
    let mut before = BTreeMap::new();
    for name in REPLICAS {
        before.insert(name, replica(&space, name, None).await?);
        space.exec_ok(name, &["sh", "-c", WRITE]).await?;
    }
    delete_pods(&space).await?;
    for (name, old) in &before {
        let new = replica(&space, name, old.uid().as_deref()).await?;
        let [was, is] = [old, &new].map(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
        ensure(was == is, || format!("{name} was on {was:?} and is on {is:?}"))?;
        let found = space.exec_ok(name, &["cat", "/data/name"]).await?;
        ensure(found.trim() == *name, || format!("{name} found the data of {found:?}"))?;
    }
    remove(&space).await?;
    volumes::clear(cluster, &space).await?;
    Ok(Remark::from(format!("{} on {} nodes", before.len(), nodes_of(before.values()))))
}

/// Waits until a replica is ready which is not the one of this UID.
async fn replica(space: &Space, name: &str, not: Option<&str>) -> Result<Pod, Error> {
    let is_new = |pod: Option<&Pod>| pod.and_then(|pod| pod.metadata.uid.as_deref()) != not;
    let is_there = |pod: Option<&Pod>| wait::is_pod_ready(pod) && is_new(pod);
    let what = format!("{name} to be ready anew");
    match wait::until(&space.api(), name, &what, LIMIT, is_there).await {
        Ok(Some(pod)) => Ok(pod),
        Ok(None) => Err(Error::other(format!("{name} is gone"))),
        Err(Error::Late { what, limit, seen }) => {
            let events = space.events().await.unwrap_or_default().join("\n");
            Err(Error::Late { what, limit, seen: format!("{seen}\nevents:\n{events}") })
        }
        Err(error) => Err(error),
    }
}

/// Deletes all of them at once. Their program is in no need of the half minute that it would get.
async fn delete_pods(space: &Space) -> Result<(), Error> {
    let pods: Api<Pod> = space.api();
    let soon = DeleteParams::default().grace_period(1);
    for name in REPLICAS {
        match pods.delete(name, &soon).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Error::api(format!("delete {name}"))(error)),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// The example keeps its claims, so they are deleted as a person would.
async fn remove(space: &Space) -> Result<(), Error> {
    space.delete(EXAMPLE).await?;
    delete_pods(space).await?;
    let claims: Api<PersistentVolumeClaim> = space.api();
    for name in REPLICAS {
        let name = format!("data-{name}");
        claims.delete(&name, &DeleteParams::default()).await.map_err(Error::api(format!("delete {name}")))?;
    }
    Ok(())
}

fn nodes_of<'a>(pods: impl Iterator<Item = &'a Pod>) -> usize {
    let mut nodes: Vec<_> = pods.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
    nodes.sort();
    nodes.dedup();
    nodes.len()
}
