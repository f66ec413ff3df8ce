use std::fmt::Write as _;

use serde_json::{Value, json};

use super::VolumeRow;
use crate::csi::DRIVER_NAME;
use crate::types::{Claim, Segment, VolumeMode, VolumeState, VolumeTags};

/// What becomes of a volume when its claim is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// It stays.
    Retain,
    /// It is deleted.
    Delete,
}

impl ReclaimPolicy {
    const fn word(self) -> &'static str {
        match self {
            Self::Retain => "Retain",
            Self::Delete => "Delete",
        }
    }
}

/// The PersistentVolumes and claims of these volumes, for `kubectl apply`: what csi-provisioner wrote when
/// they were made, as far as tags tell. A claim is named by its PersistentVolume and names it, so that the two
/// find each other and no others. What cannot be brought back is told in a comment.
///
/// # Errors
/// They cannot be written as YAML.
pub fn manifests(
    volumes: &[VolumeRow],
    class: &str,
    policy: ReclaimPolicy,
) -> Result<String, serde_saphyr::SerializeError> {
    let mut text = String::new();
    for volume in volumes {
        let known = match Known::of(volume, volumes) {
            Ok(known) => known,
            Err(why) => {
                let claim = volume.claim.as_ref();
                let of = claim.map(|claim| format!(" of {claim}")).unwrap_or_default();
                let _ = writeln!(text, "# left out: {}{of}: {why}", volume.path());
                continue;
            }
        };
        let _ = writeln!(text, "# {}: {}", volume.path(), known.tags.state);
        for document in [known.persistent_volume(class, policy), known.persistent_volume_claim(class)] {
            text.push_str("---\n");
            text.push_str(serde_saphyr::to_string(&document)?.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

/// What a volume that is on one node can be. Tags do not tell whether the claim asked for one pod only.
const ACCESS_MODE: &str = "ReadWriteOnce";

/// A volume of which enough is known to bring it back.
struct Known<'a> {
    volume: &'a VolumeRow,
    tags: &'a VolumeTags,
    claim: &'a Claim,
}

impl<'a> Known<'a> {
    /// One of these volumes; otherwise why it cannot be brought back.
    fn of(volume: &'a VolumeRow, all: &[VolumeRow]) -> Result<Self, String> {
        let Some(tags) = &volume.details.tags else {
            return Err(volume.fault.clone().unwrap_or_else(|| "it has no tags".to_owned()));
        };
        match tags.state {
            VolumeState::Fresh | VolumeState::Used => {}
            VolumeState::Blank => return Err("it holds nothing yet".to_owned()),
            state => return Err(format!("it is {state}")),
        }
        // Kubernetes would bind it to the next claim of the class, whose pods would see what is on it.
        let Some(claim) = &volume.claim else { return Err("it was made for no claim".to_owned()) };
        match all.iter().find(|other| succeeds(other, volume)) {
            None => Ok(Self { volume, tags, claim }),
            Some(other) => {
                Err(format!("{} was made for its claim {claim} too, and not before it", other.path()))
            }
        }
    }

    fn persistent_volume(&self, class: &str, policy: ReclaimPolicy) -> Value {
        let mut csi = json!({ "driver": DRIVER_NAME, "volumeHandle": self.volume.handle });
        if let VolumeMode::Filesystem(fs) = self.tags.mode {
            csi["fsType"] = json!(fs.name());
        }
        let expressions = Segment::Vg(self.volume.details.vg.clone()).to_map().into_iter();
        let expressions: Vec<Value> = expressions
            .map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] }))
            .collect();
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": self.name(),
                // By this Kubernetes knows whom to ask for its removal.
                "annotations": { "pv.kubernetes.io/provisioned-by": DRIVER_NAME },
            },
            "spec": {
                "accessModes": [ACCESS_MODE],
                "capacity": { "storage": self.quantity() },
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": self.claim.namespace,
                    "name": self.claim.name,
                },
                "csi": csi,
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": expressions }] } },
                "persistentVolumeReclaimPolicy": policy.word(),
                "storageClassName": class,
                "volumeMode": self.mode(),
            },
        })
    }

    fn persistent_volume_claim(&self, class: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "namespace": self.claim.namespace, "name": self.claim.name },
            "spec": {
                "accessModes": [ACCESS_MODE],
                "resources": { "requests": { "storage": self.quantity() } },
                "storageClassName": class,
                "volumeMode": self.mode(),
                "volumeName": self.name(),
            },
        })
    }

    const fn mode(&self) -> &'static str {
        match self.tags.mode {
            VolumeMode::Filesystem(_) => "Filesystem",
            VolumeMode::Block => "Block",
        }
    }

    /// In bytes, exactly; in MiB where that is exact too, as LVM's extents are.
    fn quantity(&self) -> String {
        let bytes = self.volume.size_bytes.get();
        if bytes.is_multiple_of(1 << 20) { format!("{}Mi", bytes >> 20) } else { bytes.to_string() }
    }

    /// The name that the volume was asked for by, where Kubernetes takes it for an object; that is so for all
    /// that Kubernetes asked for.
    fn name(&self) -> &str {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let legal = |name: &&String| {
            name.bytes().all(letter) && name.len() <= 63 && !name.starts_with('-') && !name.ends_with('-')
        };
        self.volume.name.as_ref().filter(legal).unwrap_or(&self.volume.logical_volume)
    }
}

/// Whether another volume may have taken this one's place with its claim: the claim was deleted, its volume was kept,
/// and the claim was made anew.
fn succeeds(other: &VolumeRow, volume: &VolumeRow) -> bool {
    let is_earlier = match (other.details.created, volume.details.created) {
        (Some(other), Some(own)) => other < own,
        _ => false,
    };
    other.claim == volume.claim && other.handle != volume.handle && !is_earlier
}

#[cfg(test)]
mod tests;
