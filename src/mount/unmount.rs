use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};

use super::look::look_at;
use super::target::resolve;
use super::{MountError, blocking};
use crate::types::{DeviceNumber, TargetPath};

/// More mounts than this on top of each other are not taken for an accident of ours.
const STACKED: usize = 64;

/// Unmounts a target until nothing is mounted there, as long as what is mounted is the device
/// `expected`. Nothing mounted, or no such path, is done already.
///
/// It is never done lazily (umount2(2), `MNT_DETACH`): a volume that is still used would look free. The
/// last unmount of a file system writes all its data to the disk and takes as long as that does.
///
/// # Errors
/// [`MountError::Busy`]: it is in use, and stays mounted. [`MountError::Foreign`]: another device is
/// mounted there, and stays. Or the kernel refuses.
pub async fn unmount(target: &TargetPath, expected: DeviceNumber) -> Result<(), MountError> {
    let Some(target) = resolve(target).await? else { return Ok(()) };
    for _ in 0..STACKED {
        let Some(found) = look_at(&target).await? else { return Ok(()) };
        if found.shows != expected {
            return Err(MountError::Foreign { target, expected, found: found.shows });
        }
        detach(&target).await?;
    }
    let too_many = std::io::Error::other("too many mounts lie on each other");
    Err(MountError::io(&target, "is still mounted after 64 unmounts", too_many))
}

/// Takes away a mount that was made a moment ago and is not wanted after all. That it fails is only
/// logged: the caller has an error to report that came first.
pub(super) async fn detach_own(target: &Path, shows: DeviceNumber) {
    if let Err(error) = detach(target).await {
        tracing::error!(target = %target.display(), %shows, %error, "an unwanted mount stays");
    }
}

async fn detach(target: &Path) -> Result<(), MountError> {
    let target = target.to_owned();
    blocking(move || detach_now(&target)).await
}

/// Takes away the topmost mount at a path.
pub(super) fn detach_now(target: &Path) -> Result<(), MountError> {
    match umount2(target, MntFlags::UMOUNT_NOFOLLOW) {
        // EINVAL: no mount any more; somebody else was quicker.
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => Ok(()),
        Err(Errno::EBUSY) => Err(MountError::Busy { target: target.to_owned() }),
        Err(errno) => Err(MountError::io(target, "cannot be unmounted", errno)),
    }
}
