use std::sync::Arc;

use super::found::{Found, volume_in};
use super::paths::look;
use super::preparations::Purpose;
use super::stage::ungrown;
use super::volumes::Volumes;
use super::{Expanded, VolumeError};
use crate::device::Access;
use crate::fs;
use crate::lvm::{Intent, LvRow, View};
use crate::types::{Bytes, CapacityRange, Extents, FsType, TargetPath, VolumeId, VolumeMode};

impl Volumes {
    /// Makes a volume at least as large as asked: its LV, and its file system where that is mounted.
    /// A volume that is large enough already has its file system grown all the same, since an earlier
    /// call may have ended between the two.
    ///
    /// # Errors
    /// [`VolumeError::NoRoomToGrow`]: the user may ask for less.
    pub async fn expand(
        self: &Arc<Self>,
        id: &VolumeId,
        range: &CapacityRange,
    ) -> Result<Expanded, VolumeError> {
        let found = self.find(id).await?;
        let found = self.prepared(found, Purpose::Change).await?;
        match found.tags.mode {
            VolumeMode::Block => self.grow_block(found, range).await,
            VolumeMode::Filesystem(fs) => {
                let _busy = self.busy.take(&id.lv, "expand")?;
                self.growable(&found, fs, range).await?;
                let extended = self.extend(&found, range).await?;
                self.grow_file_system(&self.find(id).await?, fs, extended).await
            }
        }
    }

    /// What NodeExpandVolume asks for: the volume at the path, as large as asked, and its file system
    /// with it.
    ///
    /// # Errors
    /// Those of [`Volumes::expand`]; and [`VolumeError::NotAtPath`].
    pub async fn node_expand(
        self: &Arc<Self>,
        id: &VolumeId,
        path: &TargetPath,
        range: &CapacityRange,
    ) -> Result<Bytes, VolumeError> {
        let found = self.find(id).await?;
        let there = look(path).await?;
        let device = self.active(&found).await?;
        if there.is_none() || there.map(|there| there.shows) != device.map(|device| device.number) {
            return Err(VolumeError::NotAtPath { id: id.clone(), path: path.to_path() });
        }
        self.expand(id, range).await.map(|expanded| expanded.size)
    }

    /// Demands that the file system of an active volume would grow with its LV, where that has to become larger.
    /// Nothing is extended in vain: an LV does not shrink again.
    async fn growable(&self, found: &Found, fs: FsType, range: &CapacityRange) -> Result<(), VolumeError> {
        let view = found.group.view().await?;
        if lack(&view, found, range)?.is_none() {
            return Ok(());
        }
        let Some(device) = self.whole_if_active(found).await? else { return Ok(()) };
        let pinned = self.pin(found, &device, Access::Read).await?;
        let growable = fs::of(fs).growable(&pinned.path()).await;
        growable.map_err(|error| ungrown(found, &device, error))
    }

    /// Extends the LV by whatever extents are free. `None` where it is large enough.
    async fn extend(&self, found: &Found, range: &CapacityRange) -> Result<Option<LvRow>, VolumeError> {
        let mut turn = found.group.turn(Intent::Change).await?;
        let view = Arc::clone(turn.view()?);
        let Some(lack) = lack(&view, found, range)? else { return Ok(None) };
        let lv = turn.extend(&found.id.lv, lack.to, Vec::new()).await?;
        tracing::info!(from = %found.lv.size, to = %lv.size, "extended");
        Ok(Some(lv))
    }

    /// Sees to it that the file system is as large as the LV, if it is mounted here. Whether somebody else has it
    /// open is seen from the row of an LV that was just `extended`, or by a look.
    async fn grow_file_system(
        &self,
        found: &Found,
        fs: FsType,
        extended: Option<LvRow>,
    ) -> Result<Expanded, VolumeError> {
        let done = Expanded { size: found.lv.size, node_expansion_required: false };
        let Some(device) = self.whole_if_active(found).await? else { return Ok(done) };
        let _lock = self.locks.take(&found.lv.uuid).await?;
        if self.grow_mounted(found, fs, &device).await? {
            return Ok(done);
        }
        let is_closed = extended.is_some_and(|lv| !lv.open)
            || found.group.turn(Intent::Device).await?.closes(&found.id.lv).await?;
        Ok(Expanded { node_expansion_required: !is_closed, ..done })
    }
}

/// What a volume lacks to be as large as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lack {
    /// How many extents.
    pub(super) by: Extents,
    /// How many it has then, in all.
    pub(super) to: Extents,
}

/// What the volume lacks; nothing where it is large enough.
///
/// # Errors
/// No size in the range can be reached from its present one, or the group has no room for it.
pub(super) fn lack(view: &View, found: &Found, range: &CapacityRange) -> Result<Option<Lack>, VolumeError> {
    let extent = view.vg.extent_size;
    let (lv, _) = volume_in(view, &found.id.lv)?.ok_or_else(|| VolumeError::NotFound(found.id.clone()))?;
    if lv.uuid != found.lv.uuid {
        return Err(VolumeError::NotFound(found.id.clone()));
    }
    let to = range.extents_from(extent, lv.size)?;
    let by = to.saturating_sub(extent.round_down(lv.size));
    let room = view.room(found.group.reserve());
    if by > room.growable {
        return Err(VolumeError::NoRoomToGrow {
            vg: view.vg.name.clone(),
            size: lv.size,
            wanted: extent.size_of(to),
            free: extent.size_of(room.free),
            unallocatable: extent.size_of(room.unallocatable),
        });
    }
    Ok((by > Extents::ZERO).then_some(Lack { by, to }))
}
