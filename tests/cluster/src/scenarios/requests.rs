//! What scenarios ask for beyond a plain claim and its pod, and what Kubernetes has to say of it.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde::de::DeserializeOwned;

use super::volumes::{LIMIT, Mode, containers, ensure};
use crate::{Error, Space, driver, wait};

/// A claim, for [`Claim::manifest`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'a> {
    name: &'a str,
    class: &'a str,
    bytes: u64,
    mode: Mode,
    access: &'a str,
    volume: Option<&'a str>,
}

impl<'a> Claim<'a> {
    /// One of the class that the examples make, for any number of pods on one node.
    pub(super) fn new(name: &'a str, bytes: u64, mode: Mode) -> Claim<'a> {
        Claim { name, class: driver::CLASS, bytes, mode, access: "ReadWriteOnce", volume: None }
    }

    /// Of another class; of none if it is empty.
    pub(super) fn class(self, class: &'a str) -> Claim<'a> {
        Claim { class, ..self }
    }

    /// For one pod at a time.
    pub(super) fn for_one_pod(self) -> Claim<'a> {
        Claim { access: "ReadWriteOncePod", ..self }
    }

    /// It wants this volume and no other.
    pub(super) fn volume(self, volume: &'a str) -> Claim<'a> {
        Claim { volume: Some(volume), ..self }
    }

    /// In YAML.
    pub(super) fn manifest(&self) -> String {
        let Claim { name, class, bytes, mode, access, volume } = self;
        let volume = volume.map(|volume| format!("  volumeName: {volume}\n")).unwrap_or_default();
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  \
             storageClassName: \"{class}\"\n  volumeMode: {mode:?}\n  accessModes: [{access}]\n  \
             resources: {{requests: {{storage: {bytes}}}}}\n{volume}"
        )
    }
}

/// A class of the driver whose volumes wait for their pods and can grow. `extra` are further fields, in YAML's flow
/// style.
pub(super) fn class(name: &str, extra: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\nprovisioner: {}\n\
         volumeBindingMode: WaitForFirstConsumer\nallowVolumeExpansion: true\n{extra}\n",
        driver::NAME
    )
}

/// A pod that uses some claims and does nothing: file systems at `/volumes/CLAIM`, devices at `/dev/CLAIM`. `extra`
/// are further fields of its `spec`, in YAML's flow style.
pub(super) fn pod_of(name: &str, claims: &[(&str, Mode)], extra: &str) -> String {
    let each = |one: &dyn Fn(&str) -> String, mode: Option<Mode>| {
        let chosen = claims.iter().filter(|(_, own)| mode.is_none_or(|mode| mode == *own));
        chosen.map(|(claim, _)| one(claim)).collect::<Vec<_>>().join(", ")
    };
    let mounts =
        each(&|claim| format!("{{name: {claim}, mountPath: /volumes/{claim}}}"), Some(Mode::Filesystem));
    let devices = each(&|claim| format!("{{name: {claim}, devicePath: /dev/{claim}}}"), Some(Mode::Block));
    let volumes =
        each(&|claim| format!("{{name: {claim}, persistentVolumeClaim: {{claimName: {claim}}}}}"), None);
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  \
         containers:\n    - name: main\n      image: registry.k8s.io/e2e-test-images/busybox:1.37.0-2\n      \
         command: [sleep, infinity]\n      volumeMounts: [{mounts}]\n      volumeDevices: [{devices}]\n  \
         volumes: [{volumes}]\n{extra}"
    )
}

/// Deletes an object if it is there. It does not wait.
pub(super) async fn delete<K>(api: &Api<K>, name: &str) -> Result<(), Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(drop).map_err(Error::api(format!("delete {name}"))),
    }
}

/// Deletes a claim, and returns when it is gone.
pub(super) async fn delete_claim(space: &Space, name: &str) -> Result<(), Error> {
    let claims: Api<PersistentVolumeClaim> = space.api();
    delete(&claims, name).await?;
    let what = format!("the claim {name} to be gone");
    wait::until(&claims, name, &what, LIMIT, |claim| claim.is_none()).await.map(drop)
}

/// Waits for an event of an object, of any kind, whose reason or message holds these words.
pub(super) async fn told(space: &Space, name: &str, words: &str) -> Result<(), Error> {
    told_all(space, name, &[words]).await
}

