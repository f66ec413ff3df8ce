//! What is at a path, and at which paths a volume is.

use std::path::PathBuf;

use super::VolumeError;
use super::found::Found;
use crate::mount::{self, Mount, Mounted};
use crate::types::{BlockDevice, TargetPath, VolumeId};

/// What is mounted at the path.
pub(super) async fn look(path: &TargetPath) -> Result<Option<Mounted>, VolumeError> {
    let looked = mount::look(path).await;
    looked.map_err(|error| VolumeError::host(format!("{path} cannot be looked at"), error))
}

/// Every mount of the volume's file system.
pub(super) async fn mounts_of(device: &BlockDevice) -> Result<Vec<Mount>, VolumeError> {
    let mounts = mount::mounts_of(device.number).await;
    mounts.map_err(|error| VolumeError::host("it cannot be told what is mounted where", error))
}

/// Something else is there.
pub(super) fn taken(id: &VolumeId, path: &TargetPath, there: &Mounted) -> VolumeError {
    let kind = if there.is_device { "the device" } else { "a file system on device" };
    VolumeError::TargetTaken {
        id: id.clone(),
        path: path.to_path(),
        found: format!("{kind} {}", there.shows),
    }
}

/// Demands that the volume is at a path with the rights that are asked for.
pub(super) fn same_rights(
    found: &Found,
    path: &TargetPath,
    there: &Mounted,
    read_only: bool,
) -> Result<(), VolumeError> {
    let is_read_only = there.mount.has_option("ro");
    if is_read_only == read_only {
        return Ok(());
    }
    let word = |read_only| if read_only { "read-only" } else { "writable" };
    let difference = format!("it is {} there, and {} is asked for", word(is_read_only), word(read_only));
    Err(VolumeError::Incompatible { id: found.id.clone(), path: path.to_path(), difference })
}

/// A path at which the volume is used beside those that are the caller's own. The kernel tells paths
/// without symbolic links, and so all of them are compared as it tells them.
pub(super) async fn place_beside(
    device: &BlockDevice,
    own: &[&TargetPath],
) -> Result<Option<PathBuf>, VolumeError> {
    let mut ours = Vec::new();
    for path in own {
        ours.extend(look(path).await?.map(|there| there.mount.target));
    }
    Ok(places(device).await?.into_iter().find(|place| !ours.contains(place)))
}

/// Every path at which the volume is mounted or its device is bound.
///
/// # Errors
/// What is mounted or bound cannot be looked at.
pub async fn places(device: &BlockDevice) -> Result<Vec<PathBuf>, VolumeError> {
    let mut places: Vec<PathBuf> = mounts_of(device).await?.into_iter().map(|mount| mount.target).collect();
    let bound = mount::block_targets(device.number).await;
    places.extend(bound.map_err(|error| VolumeError::host("the bound devices cannot be looked at", error))?);
    Ok(places)
}
