use std::fmt::Write as _;

use serde_json::{Value, json};

use super::VolumeRow;
use crate::csi::DRIVER_NAME;
use crate::types::{Segment, VolumeMode, VolumeState};

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
        let documents = match documents(volume, class, policy) {
            Ok(documents) => documents,
            Err(why) => {
                let _ = writeln!(text, "# left out: {}: {why}", volume.path());
                continue;
            }
        };
        for document in documents {
            text.push_str("---\n");
            text.push_str(serde_saphyr::to_string(&document)?.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

fn documents(volume: &VolumeRow, class: &str, policy: ReclaimPolicy) -> Result<Vec<Value>, String> {
    let Some(tags) = &volume.details.tags else {
        return Err(volume.fault.clone().unwrap_or_else(|| "it has no tags".to_owned()));
    };
    match tags.state {
        VolumeState::Fresh | VolumeState::Used => {}
        VolumeState::Blank => return Err("it holds nothing yet".to_owned()),
        state => return Err(format!("it is {state}")),
    }
    let name = object_name(volume);
    let mut documents = vec![persistent_volume(volume, &name, tags.mode, class, policy)];
    if let Some(claim) = &volume.claim {
        documents.push(json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "namespace": claim.namespace, "name": claim.name },
            "spec": {
                "accessModes": [ACCESS_MODE],
                "resources": { "requests": { "storage": quantity(volume) } },
                "storageClassName": class,
                "volumeMode": volume_mode(tags.mode),
                "volumeName": name,
            },
        }));
    }
    Ok(documents)
}

/// What a volume that is on one node can be. Tags do not tell whether the claim asked for one pod only.
const ACCESS_MODE: &str = "ReadWriteOnce";

fn persistent_volume(
    volume: &VolumeRow,
    name: &str,
    mode: VolumeMode,
    class: &str,
    policy: ReclaimPolicy,
) -> Value {
    let mut csi = json!({ "driver": DRIVER_NAME, "volumeHandle": volume.handle });
    if let VolumeMode::Filesystem(fs) = mode {
        csi["fsType"] = json!(fs.name());
    }
    let expressions = Segment::Vg(volume.details.vg.clone()).to_map().into_iter();
    let expressions: Vec<Value> =
        expressions.map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] })).collect();
    let mut spec = json!({
        "accessModes": [ACCESS_MODE],
        "capacity": { "storage": quantity(volume) },
        "csi": csi,
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": expressions }] } },
        "persistentVolumeReclaimPolicy": policy.word(),
        "storageClassName": class,
        "volumeMode": volume_mode(mode),
    });
    if let Some(claim) = &volume.claim {
        spec["claimRef"] = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
        });
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        // By this Kubernetes knows whom to ask for its removal.
        "metadata": { "name": name, "annotations": { "pv.kubernetes.io/provisioned-by": DRIVER_NAME } },
        "spec": spec,
    })
}

const fn volume_mode(mode: VolumeMode) -> &'static str {
    match mode {
        VolumeMode::Filesystem(_) => "Filesystem",
        VolumeMode::Block => "Block",
    }
}

/// In bytes, exactly; in MiB where that is exact too, as LVM's extents are.
fn quantity(volume: &VolumeRow) -> String {
    let bytes = volume.size_bytes.get();
    if bytes.is_multiple_of(1 << 20) { format!("{}Mi", bytes >> 20) } else { bytes.to_string() }
}

/// The name that the volume was asked for by, where Kubernetes takes it for an object; that is so for all
/// that Kubernetes asked for.
fn object_name(volume: &VolumeRow) -> String {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let legal = |name: &&String| {
        name.bytes().all(letter) && name.len() <= 63 && !name.starts_with('-') && !name.ends_with('-')
    };
    volume.name.as_ref().filter(legal).unwrap_or(&volume.logical_volume).clone()
}
