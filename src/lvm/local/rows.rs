//! Rows of LVM's reports. Every value is a string; numbers can be absent, empty, -1 or "unknown".

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::lvm::{LvRow, PvRow, SegmentRow, Unallocatable, VgRow};
use crate::types::{Bytes, ExtentSize, Extents, PeRange};

/// A row that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("a row's field {field} is {found}")]
pub(super) struct RowError {
    field: &'static str,
    found: String,
}

/// One row of a report.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub(super) &'a Value);

impl<'a> Row<'a> {
    fn bad(self, field: &'static str) -> RowError {
        let found = self.0.get(field).map_or_else(|| "missing".to_owned(), Value::to_string);
        RowError { field, found }
    }

    fn text(self, field: &'static str) -> Result<&'a str, RowError> {
        self.0.get(field).and_then(Value::as_str).ok_or_else(|| self.bad(field))
    }

    fn parsed<T: FromStr>(self, field: &'static str) -> Result<T, RowError> {
        self.text(field)?.parse().map_err(|_| self.bad(field))
    }

    fn bytes(self, field: &'static str) -> Result<Bytes, RowError> {
        self.parsed(field).map(Bytes::new)
    }

    fn extents(self, field: &'static str) -> Result<Extents, RowError> {
        self.parsed(field).map(Extents::new)
    }

    /// A field that is a word where something is so, and empty where it is not.
    fn flag(self, field: &'static str, word: &str) -> Result<bool, RowError> {
        match self.text(field)? {
            "" => Ok(false),
            found if found == word => Ok(true),
            _ => Err(self.bad(field)),
        }
    }

    /// A field that names something, or is empty.
    fn name(self, field: &'static str) -> Result<Option<&'a str>, RowError> {
        self.text(field).map(|text| (!text.is_empty()).then_some(text))
    }
}

/// Whether an LV's row tells of its group too.
#[derive(Debug, Clone, Copy)]
pub(super) enum Own {
    /// It does not.
    Alone,
    /// It does.
    WithVg,
}

/// A volume group's row.
pub(super) fn vg(row: Row<'_>) -> Result<VgRow, RowError> {
    Ok(VgRow {
        uuid: row.parsed("vg_uuid")?,
        name: row.parsed("vg_name")?,
        seqno: row.parsed("vg_seqno")?,
        extent_size: ExtentSize::new(row.bytes("vg_extent_size")?)
            .ok_or_else(|| row.bad("vg_extent_size"))?,
        extents: row.extents("vg_extent_count")?,
        free: row.extents("vg_free_count")?,
        lv_count: row.parsed("lv_count")?,
        max_lvs: row.parsed("max_lv")?,
        missing_pvs: row.parsed("vg_missing_pv_count")?,
        exported: row.flag("vg_exported", "exported")?,
        shared: row.name("vg_lock_type")?.is_some_and(|kind| kind != "none"),
        system_id: row.name("vg_systemid")?.map(str::to_owned),
        metadata_size: row.bytes("vg_mda_size")?,
        metadata_free: row.bytes("vg_mda_free")?,
    })
}

/// The group of a report in which each of its disks has a row.
pub(super) fn vgs(list: &[Value]) -> Result<Vec<VgRow>, RowError> {
    let mut groups = Vec::new();
    for value in list {
        let group = vg(Row(value))?;
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

/// Those of a group's disks that take no new extents, of the same report. Whether a disk that is missing takes any
/// does not matter: its group takes no change at all.
pub(super) fn unallocatable(list: &[Value]) -> Result<Vec<Unallocatable>, RowError> {
    let read = |row: Row<'_>| {
        let device = row.text("pv_name")?;
        let free = free(row)?;
        let closed = !row.flag("pv_allocatable", "allocatable")? && device.starts_with('/');
        Ok(closed.then(|| Unallocatable { device: PathBuf::from(device), free }))
    };
    list.iter().filter_map(|value| read(Row(value)).transpose()).collect()
}

/// What is free of a disk, which LVM reports in bytes only.
fn free(row: Row<'_>) -> Result<Extents, RowError> {
    let (all, used) = (row.parsed::<u64>("pv_pe_count")?, row.parsed("pv_pe_alloc_count")?);
    all.checked_sub(used).map(Extents::new).ok_or_else(|| row.bad("pv_pe_alloc_count"))
}

/// An LV's row.
pub(super) fn lv(row: Row<'_>, own: Own) -> Result<LvRow, RowError> {
    let active = has_table(row)?;
    // LVM calls it unknown whether a device that is not there, or not yet whole, is open.
    let device = |field, word| if active { row.flag(field, word) } else { row.text(field).map(|_| false) };
    let attributes = attributes(row)?;
    Ok(LvRow {
        uuid: row.parsed("lv_uuid")?,
        name: row.text("lv_name")?.to_owned(),
        size: row.bytes("lv_size")?,
        tags: row.text("lv_tags")?.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        created: created(row)?,
        active,
        open: device("lv_device_open", "open")?,
        suspended: device("lv_suspended", "suspended")?,
        partial: attributes.get(8) == Some(&b'p'),
        origin: matches!(attributes.first(), Some(b'o' | b'O')),
        kind: row.text("lv_layout")?.to_owned(),
        vg: match own {
            Own::Alone => None,
            Own::WithVg => Some(vg(row)?),
        },
        fault: None,
    })
}

/// The rows of a group's LVs. One that makes no sense is kept by its name: who overlooked it would take
/// it for absent, and make it again or call it deleted.
pub(super) fn lvs(list: &[Value]) -> Result<Vec<LvRow>, RowError> {
    let read = |value: &Value| {
        let row = Row(value);
        lv(row, Own::Alone).or_else(|error| {
            tracing::warn!(%error, row = %value, "lvm reports something unreadable");
            only_named(row, error.to_string())
        })
    };
    list.iter().map(read).collect()
}

/// An LV of which only its identity and its name are known.
fn only_named(row: Row<'_>, fault: String) -> Result<LvRow, RowError> {
    Ok(LvRow {
        uuid: row.parsed("lv_uuid")?,
        name: row.text("lv_name")?.to_owned(),
        size: Bytes::ZERO,
        tags: Vec::new(),
        created: None,
        active: false,
        open: false,
        suspended: false,
        partial: false,
        origin: false,
        kind: String::new(),
        vg: None,
        fault: Some(fault),
    })
}

fn attributes(row: Row<'_>) -> Result<&[u8], RowError> {
    row.text("lv_attr").map(str::as_bytes)
}

/// Whether an LV's device has a table. An lvm that was killed at the wrong moment leaves one without, or
/// with one that is not in force yet; LVM calls such an LV active (lvs(8), "lv_attr", the fifth letter).
fn has_table(row: Row<'_>) -> Result<bool, RowError> {
    let half_made = matches!(attributes(row)?.get(4), Some(b'd' | b'i' | b'X'));
    Ok(row.flag("lv_active", "active")? && !half_made)
}

/// LVM keeps no time for LVs that something very old made.
fn created(row: Row<'_>) -> Result<Option<SystemTime>, RowError> {
    match row.text("lv_time")? {
        "" | "0" => Ok(None),
        _ => {
            let since = Duration::from_secs(row.parsed("lv_time")?);
            Ok(SystemTime::UNIX_EPOCH.checked_add(since))
        }
    }
}

/// A segment's row.
pub(super) fn segment(row: Row<'_>) -> Result<SegmentRow, RowError> {
    let ranges = row.text("seg_pe_ranges")?.split_ascii_whitespace().map(str::parse::<PeRange>);
    let ranges = ranges.collect::<Result<_, _>>().map_err(|_| row.bad("seg_pe_ranges"))?;
    Ok(SegmentRow { kind: row.text("segtype")?.to_owned(), ranges })
}

/// The rows of physical volumes. Of a group with a row that cannot be read no row is kept: half a group
/// would look like a group that lost its disks.
pub(super) fn pvs(list: &[Value]) -> Vec<PvRow> {
    // With --all, LVM also lists devices that are none.
    let disks = list.iter().map(Row).filter(|row| !matches!(row.text("pv_uuid"), Ok("")));
    let mut broken = Vec::new();
    let mut rows = Vec::new();
    for row in disks {
        match pv(row, list) {
            Ok(read) => rows.push(read),
            Err(error) => {
                tracing::warn!(%error, row = %row.0, "lvm reports something unreadable: its group is not used");
                broken.extend(row.text("vg_uuid"));
            }
        }
    }
    rows.retain(|row: &PvRow| row.vg.as_ref().is_none_or(|vg| !broken.contains(&vg.uuid.as_str())));
    rows
}

fn pv(row: Row<'_>, list: &[Value]) -> Result<PvRow, RowError> {
    let uuid = row.text("pv_uuid")?;
    let same = list.iter().map(Row).filter(|other| other.text("pv_uuid").is_ok_and(|other| other == uuid));
    let same: Vec<Row<'_>> = same.collect();
    // Of the disks that claim to be one, LVM calls only those duplicates that it does not use, and knows
    // nothing but the name of their group.
    let chosen = same.iter().find(|other| matches!(other.text("pv_duplicate"), Ok("")));
    let group = chosen.copied().unwrap_or(row);
    let name = row.text("pv_name")?;
    Ok(PvRow {
        uuid: row.parsed("pv_uuid")?,
        device: name.starts_with('/').then(|| PathBuf::from(name)),
        duplicate: same.len() > 1 || row.flag("pv_duplicate", "duplicate")?,
        vg: row.name("vg_uuid")?.map(|_| vg(group)).transpose()?,
    })
}
