//! Whose files they are, and whose volume it is: a pod's group owns what is on it, and an ephemeral volume its pod.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{Api, ResourceExt};

use crate::scenarios::requests::{Claim, delete_claim, reads, writes};
use crate::scenarios::volumes::{LIMIT, MIB, Mode, delete_pod, ensure, node_of, pod, volume, volumes_on};
use crate::{Cluster, Error, Space, wait};

/// An xfs needs more than the others.
const XFS_SIZE: u64 = 320 * MIB;
const NAME: &str = "owned";

/// Of a pod that is root, and does not want the kubelet to walk through all files.
const ROOT: &str = "fsGroup: 2001, fsGroupChangePolicy: OnRootMismatch";

/// A pod that is not root writes as its fsGroup, and a later one of another group gets the files as its own.
pub(super) async fn files_are_the_groups(space: &Space) -> Result<(), Error> {
    space.apply(&Claim::new(NAME, XFS_SIZE, Mode::Filesystem).class("quarry-xfs").manifest()).await?;
    start(space, &user(1000, 2000)).await?;
    writes(space, NAME).await?;
    are_of(space, 2000, 2000).await?;
    delete_pod(&space.api(), NAME).await?;

    start(space, &user(1001, 2001)).await?;
    reads(space, NAME).await?;
    are_of(space, 2001, 2001).await?;
    space.exec_ok(NAME, &["sh", "-c", "echo more >> /data/file; sync"]).await?;
    delete_pod(&space.api(), NAME).await?;

    // Where the volume's root is the group's already, and the pod wants it so, nobody walks through all files.
    start(space, ROOT).await?;
    space.exec_ok(NAME, &["chgrp", "7", "/data/file"]).await?;
    delete_pod(&space.api(), NAME).await?;
    start(space, ROOT).await?;
    are_of(space, 2001, 7).await?;
    delete_pod(&space.api(), NAME).await?;
    delete_claim(space, NAME).await
}

fn user(user: u32, group: u32) -> String {
    format!("runAsUser: {user}, runAsGroup: {user}, fsGroup: {group}, runAsNonRoot: true")
}

async fn start(space: &Space, context: &str) -> Result<(), Error> {
    let context = format!("  securityContext: {{{context}}}\n");
    space.apply(&pod(NAME, NAME, Mode::Filesystem, &context)).await?;
    space.pod_ready(NAME, LIMIT).await.map(drop)
}

/// The volume and the first user's file on it belong to these groups.
async fn are_of(space: &Space, root: u32, file: u32) -> Result<(), Error> {
    let text = space.exec_ok(NAME, &["stat", "-c", "%u %g", "/data", "/data/file"]).await?;
    let expected = format!("0 {root}\n1000 {file}\n");
    ensure(text == expected, || {
        format!(
            "the volume and its file should be of {expected:?} by their pod's fsGroup, and are of {text:?}"
        )
    })
}

const BRIEF: &str = "brief";
const BRIEF_SIZE: u64 = 128 * MIB;
const BRIEF_POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: brief}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2
      command: [sleep, infinity]
      volumeMounts: [{name: volume, mountPath: /data}]
  volumes:
    - name: volume
      ephemeral:
        volumeClaimTemplate:
          spec:
            storageClassName: quarry
            accessModes: [ReadWriteOnce]
            resources: {requests: {storage: 128Mi}}
"#;

/// An ephemeral volume comes with its pod and goes with it.
pub(super) async fn the_volume_lives_as_its_pod(cluster: &Cluster, space: &Space) -> Result<(), Error> {
    space.apply(BRIEF_POD).await?;
    let there = space.pod_ready(BRIEF, LIMIT).await?;
    writes(space, BRIEF).await?;
    reads(space, BRIEF).await?;
    // The pod's name, and its volume's.
    let claim = format!("{BRIEF}-volume");
    let (name, node) = (volume(space, &claim).await?.name_any(), node_of(cluster, &there)?);
    let lvs = volumes_on(node).await?;
    ensure(lvs.get(&name) == Some(&BRIEF_SIZE), || {
        format!("{name} of {BRIEF_SIZE} bytes is not among {lvs:?}")
    })?;

    delete_pod(&space.api(), BRIEF).await?;
    let claims: Api<PersistentVolumeClaim> = space.api();
    let what = "the claim of an ephemeral volume to go with its pod";
    wait::until(&claims, &claim, what, LIMIT, |claim| claim.is_none()).await?;
    let volumes: Api<PersistentVolume> = Api::all(space.client().clone());
    let what = "an ephemeral volume to go with its pod";
    wait::until(&volumes, &name, what, LIMIT, |volume| volume.is_none()).await?;
    let lvs = volumes_on(node).await?;
    ensure(!lvs.contains_key(&name), || format!("the LV of the ephemeral volume {name} is left: {lvs:?}"))
}
