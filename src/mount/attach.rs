use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::flags::{Arguments, arguments, of_mount};
use super::look::{Mounted, look_at};
use super::target::resolve_existing;
use super::unmount::detach_own;
use super::{MountError, blocking};
use crate::types::{BlockDevice, DeviceNumber, DmUuid, FsType, MountOptions, TargetPath};

/// Mounts the file system on a device at an existing folder, and looks whether that is what is there.
///
/// `always` are options that the file system needs whatever the user asks for. The caller has looked
/// that nothing of his is mounted there yet: a second call puts a second mount on top. It takes as long
/// as the kernel needs to replay a journal, and goes on when the caller's future is dropped.
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
            .map_err(|errno| refused(&place, "the kernel does not mount this file system", errno))
    })
    .await?;
    prove(&target, number, |found| !found.is_device && found.mount.fs_type == fs_type.name()).await?;
    prove_identity(&target, device).await
}

/// Shows at an existing folder what is mounted at `source`, read-only if asked: a bind mount of the
/// file system with the device number `expected`, and of nothing else.
///
/// The caller has looked that nothing of his is mounted there yet: a second call puts a second mount on
/// top.
///
/// # Errors
/// Something else is mounted at `source`; the kernel refuses; or the mount is not what it should be,
/// and was taken away again.
pub async fn bind_fs(
    source: &TargetPath,
    expected: DeviceNumber,
    target: &TargetPath,
    read_only: bool,
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
    bind(source, &target, None).await?;
    prove(&target, expected, |found| !found.is_device).await?;
    restrict(&target, expected, read_only).await
}

/// Shows a block device at an existing file: a bind mount of its node.
///
/// With `read_only` the mount is read-only, which keeps the node from being replaced but nobody from
/// writing to the device: for that, who opens it must be held to reading (the kubelet gives a container
/// its device with the rights that the pod asks for).
///
/// # Errors
/// The path of the device leads elsewhere by now; the kernel refuses; or the mount is not what it should
/// be, and was taken away again.
pub async fn bind_device(
    device: &BlockDevice,
    target: &TargetPath,
    read_only: bool,
) -> Result<(), MountError> {
    let target = resolve_existing(target).await?;
    bind(device.path.clone(), &target, Some(device.number)).await?;
    prove(&target, device.number, |found| found.is_device).await?;
    prove_identity(&target, device).await?;
    restrict(&target, device.number, read_only).await
}

/// The bind mount itself. `node` is the number of the device that `source` must lead to, if it is one.
async fn bind(source: PathBuf, target: &Path, node: Option<DeviceNumber>) -> Result<(), MountError> {
    let target = target.to_owned();
    blocking(move || {
        node.map_or(Ok(()), |number| check_node(&source, number))?;
        mount(Some(&source), &target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|errno| refused(&target, "the kernel does not mount this", errno))
    })
    .await
}

/// Makes a new bind mount read-only; if that fails, no mount remains.
async fn restrict(target: &Path, expected: DeviceNumber, read_only: bool) -> Result<(), MountError> {
    if !read_only {
        return Ok(());
    }
    let ended = remount_read_only(target).await;
    if ended.is_err() {
        detach_own(target, expected).await;
    }
    ended
}

async fn remount_read_only(target: &Path) -> Result<(), MountError> {
    let unproven = || MountError::io(target, "did not become read-only", std::io::ErrorKind::Other);
    let found = look_at(target).await?.ok_or_else(unproven)?;
    let flags = of_mount(&found.mount) | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let place = target.to_owned();
    blocking(move || {
        mount(None::<&str>, &place, None::<&str>, flags, None::<&str>)
            .map_err(|errno| refused(&place, "the kernel does not make it read-only", errno))
    })
    .await?;
    let found = look_at(target).await?;
    found.filter(|found| found.mount.has_option("ro")).map(drop).ok_or_else(unproven)
}

/// Looks whether a new mount is what was to be mounted, and takes it away if it is not.
async fn prove(
    target: &Path,
    expected: DeviceNumber,
    fits: impl Fn(&Mounted) -> bool,
) -> Result<(), MountError> {
    let found = match look_at(target).await? {
        Some(found) if found.shows == expected && fits(&found) => return Ok(()),
        found => found,
    };
    let target = target.to_owned();
    if let Some(found) = &found {
        // What was just mounted shows another device: the path was led elsewhere at that very moment.
        detach_own(&target, found.shows).await;
    }
    let found = found.map_or_else(|| "no mount".to_owned(), |found| found.shows.to_string());
    Err(MountError::Unproven { target, expected, found })
}

/// Looks whether the number is still the volume's, and takes the mount away if it is not. From here on a
/// mounted file system holds its device, so that the number stays what it is; a bound node does not.
async fn prove_identity(target: &Path, device: &BlockDevice) -> Result<(), MountError> {
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
fn check_node(path: &Path, expected: DeviceNumber) -> Result<(), MountError> {
    let found = fs::metadata(path).map_err(|source| MountError::io(path, "cannot be looked at", source))?;
    let number = DeviceNumber::from_dev(found.rdev());
    if found.file_type().is_block_device() && number == expected {
        return Ok(());
    }
    let found = if found.file_type().is_block_device() { number.to_string() } else { "no device".to_owned() };
    Err(MountError::Moved { path: path.to_owned(), expected, found })
}

fn refused(target: &Path, what: &'static str, errno: Errno) -> MountError {
    MountError::io(target, what, errno)
}
