use super::VolumeError;
use super::found::Found;
use super::living::Place;
use super::paths::{look, place_beside, same_rights, taken};
use super::stage::{right_mode, unusable};
use super::volumes::Volumes;
use crate::mount::{self, Aside, MountError, Rights};
use crate::types::{
    AccessMode, BlockDevice, TargetPath, VolumeCapability, VolumeId, VolumeMode, VolumeState,
};

/// What NodePublishVolume is asked for.
#[derive(Debug, Clone)]
pub struct PublishRequest {
    /// Where the volume is staged.
    pub staging: TargetPath,
    /// Where it is to appear.
    pub target: TargetPath,
    /// How it is to be used.
    pub capability: VolumeCapability,
    /// Whether its user may only read.
    pub read_only: bool,
}

impl PublishRequest {
    const fn place(&self) -> Place<'_> {
        Place { staging: &self.staging, target: Some(&self.target), capability: &self.capability }
    }

    fn is_read_only(&self) -> bool {
        self.read_only || self.capability.is_read_only()
    }
}

impl Volumes {
    /// Shows a staged volume at one more path: a bind mount, of the staging path or of the device.
    ///
    /// # Errors
    /// It is not staged, it is at the path in another way, or it may be at one path only.
    pub async fn publish(&self, id: &VolumeId, request: &PublishRequest) -> Result<(), VolumeError> {
        let _busy = self.busy.take(&id.lv, "publish")?;
        let found = self.find(id).await?;
        right_mode(&found, &request.capability)?;
        let device = self.staged(&found, request).await?;
        if is_published(&found, &device, request).await? {
            return Ok(());
        }
        alone(&found, &device, request).await?;
        as_staged(&found, request).await?;
        bind(&found, &device, request, &self.aside)
            .await
            .map_err(|error| VolumeError::host(format!("{id} cannot be published"), error))?;
        tracing::info!(target = %request.target, read_only = request.is_read_only(), "published");
        Ok(())
    }

    /// The volume's device, if the volume is staged where the request says.
    async fn staged(&self, found: &Found, request: &PublishRequest) -> Result<BlockDevice, VolumeError> {
        let not_staged = || VolumeError::NotStaged { id: found.id.clone(), path: request.staging.to_path() };
        match found.tags.state {
            VolumeState::Used => {}
            VolumeState::Blank | VolumeState::Fresh => return Err(not_staged()),
            VolumeState::Copying | VolumeState::Condemned | VolumeState::Growing => {
                return Err(unusable(found));
            }
        }
        let device = self.whole_if_active(found).await?.ok_or_else(not_staged)?;
        if let VolumeMode::Filesystem(fs) = found.tags.mode {
            let mut there = look(&request.staging).await?;
            if there.is_none() && self.bare.has(&request.staging.to_path()) {
                self.mount_anew(found, fs, &device, request.place()).await?;
                there = look(&request.staging).await?;
            }
            there.filter(|there| there.shows == device.number && !there.is_device).ok_or_else(not_staged)?;
            self.living(found, fs, &device, request.place()).await?;
        }
        Ok(device)
    }

    /// Undoes [`Volumes::publish`], and removes the target.
    ///
    /// # Errors
    /// The mount is in use, or is not the volume's; or something lies at the target that is not ours.
    pub async fn unpublish(&self, id: &VolumeId, target: &TargetPath) -> Result<(), VolumeError> {
        let _busy = self.busy.take(&id.lv, "unpublish")?;
        self.unmount(id, target).await?;
        let removed = mount::remove(target).await;
        removed.map_err(|error| VolumeError::host(format!("the target of {id} cannot be removed"), error))
    }
}

/// Whether the volume is at the target already, as is asked.
async fn is_published(
    found: &Found,
    device: &BlockDevice,
    request: &PublishRequest,
) -> Result<bool, VolumeError> {
    let Some(there) = look(&request.target).await? else { return Ok(false) };
    let block = found.tags.mode == VolumeMode::Block;
    if there.shows != device.number || there.is_device != block {
        return Err(taken(&found.id, &request.target, &there));
    }
    same_rights(found, &request.target, &there, request.is_read_only())?;
    Ok(true)
}

/// Whether a volume for one pod only is published nowhere else.
async fn alone(found: &Found, device: &BlockDevice, request: &PublishRequest) -> Result<(), VolumeError> {
    if request.capability.access != AccessMode::SingleNodeSingleWriter {
        return Ok(());
    }
    match place_beside(device, &[&request.staging]).await? {
        None => Ok(()),
        Some(path) => Err(VolumeError::PublishedElsewhere { id: found.id.clone(), path }),
    }
}

/// Whether the volume is staged for writing where that is asked for: a bind mount has no more rights than its source.
async fn as_staged(found: &Found, request: &PublishRequest) -> Result<(), VolumeError> {
    if found.tags.mode == VolumeMode::Block || request.is_read_only() {
        return Ok(());
    }
    match look(&request.staging).await? {
        Some(there) => same_rights(found, &request.staging, &there, false),
        None => Ok(()),
    }
}

async fn bind(
    found: &Found,
    device: &BlockDevice,
    request: &PublishRequest,
    aside: &Aside,
) -> Result<(), MountError> {
    let target = &request.target;
    let rights = if request.is_read_only() { Rights::Read(aside) } else { Rights::All };
    match found.tags.mode {
        VolumeMode::Filesystem(_) => {
            mount::make_dir(target).await?;
            mount::bind_fs(&request.staging, device.number, target, rights).await
        }
        VolumeMode::Block => {
            mount::make_file(target).await?;
            mount::bind_device(device, target, rights).await
        }
    }
}
