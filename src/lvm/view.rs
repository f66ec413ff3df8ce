use std::collections::BTreeMap;

use super::{LvRow, Unallocatable, VgRow};
use crate::types::{Bytes, Extents, Layout, LvName, LvUuid};

/// What a group looked like at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The group.
    pub vg: VgRow,
    /// Those of its disks that take no new extents.
    pub unallocatable: Vec<Unallocatable>,
    /// Its LVs, by name.
    pub(super) lvs: BTreeMap<String, LvRow>,
}

impl View {
    pub(super) fn new(
        vg: VgRow,
        unallocatable: Vec<Unallocatable>,
        lvs: impl IntoIterator<Item = LvRow>,
    ) -> Self {
        Self { vg, unallocatable, lvs: lvs.into_iter().map(|lv| (lv.name.clone(), lv)).collect() }
    }

    /// The LV of that name.
    pub fn lv(&self, name: &LvName) -> Option<&LvRow> {
        self.lvs.get(name.as_str())
    }

    /// The LV of that identity.
    pub fn lv_by_uuid(&self, uuid: &LvUuid) -> Option<&LvRow> {
        self.lvs.values().find(|lv| lv.uuid == *uuid)
    }

    /// Every LV.
    pub fn lvs(&self) -> impl Iterator<Item = &LvRow> {
        self.lvs.values()
    }

    /// The room for new volumes, and for growth, when `reserve` is kept for growth.
    pub fn room(&self, reserve: Bytes) -> Room {
        let kept = self.vg.extent_size.round_up(reserve);
        let full = self.full();
        let none = Extents::ZERO;
        let unallocatable = self.unallocatable.iter().fold(none, |sum, disk| sum.saturating_add(disk.free));
        let growable = self.vg.free.saturating_sub(unallocatable);
        let usable = if full.is_some() { none } else { growable.saturating_sub(kept) };
        Room { free: self.vg.free, unallocatable, growable, kept, usable, full }
    }

    fn full(&self) -> Option<Full> {
        let VgRow { lv_count, max_lvs, .. } = self.vg;
        if self.vg.metadata_free < METADATA_KEPT {
            return Some(Full::Metadata);
        }
        (max_lvs > 0 && lv_count >= max_lvs).then_some(Full::Count(max_lvs))
    }
}

/// Why no volume can be made in a group, however much of it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// LVM's metadata area is nearly full.
    Metadata,
    /// It has as many LVs as it may have (`vgchange --logicalvolume`): so many.
    Count(u64),
}

/// What is kept free of the metadata area, so that a group in which nothing more can be made can still
/// be emptied, and its volumes still grow and change their state.
const METADATA_KEPT: Bytes = Bytes::new(32 << 10);

/// The room in a group. This is the one place in which the reserve is subtracted, and what is free and cannot
/// be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What is free.
    pub free: Extents,
    /// What is free on disks that take no new extents.
    pub unallocatable: Extents,
    /// The rest of what is free: growth may use all of it.
    pub growable: Extents,
    /// What is kept of that for growth.
    pub kept: Extents,
    /// What creation may use; nothing where the group is [`Full`].
    pub usable: Extents,
    /// Why none can be made, however much is free.
    pub full: Option<Full>,
}

impl Room {
    /// The largest volume that could be made now.
    pub const fn largest(&self, layout: Layout) -> Extents {
        layout.largest(self.usable)
    }
}
