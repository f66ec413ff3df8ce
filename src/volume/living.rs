use std::path::PathBuf;

use super::VolumeError;
use super::found::Found;
use super::paths::place_beside;
use super::volumes::Volumes;
use crate::fs::{self, Health};
use crate::types::{BlockDevice, FsType, TargetPath, VolumeCapability};

/// Where a volume's file system is mounted by us, and how.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) staging: &'a TargetPath,
    /// A target whose mount may be taken away with it.
    pub(super) target: Option<&'a TargetPath>,
    pub(super) capability: &'a VolumeCapability,
}

impl Volumes {
    /// Sees to it that a staged file system works: one that was shut down, or whose journal was aborted,
    /// is mounted anew where nobody else uses it. It still looks mounted, so that without this a pod
    /// would be started on it again and again.
    ///
    /// # Errors
    /// [`VolumeError::Dead`]: it is dead, and is used; or it is dead again at once.
    pub(super) async fn living(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let staging = place.staging.to_path();
        let Health::Dead(reason) = fs::health(&staging).await else { return Ok(()) };
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
        self.mount_at(found, fs, device, place).await?;
        match fs::health(&staging).await {
            Health::Alive => Ok(()),
            Health::Dead(reason) => Err(dead(reason, None)),
        }
    }
}
