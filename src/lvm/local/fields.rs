//! The fields that are asked of LVM's reports, by the names that it also uses in its answers
//! (lvmreport(7); `lvs -o help`).

/// Fields of a volume group: all that [`VgRow`](crate::lvm::VgRow) holds.
pub(super) const VG: [&str; 14] = [
    "vg_name",
    "vg_uuid",
    "vg_seqno",
    "vg_extent_size",
    "vg_extent_count",
    "vg_free_count",
    "lv_count",
    "max_lv",
    "vg_missing_pv_count",
    "vg_exported",
    "vg_lock_type",
    "vg_systemid",
    "vg_mda_size",
    "vg_mda_free",
];

/// Fields of a logical volume: all that [`LvRow`](crate::lvm::LvRow) holds. `segtype` is not among
/// them: it would make one row of each segment.
pub(super) const LV: [&str; 10] = [
    "lv_uuid",
    "lv_name",
    "lv_size",
    "lv_tags",
    "lv_time",
    "lv_active",
    "lv_device_open",
    "lv_suspended",
    "lv_attr",
    "lv_layout",
];

/// Fields of a segment: all that [`SegmentRow`](crate::lvm::SegmentRow) holds.
pub(super) const SEGMENT: [&str; 2] = ["segtype", "seg_pe_ranges"];

/// Fields of a physical volume: all that [`PvRow`](crate::lvm::PvRow) holds beside its group.
pub(super) const PV: [&str; 4] = ["pv_uuid", "pv_name", "pv_missing", "pv_duplicate"];

/// Fields of a group's disk, which make a group's report one of rows for each of its disks: all that
/// [`Unallocatable`](crate::lvm::Unallocatable) takes to tell.
pub(super) const DISK: [&str; 4] = ["pv_name", "pv_allocatable", "pv_pe_count", "pv_pe_alloc_count"];
