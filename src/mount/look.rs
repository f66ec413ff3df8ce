use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::target::{resolve, within};
use super::{Mount, MountError, MountTable, btrfs};
use crate::types::{DeviceNumber, TargetPath};

/// What is mounted at a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The entry in the mount table.
    pub mount: Mount,
    /// The device that is seen there: the one that the file system lies on, or the one that the bound
    /// node is.
    pub shows: DeviceNumber,
    /// Whether it is a bound device node, and not a file system.
    pub is_device: bool,
}

/// Looks what is mounted at a target, the topmost if several mounts are stacked; `None` if nothing is.
/// A repeat of a request finds its own mount this way, and mounts nothing again.
///
/// # Errors
/// The mount table cannot be read, or the target does not answer.
pub async fn look(target: &TargetPath) -> Result<Option<Mounted>, MountError> {
    let Some(path) = resolve(target).await? else { return Ok(None) };
    look_at(&path).await
}

/// The same for a path without symbolic links.
pub(super) async fn look_at(path: &Path) -> Result<Option<Mounted>, MountError> {
    let table = MountTable::read().await?;
    let Some(mount) = table.at(path).cloned() else { return Ok(None) };
    let bound = if may_be_a_node(&mount) { node_number(path.to_owned()).await? } else { None };
    let below = if btrfs::is(&mount) { btrfs::device_below(path.to_owned()).await? } else { None };
    let is_device = bound.is_some();
    Ok(Some(Mounted { shows: bound.or(below).unwrap_or(mount.device), mount, is_device }))
}

/// Every mount of the file system that lies on a device, bind mounts included.
///
/// # Errors
/// The mount table cannot be read; or a btrfs does not answer, so that it cannot be told from this one.
pub async fn mounts_of(number: DeviceNumber) -> Result<Vec<Mount>, MountError> {
    let table = MountTable::read().await?;
    let own = btrfs::own_number(&table, number).await?.unwrap_or(number);
    Ok(table.of_device(own).cloned().collect())
}

/// Every target that a block device is bound on.
///
/// # Errors
/// The mount table cannot be read, or a bound node does not answer.
pub async fn block_targets(number: DeviceNumber) -> Result<Vec<PathBuf>, MountError> {
    let table = MountTable::read().await?;
    let mut targets = Vec::new();
    for mount in table.iter().filter(|mount| may_be_a_node(mount)) {
        if node_number(mount.target.clone()).await? == Some(number) {
            targets.push(mount.target.clone());
        }
    }
    Ok(targets)
}

/// Whether a mount may be a bound device node: one file of devtmpfs, or a node of our own making, whose
/// name is a device number. Only such mounts are touched; a file of devtmpfs answers at once.
fn may_be_a_node(mount: &Mount) -> bool {
    let name = mount.root.file_name().and_then(|name| name.to_str());
    let is_number = || name.is_some_and(|name| name.parse::<DeviceNumber>().is_ok());
    name.is_some() && (mount.fs_type == "devtmpfs" || is_number())
}

/// The number of the block device at a path, links not followed; `None` if something else is there.
async fn node_number(path: PathBuf) -> Result<Option<DeviceNumber>, MountError> {
    within(path.clone(), move || match fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_block_device() => Ok(Some(DeviceNumber::from_dev(found.rdev()))),
        Ok(_) => Ok(None),
        // Unmounted in the meantime, or covered by another mount further up.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(MountError::io(&path, "cannot be looked at", error)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bound_nodes_are_touched() {
        let table = MountTable::parse(
            b"1 0 0:5 / /dev rw - devtmpfs dev rw\n\
              2 0 0:5 /mapper/vg-a /pods/a rw - devtmpfs dev rw\n\
              3 0 0:7 /nodes/254:3 /pods/b rw - tmpfs t rw\n\
              4 0 0:9 /export /pods/c rw - nfs4 server:/export rw\n\
              5 0 254:0 / /pods/d rw - ext4 /dev/dm-0 rw\n",
        );
        let touched: Vec<u64> = table.iter().filter(|mount| may_be_a_node(mount)).map(|m| m.id).collect();
        assert_eq!(touched, [2, 3]);
    }
}
