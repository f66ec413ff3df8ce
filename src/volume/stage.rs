use std::sync::Arc;

use super::VolumeError;
use super::found::Found;
use super::living::{Place, forced_read_only};
use super::paths::{look, mounts_of, same_rights, taken};
use super::preparations::Purpose;
use super::volumes::Volumes;
use crate::device::Access;
use crate::fs::{self, FsError};
use crate::mount::{self, MountError};
use crate::types::{
    BlockDevice, FsType, TargetPath, VolumeCapability, VolumeId, VolumeMode, VolumeState, chain,
};

impl Volumes {
    /// Makes a volume ready for its pods: waits until it is prepared, notes that from now on it may hold
    /// a user's data, and mounts it at the staging path. A raw block volume needs no mount.
    ///
    /// # Errors
    /// The volume is not there or not usable, or something else is at the path. Nothing that this call has
    /// mounted stays then.
    pub async fn stage(
        self: &Arc<Self>,
        id: &VolumeId,
        staging: &TargetPath,
        capability: &VolumeCapability,
    ) -> Result<(), VolumeError> {
        let _busy = self.busy.take(&id.lv, "stage")?;
        let found = self.find(id).await?;
        right_mode(&found, capability)?;
        let found = self.prepared(found, Purpose::Use).await?;
        let lock = self.locks.take(&found.lv.uuid).await?;
        // Whoever had the lock before may have staged or deleted it.
        let (_lock, found) = lock.on(self.find(id).await)?;
        let found = usable(found)?;
        if found.tags.state == VolumeState::Fresh {
            self.move_on(&found, VolumeState::Fresh, VolumeState::Used).await?;
        }
        let device = self.device(&found).await?;
        match found.tags.mode {
            VolumeMode::Block => Ok(()),
            VolumeMode::Filesystem(fs) => {
                self.mount(&found, fs, &device, Place { staging, target: None, capability }).await
            }
        }
    }

    /// The volume, once it is fit to be used: a blank one is prepared first.
    pub(super) async fn prepared(
        self: &Arc<Self>,
        found: Found,
        purpose: Purpose,
    ) -> Result<Found, VolumeError> {
        let found = if found.tags.state == VolumeState::Blank {
            self.prepare(&found).wait(purpose).await?;
            self.find(&found.id).await?
        } else {
            found
        };
        usable(found)
    }

    async fn mount(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let (new, mounted) = match look(place.staging).await? {
            Some(there) if there.shows == device.number && !there.is_device => {
                same_rights(found, place.staging, &there, place.capability.is_read_only())?;
                (false, self.living(found, fs, device, place).await)
            }
            Some(there) => return Err(taken(&found.id, place.staging, &there)),
            None => (true, self.mount_at(found, fs, device, place).await),
        };
        let staged = match mounted {
            Ok(()) => self.grow_staged(found, fs, device).await,
            failed => failed,
        };
        if new && staged.is_err() {
            self.take_back(&found.id, place.staging).await;
        }
        staged
    }

    /// Grows what is staged. One that must be checked first serves its pods as it is.
    async fn grow_staged(&self, found: &Found, fs: FsType, device: &BlockDevice) -> Result<(), VolumeError> {
        match self.grow_mounted(found, fs, device).await {
            Err(error @ VolumeError::Unchecked { .. }) => {
                tracing::warn!(error = chain(&error), "its file system stays smaller than its device");
                Ok(())
            }
            grown => grown.map(drop),
        }
    }

    /// Takes away what a stage that failed has mounted: nobody unstages what was never staged.
    async fn take_back(&self, id: &VolumeId, staging: &TargetPath) {
        if let Err(error) = self.unmount(id, staging).await {
            tracing::error!(error = chain(&error), "what a failed stage has mounted stays");
        }
    }

    /// Mounts the volume where nothing is mounted yet: once more where its log held a growth, after which the file
    /// system does not work in its new part. Its size has changed by the mount then.
    pub(super) async fn mount_at(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let file_system = fs::of(fs);
        if !file_system.forgets_replayed_growth() {
            return self.mount_once(found, fs, device, place).await;
        }
        let pinned = self.pin(found, device, Access::Read).await?;
        // What cannot be mounted says so itself.
        let size = async |mounted| file_system.size(&pinned.path(), mounted).await.ok();
        let before = size(None).await;
        self.mount_once(found, fs, device, place).await?;
        let after = size(Some(&place.staging.to_path())).await;
        if before.zip(after).is_none_or(|(before, after)| before == after) {
            return Ok(());
        }
        tracing::info!("its log held a growth: it is mounted once more");
        self.unmount(&found.id, place.staging).await?;
        self.mount_once(found, fs, device, place).await
    }

    async fn mount_once(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
        place: Place<'_>,
    ) -> Result<(), VolumeError> {
        let Place { staging, capability, .. } = place;
        let named = self.dm.by_kernel_name(device).await;
        let device = named.map_err(|error| VolumeError::device(&found.id, "found", error))?;
        let mounted = mount::mount_fs(&device, staging, fs, options(capability), &capability.options).await;
        mounted.map_err(|error| unmountable(found, fs, error))?;
        tracing::info!(path = %staging, "mounted");
        Ok(())
    }