/// Waits for an event of an object, of any kind, whose reason or message holds all of these words.
pub(super) async fn told_all(space: &Space, name: &str, words: &[&str]) -> Result<(), Error> {
    let events: Api<Event> = space.api();
    let of = |all: &[Event]| -> Vec<String> {
        let own = all.iter().filter(|event| event.involved_object.name.as_deref() == Some(name));
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        own.map(|event| format!("{}: {}", part(&event.reason), part(&event.message))).collect()
    };
    let what = format!("an event of {name} with the words {words:?}");
    let is_told = |all: &[Event]| of(all).iter().any(|event| words.iter().all(|word| event.contains(word)));
    wait::until_all(&events, &what, LIMIT, |all| of(all).join("\n"), is_told).await.map(drop)
}

/// Waits until an event of a pod says why it does not run, in these words; it has not run till then.
pub(super) async fn waits_because(space: &Space, pod: &str, words: &str) -> Result<(), Error> {
    told(space, pod, words).await?;
    still_waits(space, pod).await
}

/// Fails if a pod has begun to run.
pub(super) async fn still_waits(space: &Space, pod: &str) -> Result<(), Error> {
    let pods: Api<Pod> = space.api();
    let found = pods.get(pod).await.map_err(Error::api(format!("read the pod {pod}")))?;
    let phase = found.status.and_then(|status| status.phase).unwrap_or_default();
    ensure(phase == "Pending", || format!("the pod {pod}, which has to wait, is {phase}"))
}

/// Fails unless these pods are there, in the containers that they were in.
pub(super) async fn were_not_stopped(space: &Space, pods: &[Pod]) -> Result<(), Error> {
    let api: Api<Pod> = space.api();
    for before in pods {
        let name = before.metadata.name.clone().unwrap_or_default();
        let after = api.get(&name).await.map_err(Error::api(format!("read the pod {name}")))?;
        ensure(containers(before) == containers(&after), || {
            format!(
                "{name} was started again: its containers were {:?} and are {:?}",
                containers(before),
                containers(&after)
            )
        })?;
    }
    Ok(())
}

/// It writes without a pause, and writes down when that fails.
const WRITE: &str = "while :; do date >> /data/log || touch /tmp/failed; sync; usleep 100000; done >/dev/null 2>&1 & echo begun";

/// Has a pod write to its volume from now on.
pub(super) async fn begin_to_write(space: &Space, pod: &str) -> Result<(), Error> {
    space.exec_ok(pod, &["sh", "-c", WRITE]).await.map(drop)
}

/// Waits until a pod that [`begin_to_write`] was for has written more than it now has; none of its writes has failed.
pub(super) async fn writes_on(space: &Space, pod: &str) -> Result<(), Error> {
    let first = lines(space, pod).await?;
    let later = || async {
        let now = lines(space, pod).await?;
        ensure(now > first, || format!("{pod} has written {now} lines, as before"))
    };
    wait::try_until(&format!("{pod} to write on"), LIMIT, later).await
}

async fn lines(space: &Space, pod: &str) -> Result<u64, Error> {
    let count = "test ! -e /tmp/failed || { echo a write has failed >&2; exit 1; }; wc -l < /data/log";
    let text = space.exec_ok(pod, &["sh", "-c", count]).await?;
    text.trim().parse().map_err(|_| Error::other(format!("{text:?} is no number of lines")))
}

/// Has a pod write what [`reads`] looks for, so that it is on the disk.
pub(super) async fn writes(space: &Space, pod: &str) -> Result<(), Error> {
    space.exec_ok(pod, &["sh", "-c", "echo kept > /data/file; sync"]).await.map(drop)
}

/// Waits until a pod, which may be about to start, finds what [`writes`] wrote.
pub(super) async fn reads(space: &Space, pod: &str) -> Result<(), Error> {
    let read = || space.exec_ok(pod, &["cat", "/data/file"]);
    let text = wait::try_until(&format!("{pod} to read its data"), LIMIT, read).await?;
    ensure(text == "kept\n", || format!("{pod} finds {text:?} in its file"))
}

/// Fails unless the file systems at these paths of a pod fill volumes of this size, but for what they keep for
/// themselves: of these small ones up to a quarter.
pub(super) async fn fills(space: &Space, pod: &str, paths: &str, size: u64) -> Result<(), Error> {
    let text = space.exec_ok(pod, &["sh", "-c", &format!("stat -f -c '%S %b' {paths}")]).await?;
    let bytes = |line: &str| {
        let (block, count) = line.split_once(' ')?;
        block.parse::<u64>().ok()?.checked_mul(count.parse().ok()?)
    };
    let fits = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > size / 4 * 3 && bytes <= size);
    let is_full = !text.is_empty() && text.lines().all(|line| fits(bytes(line)));
    ensure(is_full, || {
        format!(
            "file systems of {pod} on volumes of {size} bytes have blocks of so many bytes, so many: {text:?}"
        )
    })
}
