use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use uuid::Uuid;

/// A path at which a volume is mounted, or its device is bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The path.
    pub path: PathBuf,
    /// The UID of the pod that it is for, where the kubelet has put it there.
    pub pod: Option<String>,
    /// Whether the kubelet only keeps it ready there.
    pub staging: bool,
}

impl Place {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { pod: pod(&path), staging: path.file_name() == Some(OsStr::new("globalmount")), path }
    }
}

/// The kubelet's paths: `pods/UID/volumes/…`, `pods/UID/volumeDevices/…`, `volumeDevices/publish/PV/UID`.
fn pod(path: &Path) -> Option<String> {
    let names: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
    let found = names.windows(3).find_map(|three| match three {
        ["pods", uid, "volumes" | "volumeDevices"] | ["publish", _, uid] => Some(*uid),
        _ => None,
    });
    found.filter(|uid| Uuid::try_parse(uid).is_ok()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0f1e2d3c-5d0a-4a55-9c8c-1d6f3b3c2f10";

    #[test]
    fn the_kubelets_paths_tell_the_pod() {
        for path in [
            format!("/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/pvc-a/mount"),
            format!("/var/lib/kubelet/pods/{UID}/volumeDevices/kubernetes.io~csi/pvc-a"),
            format!("/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-a/{UID}"),
        ] {
            assert_eq!(
                Place::at(path.clone().into()),
                Place { path: path.into(), pod: Some(UID.to_owned()), staging: false }
            );
        }
    }

    #[test]
    fn other_paths_tell_none() {
        let staging =
            Place::at("/var/lib/kubelet/plugins/kubernetes.io/csi/lvm.csi.quarry/ab/globalmount".into());
        assert!(staging.staging && staging.pod.is_none());
        for path in ["/mnt/pods/a/volumes", "/mnt/volume", "/pods/volumes"] {
            let place = Place::at(path.into());
            assert!(!place.staging && place.pod.is_none(), "{path}");
        }
    }
}
