use serde::Serialize;

use super::Machine;
use super::machine::Seen;
use super::table::{or_nothing, size};
use crate::lvm::{Health, LvRow, View};
use crate::types::{Bytes, Owner};

/// A volume group, for a person or a program to read.
#[derive(Debug, Clone, Serialize)]
pub struct GroupRow {
    /// Its name.
    pub name: String,
    /// Its identity, which volumes' ids begin with.
    pub uuid: String,
    /// Whether new volumes are made in it.
    pub used: bool,
    /// What is in it; `None` where it cannot be read.
    pub content: Option<Content>,
    /// What the creation of volumes leaves free.
    pub reserve_bytes: Bytes,
    /// Why it takes no change, or cannot be read; `None` where all is well.
    pub trouble: Option<String>,
}

/// What is in a group.
#[derive(Debug, Clone, Serialize)]
pub struct Content {
    /// Its size.
    pub size_bytes: Bytes,
    /// What no LV has.
    pub free_bytes: Bytes,
    /// What of that lies on disks that take no new extents, so that nothing may use it.
    pub unallocatable_bytes: Bytes,
    /// What the creation of volumes may use.
    pub usable_bytes: Bytes,
    /// The size of its smallest metadata area.
    pub metadata_size_bytes: Bytes,
    /// What is free of that.
    pub metadata_free_bytes: Bytes,
    /// How many volumes of Quarry's it holds.
    pub volumes: usize,
    /// How many LVs it holds that are no volumes of Quarry's.
    pub other_logical_volumes: usize,
}

/// The groups of the machine.
pub fn groups(machine: &Machine) -> Vec<GroupRow> {
    machine.groups.iter().map(row).collect()
}

fn row(group: &Seen) -> GroupRow {
    let healthy = group.health == Health::Healthy;
    let trouble = match &group.view {
        Err(why) => Some(why.clone()),
        Ok(_) if healthy => None,
        Ok(_) => Some(group.health.to_string()),
    };
    GroupRow {
        name: group.name.to_string(),
        uuid: group.uuid.to_string(),
        used: group.chosen,
        content: group.view.as_ref().ok().map(|view| content(view, group.reserve, healthy && group.chosen)),
        reserve_bytes: group.reserve,
        trouble,
    }
}

fn content(view: &View, reserve: Bytes, usable: bool) -> Content {
    let (vg, room) = (&view.vg, view.room(reserve));
    let volumes = view.lvs().filter(|lv| is_volume(lv)).count();
    Content {
        size_bytes: vg.extent_size.size_of(vg.extents),
        free_bytes: vg.extent_size.size_of(room.free),
        unallocatable_bytes: vg.extent_size.size_of(room.unallocatable),
        usable_bytes: if usable { vg.extent_size.size_of(room.usable) } else { Bytes::ZERO },
        metadata_size_bytes: vg.metadata_size,
        metadata_free_bytes: vg.metadata_free,
        volumes,
        other_logical_volumes: view.lvs().count() - volumes,
    }
}

fn is_volume(lv: &LvRow) -> bool {
    matches!(lv.owner(), Ok(Owner::Volume(_)))
}

impl GroupRow {
    /// The columns' names.
    pub const HEADING: [&str; 9] =
        ["NAME", "UUID", "SIZE", "FREE", "RESERVE", "USABLE", "METADATA FREE", "VOLUMES", "STATE"];

    /// The cells of its row.
    pub fn cells(&self) -> [String; 9] {
        let told = |what: fn(&Content) -> String| or_nothing(self.content.as_ref().map(what));
        let unallocatable = self.content.as_ref().map_or(Bytes::ZERO, |content| content.unallocatable_bytes);
        let state = match (&self.trouble, self.used) {
            (Some(trouble), _) => trouble.clone(),
            (None, true) if unallocatable > Bytes::ZERO => {
                format!("healthy, with {} on disks that take no new extents", size(unallocatable))
            }
            (None, true) => "healthy".to_owned(),
            (None, false) => "healthy, and not one of those to use".to_owned(),
        };
        [
            self.name.clone(),
            self.uuid.clone(),
            told(|content| size(content.size_bytes)),
            told(|content| size(content.free_bytes)),
            size(self.reserve_bytes),
            told(|content| size(content.usable_bytes)),
            told(|content| size(content.metadata_free_bytes)),
            told(|content| content.volumes.to_string()),
            state,
        ]
    }
}
