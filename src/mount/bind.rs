use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::aside::{Aside, Kind};
use super::attach::{check_node, prove, prove_identity};
use super::look::{Mounted, look_at};
use super::target::resolve_existing;
use super::{MountError, blocking};
use crate::types::{BlockDevice, DeviceNumber, TargetPath};

/// What may be done through a bind mount.
#[derive(Debug, Clone, Copy)]
pub enum Rights<'a> {
    /// What may be done at its source.
    All,
    /// Reading. The mount is made ready at this place, so that it is never seen with other rights.
    Read(&'a Aside),
}

impl Rights<'_> {
    fn fit(self, found: &Mounted) -> bool {
        match self {
            Self::All => true,
            Self::Read(_) => found.mount.has_option("ro"),
        }
    }
}

/// Shows at an existing folder what is mounted at `source`: a bind mount of the file system with the device number
/// `expected`, and of nothing else.
///
/// The caller has looked that nothing of his is mounted there yet: a second call puts a second mount on top.
///
/// # Errors
/// Something else is mounted at `source`; the kernel refuses; or the mount is not what it should be, and was taken
/// away again.
pub async fn bind_fs(
    source: &TargetPath,
    expected: DeviceNumber,
    target: &TargetPath,
    rights: Rights<'_>,
) -> Result<(), MountError> {
    let source = resolve_existing(source).await?;
    let shown = look_at(&source).await?;
    match shown {
        Some(shown) if shown.shows == expected && !shown.is_device => {}
        shown => {
            let found = shown.map_or_else(|| "no mount".to_owned(), |shown| shown.shows.to_string());
            return Err(MountError::Moved { path: source, expected, found });
        }
    }
    let target = resolve_existing(target).await?;
    bind(source, &target, None, rights).await?;
    prove(&target, expected, |found| !found.is_device && rights.fit(found)).await
}

/// Shows a block device at an existing file: a bind mount of its node.
///
/// With the right to read alone the mount is read-only, which keeps the node from being replaced but nobody from writing
/// to the device: for that, who opens it must be held to reading (the kubelet gives a container its device with the
/// rights that the pod asks for).
///
/// # Errors
/// The path of the device leads elsewhere by now; the kernel refuses; or the mount is not what it should be, and was
/// taken away again.
pub async fn bind_device(
    device: &BlockDevice,
    target: &TargetPath,
    rights: Rights<'_>,
) -> Result<(), MountError> {
    let target = resolve_existing(target).await?;
    bind(device.path.clone(), &target, Some(device.number), rights).await?;
    prove(&target, device.number, |found| found.is_device && rights.fit(found)).await?;
    prove_identity(&target, device).await
}

/// The bind mount itself. `node` is the number of the device that `source` must lead to, if it is one.
async fn bind(
    source: PathBuf,
    target: &Path,
    node: Option<DeviceNumber>,
    rights: Rights<'_>,
) -> Result<(), MountError> {
    let make = move |place: &Path| {
        node.map_or(Ok(()), |number| check_node(&source, number))?;
        mount(Some(&source), place, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|errno| MountError::io(place, "the kernel does not mount this", errno))
    };
    let target = target.to_owned();
    match rights {
        Rights::All => blocking(move || make(&target)).await,
        Rights::Read(aside) => {
            let kind = if node.is_some() { Kind::File } else { Kind::Folder };
            aside.show_read_only(kind, target, make).await
        }
    }
}
