//! What volumes that are gone must not leave, beside their LVs: attachments, mounts, devices.

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::scenarios::volumes::{GROUP, ensure};
use crate::{Cluster, Error, Node};

/// What paths of volumes below the kubelet's folder have in them: targets, and where volumes are staged.
const PATHS: [&str; 2] = ["/kubernetes.io~csi/", "/plugins/kubernetes.io/csi/"];

/// Fails if anything is left, on any node.
pub(super) async fn none(cluster: &Cluster) -> Result<(), Error> {
    let attachments: Api<VolumeAttachment> = Api::all(cluster.client());
    let all = attachments.list(&ListParams::default()).await.map_err(Error::api("list the attachments"))?;
    let left: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    ensure(left.is_empty(), || format!("left of VolumeAttachments: {left:?}"))?;
    for node in cluster.nodes() {
        on(node).await?;
    }
    Ok(())
}

async fn on(node: &Node) -> Result<(), Error> {
    let mounts = node.run_ok(&["cat", "/proc/self/mountinfo"]).await?;
    let left = mounts_of_volumes(&mounts);
    ensure(left.is_empty(), || format!("mounted on {}, of volumes that are gone: {left:#?}", node.name()))?;
    let devices = node.run_ok(&["dmsetup", "ls"]).await?;
    let left = devices_of_volumes(&devices);
    ensure(left.is_empty(), || format!("devices on {}, of volumes that are gone: {left:#?}", node.name()))
}

/// The lines of mountinfo that are about volumes: by their paths, or because they are mounts of a volume's device.
fn mounts_of_volumes(mounts: &str) -> Vec<&str> {
    let device = format!(" /dev/mapper/{GROUP}-");
    let is_one = |line: &&str| PATHS.iter().any(|path| line.contains(path)) || line.contains(&device);
    mounts.lines().filter(is_one).collect()
}

/// The lines of `dmsetup ls` that are about LVs of the group.
fn devices_of_volumes(devices: &str) -> Vec<&str> {
    let prefix = format!("{GROUP}-");
    devices.lines().filter(|line| line.starts_with(&prefix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_and_devices_of_volumes_are_told_from_others() {
        let mounts = "\
            60 25 98:0 /kubelet /var/lib/kubelet rw - ext4 /dev/ubda rw\n\
            70 60 0:50 / /var/lib/kubelet/pods/8a/volumes/kubernetes.io~projected/token rw - tmpfs tmpfs rw\n\
            71 60 254:0 / /var/lib/kubelet/pods/8a/volumes/kubernetes.io~csi/pvc-1/mount rw - ext4 /dev/mapper/quarry-pvc--1 rw\n\
            72 60 254:0 / /var/lib/kubelet/plugins/kubernetes.io/csi/lvm.csi.quarry/5f/globalmount rw - ext4 /dev/dm-0 rw\n\
            73 60 0:6 /dm-0 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/8a rw - devtmpfs devtmpfs rw\n\
            74 25 254:0 / /mnt rw - ext4 /dev/mapper/quarry-pvc--1 rw";
        let left = mounts_of_volumes(mounts);
        let numbers: Vec<_> = left.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(numbers, ["71", "72", "73", "74"]);
        let devices = "quarry-pvc--1\t(254:0)\nother-root\t(254:1)\n";
        assert_eq!(devices_of_volumes(devices), ["quarry-pvc--1\t(254:0)"]);
        assert!(devices_of_volumes("No devices found\n").is_empty());
    }
}
