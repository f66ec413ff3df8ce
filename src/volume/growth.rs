use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::expand::{Lack, lack};
use super::found::Found;
use super::lock::VolumeLock;
use super::volumes::Volumes;
use super::{Expanded, VolumeError};
use crate::device::{Access, Zeroed, zero};
use crate::lvm::{Group, GroupError, Intent, LvRow, Turn, View};
use crate::types::{
    Bytes, CapacityRange, Extents, GrowthTags, LvName, Owner, PeRange, VolumeId, VolumeMode, VolumeState,
    VolumeTags,
};

/// How often growth begins again because somebody changed the group at the wrong moment.
const ATTEMPTS: usize = 3;

/// How many runs of extents are handed over with one command.
const RANGES_AT_A_TIME: usize = 40;

/// A hidden LV whose extents a raw block volume is to get, once they are zero.
struct Growth {
    lv: LvRow,
    name: LvName,
    tags: GrowthTags,
}

impl Volumes {
    /// Makes a raw block volume larger. Its user sees the new extents the moment they are its, so they
    /// are zeroed first, as a hidden LV, and then handed over in one turn.
    pub(super) async fn grow_block(
        self: &Arc<Self>,
        found: Found,
        range: &CapacityRange,
    ) -> Result<Expanded, VolumeError> {
        // The volume itself stays free while the extents are zeroed: staging must not wait for that.
        let lock = self.growing(&found).await?;
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            let Some(growth) = self.cut_growth(&found, range).await? else {
                lock.remove_file();
                return self.grown(&found.id).await;
            };
            self.zero_growth(&found, &growth, &lock).await?;
            let _busy = self.busy.take(&found.id.lv, "expand")?;
            let _lock = self.locks.take(&found.lv.uuid).await?;
            match self.hand_over(&found, &growth).await {
                Ok(true) => {
                    lock.remove_file();
                    return self.grown(&found.id).await;
                }
                Ok(false) => refused = None,
                Err(VolumeError::Group(error @ GroupError::Refused { .. })) => refused = Some(error),
                Err(other) => return Err(other),
            }
        }
        let changed =
            || VolumeError::Busy { what: format!("a change of volume group {} by others", found.vg_name) };
        Err(refused.map_or_else(changed, VolumeError::Group))
    }

    /// What the volume is now that it has its extents, once its device has them too.
    async fn grown(&self, id: &VolumeId) -> Result<Expanded, VolumeError> {
        let found = self.find(id).await?;
        self.whole_if_active(&found).await?;
        Ok(Expanded { size: found.lv.size, node_expansion_required: false })
    }

    /// The lock of whoever works with the volume's hidden LV, in this driver or in another one.
    async fn growing(&self, target: &Found) -> Result<VolumeLock, VolumeError> {
        let lock = self.locks.try_take_growth(&target.lv.uuid).await?;
        lock.ok_or_else(|| VolumeError::Busy { what: format!("an expansion of volume {}", target.id) })
    }

    /// The hidden LV, made now or found where an earlier call left it; `None` where the volume is large
    /// enough.
    async fn cut_growth(&self, found: &Found, range: &CapacityRange) -> Result<Option<Growth>, VolumeError> {
        let name = LvName::for_growth(&found.lv.uuid);
        let mut turn = found.group.turn(Intent::Change).await?;
        let view = Arc::clone(turn.view()?);
        let tags_for = |lack: Lack| GrowthTags { target: found.lv.uuid.clone(), extents: lack.to };
        if let Some(growth) = growth_in(&view, &name)? {
            let reusable = view.vg.extent_size.round_down(growth.lv.size);
            let lack = lack(&with_free(&view, reusable), found, range)?;
            if lack.is_some_and(|lack| lack.by == reusable && tags_for(lack) == growth.tags) {
                return Ok(Some(growth));
            }
            turn.remove(&name).await?;
        }
        // What the hidden LV has given back may lie on a disk that takes no new extents.
        let Some(lack) = lack(turn.view()?, found, range)? else { return Ok(None) };
        let tags = tags_for(lack);
        let lv = turn.create(&name, lack.by, tags.encode()).await?;
        Ok(Some(Growth { lv, name, tags }))
    }

    /// Zeroes the hidden LV. The lock lives as long as that writes.
    async fn zero_growth(
        &self,
        target: &Found,
        growth: &Growth,
        lock: &VolumeLock,
    ) -> Result<(), VolumeError> {
        let hidden = hidden(target, growth);
        let device = self.device(&hidden).await?;
        let failed =
            |error| VolumeError::host(format!("the extents for {} cannot be zeroed", target.id), error);
        let pinned = self.pin(&hidden, &device, Access::Exclusive).await?;
        let zeroed = zero(&pinned, 0..growth.lv.size.get(), Some(lock.share()?), self.stop.clone()).await;
        match zeroed.map_err(failed)? {
            Zeroed::Done => Ok(()),
            Zeroed::Stopped { .. } => Err(VolumeError::ShuttingDown),
        }
    }

    /// Gives the hidden LV's extents to the volume. `false` where somebody else changed the group in
    /// between, so that nothing is known of the extents.
    async fn hand_over(&self, found: &Found, growth: &Growth) -> Result<bool, VolumeError> {
        let mut turn = found.group.turn(Intent::Change).await?;
        let view = Arc::clone(turn.view()?);
        let unchanged = growth_in(&view, &growth.name)?.is_some_and(|now| now.lv.uuid == growth.lv.uuid);
        let target = view.lv(&found.id.lv).filter(|lv| lv.uuid == found.lv.uuid);
        // A volume that has become as large by itself is left to a new look at what it lacks.
        let Some(target) = target.filter(|_| unchanged && serves(&view, &growth.tags)) else {
            return Ok(false);
        };
        let (from, old_size) = (turn.ranges(&growth.name).await?, target.size);
        turn.remove(&growth.name).await?;
        if turn.view()?.vg.seqno != view.vg.seqno + 1 {
            return Ok(false);
        }
        let (steps, extended) = extend_by(&mut turn, &found.id.lv, old_size, from).await;
        let now = Arc::clone(turn.view()?);
        drop(turn);
        let size = now.lv(&found.id.lv).map_or(old_size, |lv| lv.size);
        if now.vg.seqno != view.vg.seqno + 1 + steps && size > old_size {
            self.zero_tail(found, old_size, size).await?;
        }
        extended?;
        tracing::info!(from = %old_size, to = %size, "extended");
        Ok(true)
    }

    /// Somebody changed the group between the removal of the hidden LV and the extension: they may have
    /// had the extents, and written to them.
    async fn zero_tail(&self, found: &Found, from: Bytes, to: Bytes) -> Result<(), VolumeError> {
        tracing::warn!("the group was changed by others while the volume grew: zeroing its new part again");
        let failed =
            |error| VolumeError::host(format!("the new part of {} cannot be zeroed", found.id), error);
        let device = self.device(found).await?;
        let pinned = self.pin(found, &device, Access::Write).await?;
        match zero(&pinned, from.get()..to.get(), None, CancellationToken::new()).await.map_err(failed)? {
            Zeroed::Done => Ok(()),
            Zeroed::Stopped { .. } => Err(VolumeError::ShuttingDown),
        }
    }

    /// Removes the hidden LV of a volume that is about to be removed.
    pub(super) async fn remove_growth(&self, turn: &mut Turn, target: &Found) -> Result<(), VolumeError> {
        if target.tags.mode != VolumeMode::Block {
            return Ok(());
        }
        let name = LvName::for_growth(&target.lv.uuid);
        let lock = self.growing(target).await?;
        if growth_in(turn.view()?, &name)?.is_some() {
            turn.remove(&name).await?;
        }
        lock.remove_file();
        Ok(())
    }

    /// Removes hidden LVs whose volume is gone, or as large already as they were to make it.
    pub(super) async fn tidy_growth(&self, group: &Arc<Group>, view: &View) -> Result<(), VolumeError> {
        let names: Vec<LvName> = view.lvs().filter_map(|lv| lv.name.parse().ok()).collect();
        for name in names {
            let Ok(Some(growth)) = growth_in(view, &name) else { continue };
            if serves(view, &growth.tags) {
                continue;
            }
            let Some(lock) = self.locks.try_take_growth(&growth.tags.target).await? else { continue };
            let mut turn = group.turn(Intent::Change).await?;
            let view = Arc::clone(turn.view()?);
            let now = growth_in(&view, &name)?.filter(|now| now.lv.uuid == growth.lv.uuid);
            if now.is_some_and(|now| !serves(&view, &now.tags)) {
                match turn.remove(&name).await {
                    Err(open @ GroupError::Open { .. }) => {
                        tracing::warn!(error = %open, "what an interrupted expansion left stays for now");
                        continue;
                    }
                    removed => removed?,
                }
                tracing::info!(vg = %view.vg.name, lv = %name, "removed what an interrupted expansion left");
            }
            lock.remove_file();
        }
        Ok(())
    }
}

