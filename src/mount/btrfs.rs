//! btrfs shows a device number of its own in the mount table. Which device it lies on, the kernel tells in
//! sysfs, by the file system's UUID (its fs/btrfs/sysfs.c); and by which UUID a mounted one goes, it tells at
//! the mount point, in short (statfs(2), `f_fsid`).

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::target::within;
use super::{Mount, MountError, MountTable};
use crate::types::{DeviceNumber, FsUuid};

/// A folder for each btrfs that is mounted.
const SYSFS: &str = "/sys/fs/btrfs";

/// The number of the tree that a volume is mounted with, its topmost (`BTRFS_FS_TREE_OBJECTID`).
const TOP: u64 = 5;

/// The numbers that subvolumes have: those that somebody may have made inside
/// (`BTRFS_FIRST_FREE_OBJECTID`). There are not so many in one file system.
const SUBVOLUMES: std::ops::Range<u64> = 256..1 << 32;

/// Whether a mount is one of btrfs.
pub(super) fn is(mount: &Mount) -> bool {
    mount.fs_type == "btrfs"
}

/// The device below the btrfs that is mounted at a path; `None` where it is not one device.
pub(super) async fn device_below(target: PathBuf) -> Result<Option<DeviceNumber>, MountError> {
    within(target.clone(), move || {
        let told = told_by(&target)?;
        for (uuid, folder) in mounted()? {
            if is_of(told, uuid) {
                let devices = devices(&folder)?;
                return Ok(if devices.len() == 1 { devices.into_iter().next() } else { None });
            }
        }
        Ok(None)
    })
    .await
}

/// The number by which the mount table knows the btrfs that lies on a device; `None` where none is mounted.
pub(super) async fn own_number(
    table: &MountTable,
    device: DeviceNumber,
) -> Result<Option<DeviceNumber>, MountError> {
    let find = move || {
        let on_it =
            |(uuid, folder): (FsUuid, PathBuf)| Ok(devices(&folder)?.contains(&device).then_some(uuid));
        mounted()?.into_iter().map(on_it).find_map(Result::transpose).transpose()
    };
    let Some(uuid) = within(SYSFS.into(), find).await? else { return Ok(None) };
    let mut others = BTreeSet::new();
    // What lies below another mount cannot be asked there; it is the same file system wherever it is.
    let seen = table.iter().filter(|mount| is(mount) && table.at(&mount.target) == Some(mount));
    for mount in seen {
        if others.contains(&mount.device) {
            continue;
        }
        let target = mount.target.clone();
        let told = match within(target.clone(), move || told_by(&target)).await {
            // Unmounted in the meantime, or hidden by a mount further up.
            Err(error) if error.is_absent() => continue,
            told => told?,
        };
        if is_of(told, uuid) {
            return Ok(Some(mount.device));
        }
        others.insert(mount.device);
    }
    Ok(None)
}

/// What the file system at a mount point says that it is.
fn told_by(target: &Path) -> Result<u64, MountError> {
    match statvfs(target) {
        Ok(found) => Ok(found.filesystem_id()),
        Err(error) => Err(MountError::io(target, "does not tell which file system it is", error)),
    }
}

/// Whether that is the btrfs of that UUID: the halves of the UUID's halves, and the number of the tree,
/// laid over each other (`btrfs_statfs`).
fn is_of(told: u64, uuid: FsUuid) -> bool {
    let [first, second, third, fourth] =
        [96, 64, 32, 0].map(|shift| uuid.as_u128() >> shift & u128::from(u32::MAX));
    let (low, high) = (first ^ third, second ^ fourth);
    // The C library puts the first half below the second; the tree's number is the other way round.
    let tree = u128::from(told & u64::from(u32::MAX)) ^ low;
    let tree = tree << 32 | u128::from(told >> 32) ^ high;
    u64::try_from(tree).is_ok_and(|tree| tree == TOP || SUBVOLUMES.contains(&tree))
}

/// Every btrfs that is mounted, with its folder in sysfs.
fn mounted() -> Result<Vec<(FsUuid, PathBuf)>, MountError> {
    let entries = match fs::read_dir(SYSFS) {
        Ok(entries) => entries,
        // The kernel has no btrfs, or not yet.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(MountError::io(Path::new(SYSFS), "cannot be listed", error)),
    };
    let folder = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.map_err(|error| MountError::io(Path::new(SYSFS), "cannot be listed", error))?.path();
        let uuid = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        Ok(uuid.map(|uuid| (uuid, path)))
    };
    entries.map(folder).filter_map(Result::transpose).collect()
}

/// The devices that a btrfs lies on.
fn devices(folder: &Path) -> Result<BTreeSet<DeviceNumber>, MountError> {
    let folder = folder.join("devices");
    let refused = |error| MountError::io(&folder, "cannot be read", error);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        // It was unmounted just now.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(refused(error)),
    };
    let mut devices = BTreeSet::new();
    for entry in entries {
        // A device that is gone has no number any more.
        let number = fs::read_to_string(entry.map_err(refused)?.path().join("dev")).unwrap_or_default();
        devices.extend(number.parse::<DeviceNumber>());
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111";

    /// As seen of a mounted one with that UUID, and of its subvolume 256.
    const TOLD: u64 = 0xbd9a_fa3b_941d_6605;
    const TOLD_OF_SUBVOLUME: u64 = 0xbd9a_fb3e_941d_6605;

    #[test]
    fn a_file_system_is_known_by_what_it_tells_of_its_uuid() {
        let uuid: FsUuid = UUID.parse().unwrap();
        assert!(is_of(TOLD, uuid) && is_of(TOLD_OF_SUBVOLUME, uuid));
        let other: FsUuid = UUID.replace("0e5e", "0e5f").parse().unwrap();
        assert!(!is_of(TOLD, other) && !is_of(TOLD_OF_SUBVOLUME, other));
        assert!(!is_of(0, uuid) && !is_of(u64::MAX, uuid) && !is_of(TOLD ^ 1, uuid));
    }
}
