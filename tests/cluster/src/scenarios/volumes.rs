//! What the scenarios of the driver have in common: claims, pods that use them, and the LVs behind them.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node as NodeObject, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::requests::Claim;
use crate::{Cluster, Error, Node, Space, wait};

/// Long enough for anything that works: a guest is slow, and this machine busy.
pub(super) const LIMIT: Duration = Duration::from_secs(180);

/// The volume group of each node.
pub(super) const GROUP: &str = "quarry";

/// The disk that each node has to spare.
pub(super) const SPARE_DISK: &str = "/dev/ubdc";

pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// The prefix of the label by which a volume's place is known.
const PLACE: &str = "vg.lvm.csi.quarry/";

/// How a pod sees its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A file system at `/data`.
    Filesystem,
    /// A device at `/dev/volume`.
    Block,
}

/// A claim of the class that the examples make.
pub(super) fn claim(name: &str, bytes: u64, mode: Mode) -> String {
    Claim::new(name, bytes, mode).manifest()
}

/// A pod that uses a claim and does nothing. `extra` are further fields of its `spec`, in YAML's flow style.
pub(super) fn pod(name: &str, claim: &str, mode: Mode, extra: &str) -> String {
    idle(name, mode, &format!("persistentVolumeClaim: {{claimName: {claim}}}"), extra)
}

/// Such a pod with an emptyDir instead.
pub(super) fn bare_pod(name: &str) -> String {
    idle(name, Mode::Filesystem, "emptyDir: {}", "")
}

fn idle(name: &str, mode: Mode, source: &str, extra: &str) -> String {
    let volume = match mode {
        Mode::Filesystem => "volumeMounts: [{name: volume, mountPath: /data}]",
        Mode::Block => "volumeDevices: [{name: volume, devicePath: /dev/volume}]",
    };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  \
         containers:\n    - name: main\n      image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2\n      \
         command: [sleep, infinity]\n      {volume}\n  volumes: [{{name: volume, {source}}}]\n{extra}"
    )
}

/// For [`pod`]: it runs on this node.
pub(super) fn on(node: &str) -> String {
    format!("  nodeSelector: {{kubernetes.io/hostname: {node}}}\n")
}

/// A claim and its pod, of one name.
pub(super) fn pair(name: &str, bytes: u64, mode: Mode, extra: &str) -> String {
    format!("{}---\n{}", claim(name, bytes, mode), pod(name, name, mode, extra))
}

/// The node that a pod is on.
pub(super) fn node_of<'a>(cluster: &'a Cluster, pod: &Pod) -> Result<&'a Node, Error> {
    let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    cluster.node(name).map(AsRef::as_ref)
}

/// The node that the controller is on, which stays up, and another one.
pub(super) async fn steady_and_other(cluster: &Cluster) -> Result<(&Node, &Node), Error> {
    let steady = node_of(cluster, &cluster.controller().await?)?;
    let other = cluster.nodes().iter().find(|node| node.name() != steady.name());
    let other = other.ok_or_else(|| Error::other("this needs a node beside that of the controller"))?;
    Ok((steady, other))
}

/// The volume that a claim is bound to.
pub(super) async fn volume(space: &Space, claim: &str) -> Result<PersistentVolume, Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let what = format!("the claim {claim} to be bound");
    let bound = wait::until(&claims, claim, &what, LIMIT, is_bound).await?;
    let name = bound.and_then(|claim| claim.spec?.volume_name).unwrap_or_default();
    let volumes: Api<PersistentVolume> = Api::all(space.client().clone());
    volumes.get(&name).await.map_err(Error::api(format!("read the volume {name}")))
}

fn is_bound(claim: Option<&PersistentVolumeClaim>) -> bool {
    claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
}

/// The label keys by which a volume's node is chosen.
pub(super) fn places(volume: &PersistentVolume) -> Vec<&str> {
    let terms =
        volume.spec.iter().flat_map(|spec| &spec.node_affinity).flat_map(|affinity| &affinity.required);
    terms
        .flat_map(|required| &required.node_selector_terms)
        .flat_map(|term| term.match_expressions.iter().flatten())
        .map(|expression| expression.key.as_str())
        .collect()
}

/// The label key that stands for one of a node's groups.
pub(super) async fn place(node: &Node, group: &str) -> Result<String, Error> {
    Ok(format!("{PLACE}{}", group_field(node, group, "vg_uuid").await?))
}

/// Waits until a node has a label, or (`wanted` is false) has it no more.
pub(super) async fn labelled(cluster: &Cluster, node: &str, label: &str, wanted: bool) -> Result<(), Error> {
    let nodes: Api<NodeObject> = Api::all(cluster.client());
    let what = format!("{node} to {} the label {label}", if wanted { "have" } else { "lose" });
    let is = |node: Option<&NodeObject>| node.is_some_and(|node| node.labels().contains_key(label) == wanted);
    wait::until(&nodes, node, &what, LIMIT, is).await.map(drop)
}

/// What a node's own LVM shows of a group, sizes in bytes.
async fn group_field(node: &Node, group: &str, field: &str) -> Result<String, Error> {
    let report = ["vgs", "--noheadings", "--units=b", "--nosuffix", "--options", field, group];
    Ok(node.run_ok(&report).await?.trim().to_owned())
}

/// The LVs in a node's group and their sizes in bytes, as the node's own LVM shows them.
pub(super) async fn volumes_on(node: &Node) -> Result<BTreeMap<String, u64>, Error> {
    volumes_in(node, GROUP).await
}