    /// Grows the file system to the device, where it is mounted for writing. `false` where it is not
    /// mounted at all.
    ///
    /// # Errors
    /// [`VolumeError::Dead`]: it is mounted for writing, and takes nothing.
    pub(super) async fn grow_mounted(
        &self,
        found: &Found,
        fs: FsType,
        device: &BlockDevice,
    ) -> Result<bool, VolumeError> {
        let mounts = mounts_of(device).await?;
        if let Some(place) = mounts.iter().find(|mount| !mount.is_read_only()) {
            let pinned = self.pin(found, device, Access::Read).await?;
            let grown = fs::of(fs).grow(self.programs.as_ref(), &place.target, &pinned.path()).await;
            grown.map_err(|error| ungrown(found, device, error))?;
        } else if let Some(place) = mounts.iter().find(|mount| mount.is_forced_read_only()) {
            let (reason, used) = (forced_read_only(&place.target), Some(place.target.clone()));
            return Err(VolumeError::Dead { id: found.id.clone(), reason, used });
        }
        Ok(!mounts.is_empty())
    }

    /// Undoes [`Volumes::stage`]. The volume stays active.
    ///
    /// # Errors
    /// The mount is in use, or is not the volume's.
    pub async fn unstage(&self, id: &VolumeId, staging: &TargetPath) -> Result<(), VolumeError> {
        let _busy = self.busy.take(&id.lv, "unstage")?;
        self.unmount(id, staging).await?;
        self.bare.forget(&staging.to_path());
        Ok(())
    }

    /// Unmounts whatever of the volume is mounted at the path. It asks the kernel alone, so that a node
    /// can be drained while LVM does not answer; only a suspended volume must be resumed by LVM first.
    pub(super) async fn unmount(&self, id: &VolumeId, path: &TargetPath) -> Result<(), VolumeError> {
        let Some(there) = look(path).await? else { return Ok(()) };
        // A bound node whose device is gone, or has become another's, was bound here for this volume.
        if !there.is_device {
            if !self.is_volume(there.shows, id).await? {
                return Err(taken(id, path, &there));
            }
            self.resume(id, there.shows).await?;
        }
        let unmounted = mount::unmount(path, there.shows).await;
        unmounted.map_err(|error| VolumeError::host(format!("{id} cannot be unmounted"), error))?;
        tracing::info!(%path, "unmounted");
        Ok(())
    }
}

/// Why a volume's file system does not grow.
pub(super) fn ungrown(found: &Found, device: &BlockDevice, error: FsError) -> VolumeError {
    match error {
        FsError::Unchecked => VolumeError::Unchecked { id: found.id.clone(), device: device.path.clone() },
        other => VolumeError::host(format!("the file system of {} cannot be grown", found.id), other),
    }
}

/// A volume in a state in which nothing can be done with it.
pub(super) fn unusable(found: &Found) -> VolumeError {
    let reason = "it holds nothing yet that could be used".to_owned();
    VolumeError::State { id: found.id.clone(), state: found.tags.state, reason }
}

/// The kernel says why in its log only. Nothing is repaired without a person, and nothing made anew.
fn unmountable(found: &Found, fs: FsType, error: MountError) -> VolumeError {
    let what = format!(
        "volume {} cannot be mounted and is left as it is; the kernel's log on this node tells why, and where it tells of damage the {fs} must be repaired by hand",
        found.id
    );
    VolumeError::host(what, error)
}

/// The volume, if it holds what can be mounted or shown. A blank one does not, whatever is on its disk.
fn usable(found: Found) -> Result<Found, VolumeError> {
    match found.tags.state {
        VolumeState::Fresh | VolumeState::Used => Ok(found),
        _ => Err(unusable(&found)),
    }
}

/// Whether the volume can be shown as is asked.
///
/// # Errors
/// [`VolumeError::WrongMode`], [`VolumeError::Options`].
pub(super) fn right_mode(found: &Found, capability: &VolumeCapability) -> Result<(), VolumeError> {
    if !capability.mode.fits(found.tags.mode) {
        let (is, asked) = (found.tags.mode, capability.mode);
        return Err(VolumeError::WrongMode { id: found.id.clone(), is, asked });
    }
    let VolumeMode::Filesystem(fs) = found.tags.mode else { return Ok(()) };
    let fits = capability.options.check(fs);
    fits.map_err(|why| VolumeError::Options { id: found.id.clone(), fs, why })
}

/// What every file system is mounted with, whatever its class asks for beside. The kernel's own defaults are the
/// safe ones: barriers, no discarding, `relatime`; and what is to be done after an error is written in ext4's
/// superblock, while XFS and btrfs stop by themselves.
fn options(capability: &VolumeCapability) -> &'static [&'static str] {
    if capability.is_read_only() { &["ro"] } else { &[] }
}
