//! Volumes that a person makes for an LV that is there.

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::{Api, ResourceExt};

use super::requests::{Claim, delete, writes};
use super::volumes::{
    LIMIT, Mode, bytes_of, delete_pair, ensure, gone, node_of, places, pod, volume, volumes_on,
};
use crate::{Cluster, Error, Node, Space, driver, wait};

/// A class of the examples, whose LVs outlive their claims.
pub(super) const RETAINING: &str = "quarry-retain";

/// An LV by what its volume told of it.
pub(super) struct Lv {
    /// What the driver knows it by.
    pub(super) handle: String,
    /// The label of its nodes.
    place: String,
    bytes: u64,
}

impl Lv {
    /// One with a file system that has what [`writes`] wrote, and its node. It was made for a claim of this name, and
    /// claim and volume are gone.
    pub(super) async fn left<'a>(
        cluster: &'a Cluster,
        space: &Space,
        claim: &str,
        bytes: u64,
    ) -> Result<(Lv, &'a Node), Error> {
        let manifest = Claim::new(claim, bytes, Mode::Filesystem).class(RETAINING).manifest();
        space.apply(&manifest).await?;
        space.apply(&pod(claim, claim, Mode::Filesystem, "")).await?;
        let running = space.pod_ready(claim, LIMIT).await?;
        writes(space, claim).await?;
        let made = volume(space, claim).await?;
        let lv = Lv::of(&made)?;
        delete_pair(space, claim).await?;
        delete_released(cluster, &made.name_any()).await?;
        gone(cluster).await?;
        let node = node_of(cluster, &running)?;
        lv.is_on(node).await?;
        Ok((lv, node))
    }

    /// That of a volume.
    fn of(volume: &PersistentVolume) -> Result<Lv, Error> {
        let spec = volume.spec.as_ref();
        let handle = spec.and_then(|spec| Some(spec.csi.as_ref()?.volume_handle.clone()));
        let bytes = spec.and_then(|spec| bytes_of(spec.capacity.as_ref()?.get("storage")?));
        match (handle, bytes, &places(volume)[..]) {
            (Some(handle), Some(bytes), [place]) => Ok(Lv { handle, place: (*place).to_owned(), bytes }),
            other => Err(Error::other(format!(
                "{} has no handle, no size or no place: {other:?}",
                volume.name_any()
            ))),
        }
    }

    /// Its name in its group.
    pub(super) fn name(&self) -> &str {
        self.handle.split_once('/').map_or("", |(_, name)| name)
    }

    /// Fails unless it is on this node, as large as it was made.
    pub(super) async fn is_on(&self, node: &Node) -> Result<(), Error> {
        let (lvs, bytes) = (volumes_on(node).await?, self.bytes);
        ensure(lvs.get(self.name()) == Some(&bytes), || {
            format!("the retained LV {} of {bytes} bytes is not among {lvs:?}", self.name())
        })
    }
}

/// A volume made by hand.
pub(super) struct ByHand<'a> {
    pub(super) name: &'a str,
    /// Its class; none if it is empty.
    pub(super) class: &'a str,
    pub(super) mode: Mode,
    /// What becomes of the LV with its claim.
    pub(super) policy: &'a str,
    /// The namespace and the name of the claim that it is for, if it is for one.
    pub(super) claim: Option<(&'a str, &'a str)>,
}

impl ByHand<'_> {
    /// In YAML.
    pub(super) fn manifest(&self, lv: &Lv) -> String {
        let ByHand { name, class, mode, policy, claim } = self;
        let claim = claim.map(|(namespace, name)| {
            let kind = "apiVersion: v1, kind: PersistentVolumeClaim";
            format!("  claimRef: {{{kind}, namespace: {namespace}, name: {name}}}\n")
        });
        format!(
            "apiVersion: v1\nkind: PersistentVolume\n\
             metadata: {{name: {name}, annotations: {{pv.kubernetes.io/provisioned-by: {driver}}}}}\nspec:\n  \
             capacity: {{storage: {bytes}}}\n  accessModes: [ReadWriteOnce]\n  volumeMode: {mode:?}\n  \
             storageClassName: \"{class}\"\n  persistentVolumeReclaimPolicy: {policy}\n  \
             csi: {{driver: {driver}, volumeHandle: {handle}}}\n  \
             nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {place}, operator: In, \
             values: [\"true\"]}}]}}]}}}}\n{claim}",
            driver = driver::NAME,
            handle = lv.handle,
            place = lv.place,
            bytes = lv.bytes,
            claim = claim.unwrap_or_default(),
        )
    }
}

/// Waits until a claim is bound; it has to be to this volume.
pub(super) async fn is_bound_to(space: &Space, claim: &str, name: &str) -> Result<(), Error> {
    let found = volume(space, claim).await?.name_any();
    ensure(found == name, || format!("the claim {claim} is bound to {found}, not to {name}"))
}

/// Waits until a volume's claim is gone and the volume is kept, and deletes it. Nobody asks the driver to delete the LV.
pub(super) async fn delete_released(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let what = format!("the volume {name} to be released and kept");
    wait::until(&volumes, name, &what, LIMIT, |volume| phase(volume) == "Released").await?;
    delete(&volumes, name).await?;
    let what = format!("the released volume {name} to be gone");
    wait::until(&volumes, name, &what, LIMIT, |volume| volume.is_none()).await.map(drop)
}

fn phase(volume: Option<&PersistentVolume>) -> &str {
    volume.and_then(|volume| volume.status.as_ref()?.phase.as_deref()).unwrap_or_default()
}