/// Gives an LV of that size these extents, and tells how many steps of it were done: a command holds so many
/// words only.
async fn extend_by(
    turn: &mut Turn,
    lv: &LvName,
    mut size: Bytes,
    from: Vec<PeRange>,
) -> (u64, Result<(), GroupError>) {
    let mut steps = 0;
    for ranges in from.chunks(RANGES_AT_A_TIME) {
        let has = match turn.view() {
            Ok(view) => view.vg.extent_size.round_down(size),
            Err(unseen) => return (steps, Err(unseen)),
        };
        let to = ranges.iter().fold(has, |to, range| to.saturating_add(range.len()));
        match turn.extend(lv, to, ranges.to_vec()).await {
            Ok(row) => size = row.size,
            Err(error) => return (steps, Err(error)),
        }
        steps += 1;
    }
    (steps, Ok(()))
}

/// The hidden LV, as a volume that has a device.
fn hidden(target: &Found, growth: &Growth) -> Found {
    let id = VolumeId { vg: target.id.vg.clone(), lv: growth.name.clone() };
    let tags = VolumeTags { state: VolumeState::Growing, ..target.tags.clone() };
    Found { id, lv: growth.lv.clone(), tags, ..target.clone() }
}

/// A group in which the extents of a hidden LV count as free.
fn with_free(view: &View, extents: Extents) -> View {
    let mut view = view.clone();
    view.vg.free = view.vg.free.saturating_add(extents);
    view
}

/// Whether the volume that a hidden LV's extents are for is there, and still lacks them.
pub fn serves(view: &View, growth: &GrowthTags) -> bool {
    let target = view.lv_by_uuid(&growth.target);
    target.is_some_and(|target| view.vg.extent_size.round_down(target.size) < growth.extents)
}

/// The hidden LV of that name, if there is one and it is ours.
fn growth_in(view: &View, name: &LvName) -> Result<Option<Growth>, VolumeError> {
    let Some(lv) = view.lv(name) else { return Ok(None) };
    match lv.owner() {
        Ok(Owner::Growth(tags)) => Ok(Some(Growth { lv: lv.clone(), name: name.clone(), tags })),
        Ok(Owner::Volume(_) | Owner::Foreign) | Err(_) => {
            Err(VolumeError::NotOurs { vg: view.vg.name.clone(), lv: name.clone() })
        }
    }
}
