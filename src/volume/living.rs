use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::VolumeError;
use super::found::Found;
use super::paths::{look, place_beside};
use super::volumes::Volumes;
use crate::fs::{self, Health};
use crate::mount::{Mount, MountTable};
use crate::types::{BlockDevice, FsType, TargetPath, VolumeCapability};

/// Where a volume's file system is mounted by us, and how.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) staging: &'a TargetPath,
    /// A target whose mount may be taken away with it.
    pub(super) target: Option<&'a TargetPath>,
    pub(super) capability: &'a VolumeCapability,
}

/// The staging folders from which a dead file system was taken and could not be mounted anew yet. The kubelet, for which
/// the volume stays staged while a pod of it is there, only publishes it again. This goes with the process: then all
/// pods of the volume on the node have to be deleted.
#[derive(Debug, Default)]
pub(super) struct Bare(Mutex<HashSet<PathBuf>>);

impl Bare {
    fn folders(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is one of them.
    pub(super) fn has(&self, staging: &Path) -> bool {
        self.folders().contains(staging)
    }

    /// It is staged again, or no more.
    pub(super) fn forget(&self, staging: &Path) {
        self.folders().remove(staging);
    }
}

impl Volumes {
    /// Sees to it that a staged file system works: one that was shut down, or whose journal was aborted,
    /// is mounted anew where nobody else uses it. It still looks mounted, so that without this a pod
    /// would be started on it again and again.
    ///
    /// # Errors
    /// [`VolumeError::Dead`]: it is dead, and is used; or it is dead again at once. [`VolumeError::Silent`]: that cannot
    /// be told now, and nothing was done.
    pub(super) async fn living(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let silent = |reason| VolumeError::Silent { id: found.id.clone(), reason };
        let reason = match of_staged(place.staging).await? {
            Health::Alive => return Ok(()),
            Health::Silent(reason) => return Err(silent(reason)),
            Health::Dead(reason) => reason,
        };
        tracing::warn!(reason, "a mounted file system is dead");
        let dead =
            |reason: String, used: Option<PathBuf>| VolumeError::Dead { id: found.id.clone(), reason, used };
        let own: Vec<&TargetPath> = place.target.into_iter().chain([place.staging]).collect();
        if let Some(used) = place_beside(device, &own).await? {
            return Err(dead(reason, Some(used)));
        }
        for path in own {
            if let Err(error) = self.unmount(&found.id, path).await {
                tracing::warn!(%error, "a dead file system stays mounted");
                return Err(dead(reason, Some(path.to_path())));
            }
        }
        self.mount_anew(found, fs, device, place).await?;
        match of_staged(place.staging).await? {
            Health::Alive => Ok(()),
            Health::Silent(reason) => Err(silent(reason)),
            Health::Dead(reason) => Err(dead(reason, None)),
        }
    }

    /// Mounts a volume where its dead file system was taken away.
    pub(super) async fn mount_anew(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let staging = place.staging.to_path();
        self.bare.folders().insert(staging.clone());
        self.mount_at(found, fs, device, place).await?;
        self.bare.forget(&staging);
        Ok(())
    }
}

/// Whether the file system works that is mounted at a path, which must be without symbolic links.
pub async fn health(path: &Path) -> Health {
    let table = MountTable::read().await.ok();
    match table.as_ref().and_then(|table| table.at(path)) {
        Some(mount) => of_mount(mount).await,
        None => fs::health(path).await,
    }
}

/// Whether the file system that is staged there works.
async fn of_staged(staging: &TargetPath) -> Result<Health, VolumeError> {
    Ok(match look(staging).await? {
        Some(there) => of_mount(&there.mount).await,
        None => fs::health(&staging.to_path()).await,
    })
}

/// btrfs answers as ever after the kernel has stopped all writing to it: only the mount table tells.
async fn of_mount(mount: &Mount) -> Health {
    match fs::health(&mount.target).await {
        Health::Alive if mount.is_forced_read_only() => Health::Dead(forced_read_only(&mount.target)),
        told => told,
    }
}

/// What is said of a file system that the kernel lets nobody write to.
pub(super) fn forced_read_only(path: &Path) -> String {
    format!("{}: the kernel has made the file system read-only, after an error in it", path.display())
}
