use super::found::Found;
use super::paths::{look, places};
use super::volumes::Volumes;
use super::{Usage, VolumeError, VolumeUsage};
use crate::fs;
use crate::types::{Bytes, DeviceNumber, TargetPath, VolumeId};

impl Volumes {
    /// How full the volume is that is at the path. LVM is not asked.
    ///
    /// # Errors
    /// [`VolumeError::NotAtPath`]; or the file system does not answer.
    pub async fn stats(&self, id: &VolumeId, path: &TargetPath) -> Result<VolumeUsage, VolumeError> {
        let not_there = || VolumeError::NotAtPath { id: id.clone(), path: path.to_path() };
        let there = look(path).await?.ok_or_else(not_there)?;
        if !self.is_volume(there.shows, id).await? {
            return Err(not_there());
        }
        if there.is_device {
            return self.device_size(id, there.shows).await.map(VolumeUsage::Block);
        }
        let usage = fs::usage(&there.mount.target).await;
        let usage =
            usage.map_err(|error| VolumeError::host(format!("the usage of {id} cannot be read"), error))?;
        let one =
            |count: fs::Count| Usage { total: count.total, used: count.used, available: count.available };
        Ok(VolumeUsage::Filesystem { bytes: one(usage.bytes), inodes: one(usage.inodes) })
    }

    /// Whether a volume is in use: mounted, bound, or under another device.
    ///
    /// # Errors
    /// [`VolumeError::InUse`] says by what.
    pub(super) async fn in_use(&self, found: &Found) -> Result<(), VolumeError> {
        let Some(device) = self.active(found).await? else { return Ok(()) };
        let used = |by: String| Err(VolumeError::InUse { id: found.id.clone(), by });
        if let Some(place) = places(&device).await?.first() {
            return used(format!("it is mounted at {}", place.display()));
        }
        let holders = self.dm.holders(device.number).await;
        match holders.map_err(|error| VolumeError::device(&found.id, "seen to be free", error))? {
            Some(holders) if !holders.is_empty() => {
                used(format!("the devices {} lie on it", holders.join(", ")))
            }
            // None: it went away a moment ago, as when another driver removes the volume.
            Some(_) | None => Ok(()),
        }
    }

    /// The size of an active volume's device, as the kernel has it.
    pub(super) async fn device_size(
        &self,
        id: &VolumeId,
        number: DeviceNumber,
    ) -> Result<Bytes, VolumeError> {
        let size = self.dm.size(number).await;
        size.map_err(|error| VolumeError::device(id, "measured", error))
    }
}
