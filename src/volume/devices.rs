use super::VolumeError;
use super::found::Found;
use super::volumes::Volumes;
use crate::device::{Access, Pinned};
use crate::lvm::{Intent, LvRow};
use crate::types::{BlockDevice, DeviceNumber, DmName, DmUuid, LvName, Owner, VolumeId};

impl Volumes {
    /// The volume's device, active and whole: it is activated or loaded anew where it is not.
    ///
    /// # Errors
    /// LVM could not do that, or no node leads to it.
    pub(super) async fn device(&self, found: &Found) -> Result<BlockDevice, VolumeError> {
        let device = match self.whole_if_active(found).await? {
            Some(device) => Some(device),
            None => {
                found.group.turn(Intent::Device).await?.activate(&found.id.lv).await?;
                self.active(found).await?
            }
        };
        device.filter(|device| !device.suspended).ok_or_else(|| {
            let what = format!("LVM says that {} is active, and the kernel has no such device", found.id);
            VolumeError::host(what, "look at dmsetup info and udev on the node")
        })
    }

    /// The volume's device, if it is active: loaded anew where it is not whole.
    ///
    /// # Errors
    /// LVM could not load it anew, or no node leads to it.
    pub(super) async fn whole_if_active(&self, found: &Found) -> Result<Option<BlockDevice>, VolumeError> {
        let Some(device) = self.active(found).await? else { return Ok(None) };
        if self.is_whole(found, &device).await? {
            return Ok(Some(device));
        }
        found.group.turn(Intent::Device).await?.refresh(&found.id.lv).await?;
        self.active(found).await
    }

    /// Whether the kernel's table is in force, as large as the LV, and leads to its group's disks as they are
    /// now. An lvm that was killed leaves devices suspended, with an old table, or with a new one that is not
    /// in force; a disk that was away may be back under another number.
    ///
    /// # Errors
    /// The device is gone.
    pub(super) async fn is_whole(&self, found: &Found, device: &BlockDevice) -> Result<bool, VolumeError> {
        let size = self.device_size(&found.id, device.number).await?;
        if device.suspended || size < found.lv.size {
            return Ok(false);
        }
        let lies_there = self.dm.lies_on(device.number, found.group.devices()).await;
        lies_there.map_err(|error| VolumeError::device(&found.id, "seen to lie on its disks", error))
    }

    /// Resumes the volume if its device, which has that number, is suspended. The kernel would take away
    /// the mount of a suspended volume, and keep its frozen file system for as long as it is suspended.
    ///
    /// # Errors
    /// LVM could not resume it, or does not know it.
    pub(super) async fn resume(&self, id: &VolumeId, number: DeviceNumber) -> Result<(), VolumeError> {
        let suspended = self.dm.suspended(number).await;
        if !suspended.map_err(|error| VolumeError::device(id, "looked at", error))? {
            return Ok(());
        }
        self.device(&self.find(id).await?).await.map(drop)
    }

    /// The volume's device, if it is active.
    ///
    /// # Errors
    /// It is active, and no node leads to it or can be made.
    pub(super) async fn active(&self, found: &Found) -> Result<Option<BlockDevice>, VolumeError> {
        let name = DmName::of(&found.vg_name, &found.id.lv);
        let uuid = DmUuid::of(&found.id.vg, &found.lv.uuid);
        let device = self.dm.find_or_heal(&name, &uuid).await;
        device.map_err(|error| VolumeError::device(&found.id, "found", error))
    }

    /// Opens the volume's device, so that it stays the volume's for as long as it is open.
    ///
    /// # Errors
    /// It is not the volume's any more, or cannot be opened that way.
    pub(super) async fn pin(
        &self,
        found: &Found,
        device: &BlockDevice,
        access: Access,
    ) -> Result<Pinned, VolumeError> {
        let pinned = self.dm.pin(device, access).await;
        pinned.map_err(|error| VolumeError::device(&found.id, "opened", error))
    }

    /// Whether the device with that number is the volume. It asks the kernel and memory alone, so that it
    /// works while LVM does not answer and after the LV is gone.
    pub(super) async fn is_volume(&self, number: DeviceNumber, id: &VolumeId) -> Result<bool, VolumeError> {
        let failed = |error| VolumeError::host(format!("device {number} cannot be looked at"), error);
        let uuid = self.dm.uuid(number).await.map_err(failed)?;
        let Some(uuid) = uuid.filter(|uuid| uuid.is_of_group(&id.vg)) else { return Ok(false) };
        let name = self.dm.name(number).await.map_err(failed)?;
        Ok(name.is_some_and(|name| name.names(&id.lv)) || self.was_renamed(id, &uuid))
    }

    /// Whether the LV of that identity is the volume by its tags, as they were last read. Somebody may have
    /// given it another name while it was in use, and must still be able to take it out of use.
    fn was_renamed(&self, id: &VolumeId, uuid: &DmUuid) -> bool {
        let group = self.groups.all().into_iter().find(|group| *group.uuid() == id.vg);
        let Some(view) = group.and_then(|group| group.earlier_view()) else { return false };
        let lv = view.lvs().find(|lv| DmUuid::of(&id.vg, &lv.uuid) == *uuid);
        let owner = lv.map(LvRow::owner);
        matches!(owner, Some(Ok(Owner::Volume(tags))) if LvName::for_volume(&tags.name) == id.lv)
    }
}
