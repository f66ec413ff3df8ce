use std::fmt;
use std::path::PathBuf;

use super::{PvRow, VgRow};
use crate::types::{PvUuid, VgName, VgUuid};

/// Whether a volume group can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Healthy,
    /// It is exported.
    Exported,
    /// It belongs to another system.
    Foreign(String),
    /// It is under shared locking, which this driver does not do.
    Shared,
    /// Another group has the same name.
    SameName(VgUuid),
    /// One of its disks is there twice.
    DuplicatePv(PvUuid),
    /// Some of its disks are missing: no change is made, yet volumes that are whole can be used.
    Partial(Vec<PvUuid>),
    /// Its name is so long that device mapper could not name its volumes.
    LongName,
}

impl Health {
    /// Whether volumes that are whole can still be activated and mounted.
    pub const fn serves(&self) -> bool {
        matches!(self, Self::Healthy | Self::Partial(_) | Self::DuplicatePv(_))
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("healthy"),
            Self::Exported => f.write_str("it is exported (vgimport brings it back)"),
            Self::Foreign(owner) => {
                write!(f, "it belongs to the system {owner:?} (vgchange --systemid would change that)")
            }
            Self::Shared => {
                f.write_str("it is shared between hosts (lvmlockd), which Quarry does not support")
            }
            Self::SameName(other) => {
                write!(f, "the group {other} has the same name (vgrename one of them by its UUID)")
            }
            Self::DuplicatePv(pv) => {
                write!(
                    f,
                    "its disk {pv} is there twice: remove the copy, or the second path to it, from this machine"
                )
            }
            // LVM writes down that a disk is missing when it changes a group without it.
            Self::Partial(missing) if missing.is_empty() => f.write_str(
                "a disk of it was missing, is back, and still counts as missing (vgextend --restoremissing brings it back)",
            ),
            Self::Partial(missing) => {
                let missing: Vec<_> = missing.iter().map(PvUuid::as_str).collect();
                write!(f, "disks of it are missing: {}", missing.join(", "))
            }
            Self::LongName => f.write_str(
                "its name is too long for device mapper: use at most 80 characters, hyphens counted twice",
            ),
        }
    }
}

/// A volume group as a look at the whole machine shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The group's row.
    pub vg: VgRow,
    /// The devices that it lies on, those of them that are there.
    pub devices: Vec<PathBuf>,
    /// Whether it can be used.
    pub health: Health,
}

/// What a look shows of each group. `system_id` is this machine's own, if it has one.
pub fn sightings(rows: &[PvRow], system_id: Option<&str>) -> Vec<Sighting> {
    let mut seen: Vec<Sighting> = Vec::new();
    for vg in rows.iter().filter_map(|row| row.vg.as_ref()) {
        if seen.iter().all(|sighting| sighting.vg.uuid != vg.uuid) {
            let disks: Vec<&PvRow> = rows.iter().filter(|row| is_of(row, &vg.uuid)).collect();
            let health = judge(vg, &disks, rows, system_id);
            let mut devices: Vec<PathBuf> = disks.iter().filter_map(|disk| disk.device.clone()).collect();
            devices.sort();
            devices.dedup();
            seen.push(Sighting { vg: vg.clone(), devices, health });
        }
    }
    seen
}

fn is_of(row: &PvRow, vg: &VgUuid) -> bool {
    row.vg.as_ref().is_some_and(|own| own.uuid == *vg)
}

/// The gravest reason comes first: the one under which the least may be done.
fn judge(vg: &VgRow, disks: &[&PvRow], all: &[PvRow], system_id: Option<&str>) -> Health {
    let missing = || disks.iter().filter(|disk| disk.device.is_none()).map(|disk| disk.uuid.clone());
    if let Some(owner) = vg.system_id.as_deref().filter(|owner| system_id != Some(owner)) {
        Health::Foreign(owner.to_owned())
    } else if vg.shared {
        Health::Shared
    } else if vg.exported {
        Health::Exported
    } else if let Some(other) = namesake(&vg.name, &vg.uuid, all) {
        Health::SameName(other)
    } else if !vg.name.leaves_room() {
        Health::LongName
    } else if let Some(disk) = disks.iter().find(|disk| disk.duplicate) {
        Health::DuplicatePv(disk.uuid.clone())
    } else if vg.missing_pvs > 0 || missing().next().is_some() {
        Health::Partial(missing().collect())
    } else {
        Health::Healthy
    }
}

fn namesake(name: &VgName, uuid: &VgUuid, all: &[PvRow]) -> Option<VgUuid> {
    let groups = all.iter().filter_map(|row| row.vg.as_ref());
    groups.filter(|vg| vg.name == *name && vg.uuid != *uuid).map(|vg| vg.uuid.clone()).next()
}
