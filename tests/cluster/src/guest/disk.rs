//! The disk for what containerd and the kubelet keep: the guest's own root is memory, and gone with it.

use std::path::Path;

use nix::mount::{MsFlags, mount};

use crate::Error;
use crate::paths::make_folder;

/// Where it is mounted.
const PLACE: &str = "/var/lib/node";

/// Folders of the disk, and where programs look for them.
const FOLDERS: [(&str, &str); 3] =
    [("containerd", "/var/lib/containerd"), ("kubelet", "/var/lib/kubelet"), ("pods", "/var/log/pods")];

/// Mounts the disk and puts its folders in their places.
pub(super) fn attach(disk: &Path) -> Result<(), Error> {
    let place = Path::new(PLACE);
    make_folder(place)?;
    mount(Some(disk), place, Some("ext4"), MsFlags::empty(), None::<&str>)
        .map_err(Error::at("mount", disk))?;
    for (folder, target) in FOLDERS {
        let (folder, target) = (place.join(folder), Path::new(target));
        make_folder(&folder)?;
        make_folder(target)?;
        bind(&folder, target)?;
    }
    // As a real host's init does it: what the kubelet and CSI drivers mount has to reach each other.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>)
        .map_err(Error::io("share all mounts"))
}

/// Makes one file or folder appear in the place of another.
pub(super) fn bind(from: &Path, to: &Path) -> Result<(), Error> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(Error::at("bind to", to))
}
