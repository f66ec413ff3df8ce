use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nix::mount::mount;

use super::flags::{Arguments, arguments};
use super::look::{Mounted, look_at};
use super::target::resolve_existing;
use super::unmount::detach_own;
use super::{MountError, blocking};
use crate::types::{BlockDevice, DeviceNumber, DmUuid, FsType, MountOptions, TargetPath};

/// Mounts the file system on a device at an existing folder, and looks whether that is what is there.
///
/// `always` are options that count whatever the user asks for. The caller has looked that nothing of his is
/// mounted there yet: a second call puts a second mount on top. It takes as long as the kernel needs to
/// replay a journal, and goes on when the caller's future is dropped.
///
/// # Errors
/// The path of the device leads elsewhere by now; the kernel refuses (a damaged file system: see its
/// log); or the mount is not what it should be, and was taken away again.
pub async fn mount_fs(
    device: &BlockDevice,
    target: &TargetPath,
    fs_type: FsType,
    always: &[&str],
    options: &MountOptions,
) -> Result<(), MountError> {
    let target = resolve_existing(target).await?;
    let Arguments { flags, data } = arguments(always, options);
    let (source, number) = (device.path.clone(), device.number);
    let place = target.clone();
    blocking(move || {
        check_node(&source, number)?;
        let data = (!data.is_empty()).then_some(data.as_str());
        mount(Some(&source), &place, Some(fs_type.name()), flags, data)
            .map_err(|errno| MountError::io(&place, "the kernel does not mount this file system", errno))
    })
    .await?;
    prove(&target, number, |found| !found.is_device && found.mount.fs_type == fs_type.name()).await?;
    prove_identity(&target, device).await
}

/// Looks whether a new mount is what was to be mounted, and takes it away if it is not, or if nobody can tell.
pub(super) async fn prove(
    target: &Path,
    expected: DeviceNumber,
    fits: impl Fn(&Mounted) -> bool,
) -> Result<(), MountError> {
    let looked = look_at(target).await;
    match &looked {
        Ok(Some(found)) if found.shows == expected && fits(found) => return Ok(()),
        // What was just mounted shows another device: the path was led elsewhere at that very moment.
        Ok(Some(found)) => detach_own(target, found.shows).await,
        Ok(None) => {}
        Err(_) => detach_own(target, expected).await,
    }
    let found = looked?.map_or_else(|| "no mount".to_owned(), |found| found.shows.to_string());
    Err(MountError::Unproven { target: target.to_owned(), expected, found })
}

/// Looks whether the number is still the volume's, and takes the mount away if it is not. From here on a
/// mounted file system holds its device, so that the number stays what it is; a bound node does not.
pub(super) async fn prove_identity(target: &Path, device: &BlockDevice) -> Result<(), MountError> {
    let path = Path::new("/sys/dev/block").join(device.number.to_string()).join("dm/uuid");
    let found = tokio::fs::read_to_string(path).await.unwrap_or_default();
    if found.parse().is_ok_and(|found: DmUuid| found == device.uuid) {
        return Ok(());
    }
    detach_own(target, device.number).await;
    let found = format!("the volume {found:?} with the same number");
    Err(MountError::Unproven { target: target.to_owned(), expected: device.number, found })
}

/// Looks whether a path leads to a block device of that number.
pub(super) fn check_node(path: &Path, expected: DeviceNumber) -> Result<(), MountError> {
    let found = fs::metadata(path).map_err(|source| MountError::io(path, "cannot be looked at", source))?;
    let number = DeviceNumber::from_dev(found.rdev());
    if found.file_type().is_block_device() && number == expected {
        return Ok(());
    }
    let found = if found.file_type().is_block_device() { number.to_string() } else { "no device".to_owned() };
    Err(MountError::Moved { path: path.to_owned(), expected, found })
}