/// The LVs in one of a node's groups and their sizes in bytes.
pub(super) async fn volumes_in(node: &Node, group: &str) -> Result<BTreeMap<String, u64>, Error> {
    let report = ["lvs", "--noheadings", "--units=b", "--nosuffix", "--options", "lv_name,lv_size", group];
    let text = node.run_ok(&report).await?;
    let pair = |line: &str| {
        let (name, size) = line.trim().split_once(' ')?;
        Some((name.to_owned(), size.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// The free room in a node's group, in bytes.
pub(super) async fn room(node: &Node) -> Result<u64, Error> {
    room_in(node, GROUP).await
}

/// The free room in one of a node's groups, in bytes.
pub(super) async fn room_in(node: &Node, group: &str) -> Result<u64, Error> {
    let text = group_field(node, group, "vg_free").await?;
    text.parse().map_err(|_| Error::other(format!("{text:?} is no size")))
}

/// Makes an administrator's own volume in a node's group, of which the driver is not told.
pub(super) async fn fill(node: &Node, bytes: u64) -> Result<(), Error> {
    let size = format!("{bytes}b");
    node.run_ok(&["lvcreate", "--yes", "--size", &size, "--name", "filler", GROUP]).await.map(drop)
}

/// Removes what [`fill`] made.
pub(super) async fn unfill(node: &Node) -> Result<(), Error> {
    node.run_ok(&["lvremove", "--yes", &format!("{GROUP}/filler")]).await.map(drop)
}

/// Asks for another size of a claim.
pub(super) async fn resize(space: &Space, claim: &str, bytes: u64) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let size = json!({ "spec": { "resources": { "requests": { "storage": bytes.to_string() } } } });
    let patched = claims.patch(claim, &PatchParams::default(), &Patch::Merge(size)).await;
    patched.map(drop).map_err(Error::api(format!("ask for another size of {claim}")))
}

/// Waits until a claim has this size, and nothing is left to be done for it.
pub(super) async fn resized(space: &Space, claim: &str, bytes: u64) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    let what = format!("the claim {claim} to have {bytes} bytes");
    wait::until(&claims, claim, &what, LIMIT, |claim| is_resized(claim, bytes)).await.map(drop)
}

/// Whether a claim has this size, and nothing is left to be done for it.
pub(super) fn is_resized(claim: Option<&PersistentVolumeClaim>, bytes: u64) -> bool {
    let Some(status) = claim.and_then(|claim| claim.status.as_ref()) else { return false };
    let size = status.capacity.as_ref().and_then(|sizes| bytes_of(sizes.get("storage")?));
    let is_under_way = status.allocated_resource_statuses.as_ref().is_some_and(|all| !all.is_empty());
    size == Some(bytes) && !is_under_way
}

/// The bytes that a quantity of storage stands for.
pub(super) fn bytes_of(quantity: &Quantity) -> Option<u64> {
    let text = quantity.0.as_str();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1_u64 << 40,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "m" => return Some(digits.parse::<u64>().ok()?.div_ceil(1_000)),
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The containers of a pod, and how often each was started again.
pub(super) fn containers(pod: &Pod) -> Vec<(Option<&str>, i32)> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|one| (one.container_id.as_deref(), one.restart_count)).collect()
}

/// Deletes a pod, and returns when it is gone.
pub(super) async fn delete_pod(pods: &Api<Pod>, name: &str) -> Result<(), Error> {
    let deleted = pods.delete(name, &DeleteParams::default()).await;
    deleted.map_err(Error::api(format!("delete the pod {name}")))?;
    wait::until(pods, name, &format!("the pod {name} to be gone"), LIMIT, |pod| pod.is_none()).await.map(drop)
}

/// Deletes a pod and its claim of one name, and returns when the pod is gone.
pub(super) async fn delete_pair(space: &Space, name: &str) -> Result<(), Error> {
    let (pods, claims): (Api<Pod>, Api<PersistentVolumeClaim>) = (space.api(), space.api());
    let params = DeleteParams::default();
    claims.delete(name, &params).await.map_err(Error::api(format!("delete the claim {name}")))?;
    delete_pod(&pods, name).await
}

/// Waits until no volume is left in Kubernetes; the LVs go before them.
pub(super) async fn gone(cluster: &Cluster) -> Result<(), Error> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let show =
        |all: &[PersistentVolume]| all.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", ");
    wait::until_all(&volumes, "all volumes to be gone", LIMIT, show, <[_]>::is_empty).await.map(drop)
}

/// Removes a scenario's namespace, and checks that nothing of its volumes is left, in Kubernetes and on disks.
pub(super) async fn clear(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.remove().await?;
    nothing_left(cluster).await
}

/// Waits until no volume is left in Kubernetes, and checks that none is on disks either.
pub(crate) async fn nothing_left(cluster: &Cluster) -> Result<(), Error> {
    gone(cluster).await?;
    for node in cluster.nodes() {
        let left = volumes_on(node).await?;
        ensure(left.is_empty(), || format!("left in {GROUP} on {}: {left:?}", node.name()))?;
    }
    Ok(())
}

/// Fails with these words unless it is so.
pub(super) fn ensure(so: bool, words: impl FnOnce() -> String) -> Result<(), Error> {
    if so { Ok(()) } else { Err(Error::Other(words())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_bytes_in_any_unit() {
        let bytes = |text: &str| bytes_of(&Quantity(text.to_owned()));
        assert_eq!(
            [bytes("5Gi"), bytes("128974848"), bytes("1500m")],
            [Some(5 << 30), Some(128_974_848), Some(2)]
        );
        assert_eq!([bytes("5Zi"), bytes(""), bytes("Gi")], [None, None, None]);
    }
}
