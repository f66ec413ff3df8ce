//! A volume with its claim and its pod, before and after all of them were lost.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, Pod};
use kube::{Api, ResourceExt};

use super::{PATIENCE, SIZE};
use crate::scenarios::volumes::{LIMIT, Mode, delete_pair, ensure, node_of, on, pair, pod, volume};
use crate::{Cluster, Error, Node, Space, wait};

/// A claim and its pod have one name.
pub(super) struct Owned<'a> {
    space: Space,
    node: &'a Node,
    name: &'static str,
    mode: Mode,
    /// The pod as it was.
    pod: Pod,
    /// The volume as it was.
    volume: PersistentVolume,
}

impl<'a> Owned<'a> {
    /// Has a pod of this node write its own name to a new volume.
    pub(super) async fn begin(
        space: &Space,
        node: &'a Node,
        name: &'static str,
        mode: Mode,
    ) -> Result<Owned<'a>, Error> {
        space.apply(&pair(name, SIZE, mode, &on(node.name()))).await?;
        let pod = space.pod_ready(name, LIMIT).await?;
        let mark = mark(space, name);
        let write = match mode {
            Mode::Filesystem => format!("echo {mark} > /data/file; sync"),
            Mode::Block => format!("echo {mark} | dd of=/dev/volume conv=notrunc,fsync 2>/dev/null"),
        };
        space.exec_ok(name, &["sh", "-c", &write]).await?;
        let volume = volume(space, name).await?;
        Ok(Owned { space: space.clone(), node, name, mode, pod, volume })
    }

    /// Fails unless the claim is bound to the volume that it had, and a pod finds there what was written, on the node
    /// that it had: only the volume ties it to that.
    pub(super) async fn is_back(&self, cluster: &Cluster) -> Result<(), Error> {
        let Owned { space, name, mode, .. } = self;
        let found = volume(space, name).await?;
        self.is_the_same(&found)?;
        space.apply(&pod(name, name, *mode, "")).await?;
        let running = space.pod_ready(name, PATIENCE).await?;
        let node = node_of(cluster, &running)?.name();
        ensure(node == self.node.name(), || {
            format!("the pod of {} is on {node}, not on {}", mark(space, name), self.node.name())
        })?;
        let wanted = format!("{}\n", mark(space, name));
        let read = match mode {
            Mode::Filesystem => "cat /data/file".to_owned(),
            Mode::Block => format!("head -c {} /dev/volume", wanted.len()),
        };
        let text = space.exec_ok(name, &["sh", "-c", &read]).await?;
        ensure(text == wanted, || format!("the volume of {} holds {text:?}", mark(space, name)))
    }

    /// The same but for what is told otherwise: the class says `Delete`, the manifests say `Retain`; a file system that
    /// the class did not name has a name now.
    fn is_the_same(&self, found: &PersistentVolume) -> Result<(), Error> {
        let fs = (self.mode == Mode::Filesystem).then(|| "ext4".to_owned());
        let wanted = told(&self.volume, |spec| {
            spec.persistent_volume_reclaim_policy = Some("Retain".to_owned());
            if let Some(csi) = &mut spec.csi {
                csi.fs_type = fs;
            }
        });
        let now = told(found, |_| ());
        ensure(found.name_any() == self.volume.name_any() && now == wanted, || {
            let names = [self.volume.name_any(), found.name_any()];
            format!("the volume {} should be as {wanted:#?}, and {} is {now:#?}", names[0], names[1])
        })
    }

    /// Waits until nothing of the lost pod is mounted any more.
    pub(super) async fn left_no_mount(&self) -> Result<(), Error> {
        let uid = self.pod.uid().unwrap_or_default();
        let look = || async {
            let found = self.node.run(&["grep", "--fixed-strings", &uid, "/proc/self/mountinfo"]).await?;
            // It found nothing; 2 would be a failure.
            ensure(found.status == 1, || format!("on {}: {found:?}", self.node.name()))
        };
        let what = format!("the mounts of the lost pod {} ({uid}) to be gone", mark(&self.space, self.name));
        ensure(!uid.is_empty(), || format!("{what}: it had no UID"))?;
        wait::try_until(&what, PATIENCE, look).await
    }

    /// Deletes its pod and its claim, whose volume has to be one that goes with it.
    pub(super) async fn goes_with_its_claim(&self) -> Result<(), Error> {
        let volume = volume(&self.space, self.name).await?;
        let policy = volume.spec.and_then(|spec| spec.persistent_volume_reclaim_policy);
        ensure(policy.as_deref() == Some("Delete"), || {
            format!("the volume of {} has the policy {policy:?}", mark(&self.space, self.name))
        })?;
        delete_pair(&self.space, self.name).await?;
        let claims: Api<PersistentVolumeClaim> = self.space.api();
        let what = format!("the claim {} to be gone", mark(&self.space, self.name));
        wait::until(&claims, self.name, &what, LIMIT, |claim| claim.is_none()).await.map(drop)
    }
}

/// What no other volume holds.
fn mark(space: &Space, name: &str) -> String {
    format!("{}/{name}", space.name())
}

/// What a volume is, without what only the objects of one cluster know.
fn told(volume: &PersistentVolume, change: impl FnOnce(&mut PersistentVolumeSpec)) -> PersistentVolumeSpec {
    let mut spec = volume.spec.clone().unwrap_or_default();
    if let Some(claim) = &mut spec.claim_ref {
        (claim.uid, claim.resource_version) = (None, None);
    }
    if let Some(csi) = &mut spec.csi {
        // Which csi-provisioner made it.
        csi.volume_attributes = None;
    }
    change(&mut spec);
    spec
}
