//! A volume that a person makes for an LV that is there.

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::{Api, ResourceExt};

use super::SIZE;
use super::retained::CLASS;
use crate::scenarios::requests::delete;
use crate::scenarios::volumes::{LIMIT, Mode, ensure, places};
use crate::{Cluster, Error, Node, driver, wait};

/// An LV by what its volume told of it.
pub(super) struct Lv {
    /// What the driver knows it by.
    pub(super) handle: String,
    /// The label of its nodes.
    place: String,
}

impl Lv {
    /// That of a volume.
    pub(super) fn of(volume: &PersistentVolume) -> Result<Lv, Error> {
        let handle = volume.spec.as_ref().and_then(|spec| Some(spec.csi.as_ref()?.volume_handle.clone()));
        match (handle, &places(volume)[..]) {
            (Some(handle), [place]) => Ok(Lv { handle, place: (*place).to_owned() }),
            other => Err(Error::other(format!("{} has no handle or no place: {other:?}", volume.name_any()))),
        }
    }

    /// Its name in its group.
    pub(super) fn name(&self) -> &str {
        self.handle.split_once('/').map_or("", |(_, name)| name)
    }

    /// Fails unless it is on this node, as large as it was made.
    pub(super) async fn is_on(&self, node: &Node) -> Result<(), Error> {
        let lvs = crate::scenarios::volumes::volumes_on(node).await?;
        ensure(lvs.get(self.name()) == Some(&SIZE), || {
            format!("the retained LV {} of {SIZE} bytes is not among {lvs:?}", self.name())
        })
    }
}

/// A volume made by hand.
pub(super) struct ByHand<'a> {
    pub(super) name: &'a str,
    pub(super) mode: Mode,
    /// What becomes of the LV with its claim.
    pub(super) policy: &'a str,
    /// The namespace and the name of the claim that it is for, if it is for one.
    pub(super) claim: Option<(&'a str, &'a str)>,
}

impl ByHand<'_> {
    /// In YAML.
    pub(super) fn manifest(&self, lv: &Lv) -> String {
        let ByHand { name, mode, policy, claim } = self;
        let claim = claim.map(|(namespace, name)| {
            let kind = "apiVersion: v1, kind: PersistentVolumeClaim";
            format!("  claimRef: {{{kind}, namespace: {namespace}, name: {name}}}\n")
        });
        format!(
            "apiVersion: v1\nkind: PersistentVolume\n\
             metadata: {{name: {name}, annotations: {{pv.kubernetes.io/provisioned-by: {driver}}}}}\nspec:\n  \
             capacity: {{storage: {SIZE}}}\n  accessModes: [ReadWriteOnce]\n  volumeMode: {mode:?}\n  \
             storageClassName: {CLASS}\n  persistentVolumeReclaimPolicy: {policy}\n  \
             csi: {{driver: {driver}, volumeHandle: {handle}}}\n  \
             nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {place}, operator: In, \
             values: [\"true\"]}}]}}]}}}}\n{claim}",
            driver = driver::NAME,
            handle = lv.handle,
            place = lv.place,
            claim = claim.unwrap_or_default(),
        )
    }
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
