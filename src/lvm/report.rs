use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::types::{Bytes, ExtentSize, Extents, LvUuid, Owner, PeRange, PvUuid, TagError, VgName, VgUuid};

/// LVM's answer to one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Whether LVM says that it did what was asked. Never the ground of a decision by itself.
    pub success: bool,
    /// What LVM said went wrong: words for people.
    pub messages: Vec<String>,
    /// The groups reported.
    pub vgs: Vec<VgRow>,
    /// Those of a group's disks that take no new extents, where the report is of the group.
    pub unallocatable: Vec<Unallocatable>,
    /// The LVs reported.
    pub lvs: Vec<LvRow>,
    /// The segments reported.
    pub segments: Vec<SegmentRow>,
}

/// A volume group, as LVM reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VgRow {
    /// Its identity.
    pub uuid: VgUuid,
    /// Its name; two groups can have the same.
    pub name: VgName,
    /// The number of its metadata's commits (`vg_seqno`).
    pub seqno: u64,
    /// The size of its extents.
    pub extent_size: ExtentSize,
    /// All its extents.
    pub extents: Extents,
    /// Its free extents; those of missing disks are counted.
    pub free: Extents,
    /// How many LVs it holds (`lv_count`: the visible ones).
    pub lv_count: u64,
    /// How many it may hold (`max_lv`); 0 for any number.
    pub max_lvs: u64,
    /// How many of its disks are missing.
    pub missing_pvs: u64,
    /// Whether it is exported.
    pub exported: bool,
    /// Whether it is under shared locking (`vg_lock_type`).
    pub shared: bool,
    /// The system that it belongs to (`vg_systemid`), where it names one.
    pub system_id: Option<String>,
    /// The size of its smallest metadata area.
    pub metadata_size: Bytes,
    /// What is free of that area.
    pub metadata_free: Bytes,
}

/// A disk on which LVM puts no new extents, since an administrator said so (`pvchange --allocatable n`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unallocatable {
    /// Its device.
    pub device: PathBuf,
    /// What is free of it: LVM counts it as free in the group, and gives it to nobody.
    pub free: Extents,
}

/// A logical volume, as LVM reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LvRow {
    /// Its identity.
    pub uuid: LvUuid,
    /// Its name as LVM has it, which need not be one of ours.
    pub name: String,
    /// Its size.
    pub size: Bytes,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was made (`lv_time`), by the clock of the host that made it.
    pub created: Option<SystemTime>,
    /// Whether it has a device that can be used: one with a table.
    pub active: bool,
    /// Whether its device is open.
    pub open: bool,
    /// Whether its device is suspended: all I/O on it waits.
    pub suspended: bool,
    /// Whether one of its disks is missing (`lv_attr`, "p").
    pub partial: bool,
    /// Whether it has a snapshot (`lv_attr`, "o"), which would go when it is removed.
    pub origin: bool,
    /// How its segments lie (`lv_layout`): `linear`, or anything that an administrator made of it, such
    /// as `raid,raid1`.
    pub kind: String,
    /// The group's row, where the report held one beside the LV's.
    pub vg: Option<VgRow>,
    /// What in its row made no sense: then all but its identity and its name is empty. It is there, and
    /// must never pass for one that is not.
    pub fault: Option<String>,
}

impl LvRow {
    /// Whose it is, by its tags.
    ///
    /// # Errors
    /// They begin like ours and make no sense.
    pub fn owner(&self) -> Result<Owner, TagError> {
        Owner::parse(self.tags.iter().map(String::as_str))
    }

    /// How long ago it was made; `None` where that is unknown, or lies in the future.
    pub fn age(&self) -> Option<Duration> {
        self.created.and_then(|created| SystemTime::now().duration_since(created).ok())
    }
}

/// A run of an LV's extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRow {
    /// The kind of the segment.
    pub kind: String,
    /// Where it lies (`seg_pe_ranges`).
    pub ranges: Vec<PeRange>,
}

/// A physical volume, with the group that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PvRow {
    /// Its identity.
    pub uuid: PvUuid,
    /// Its device; `None` where it is missing.
    pub device: Option<PathBuf>,
    /// Whether another device claims to be it too.
    pub duplicate: bool,
    /// Its group; `None` for a disk that belongs to none yet.
    pub vg: Option<VgRow>,
}
