use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::Machine;
use super::machine::Seen;
use super::place::Place;
use super::table::{NOTHING, or_nothing, size};
use crate::device::Dm;
use crate::fs;
use crate::lvm::LvRow;
use crate::types::{
    BlockDevice, Bytes, Claim, DmName, DmUuid, LvName, Owner, VgName, VgUuid, VolumeMode, VolumeState,
    VolumeTags,
};
use crate::volume::places;

/// A volume, for a person or a program to read.
#[derive(Debug, Clone, Serialize)]
pub struct VolumeRow {
    /// The claim that it was made for, if whoever asked for it told.
    pub claim: Option<Claim>,
    /// The name that it was asked for by: in Kubernetes the PersistentVolume's.
    pub name: Option<String>,
    /// Its id in CSI, `volumeHandle` in a PersistentVolume.
    pub handle: String,
    /// The group that it lies in.
    pub volume_group: String,
    /// Its LV's name.
    pub logical_volume: String,
    /// Its size.
    pub size_bytes: Bytes,
    /// How much of its file system is used, where that is mounted and answers.
    pub used_bytes: Option<u64>,
    /// How it lies on the disks, in LVM's words.
    pub layout: String,
    /// Its file system, or `block`.
    pub mode: Option<&'static str>,
    /// What it has been through.
    pub state: Option<&'static str>,
    /// Where it is mounted or bound.
    pub places: Vec<Place>,
    /// What is wrong with its LV or its tags, so that Quarry leaves it alone.
    pub fault: Option<String>,
    #[serde(skip)]
    pub(super) details: Details,
}

/// What is not for the table.
#[derive(Debug, Clone)]
pub(super) struct Details {
    pub(super) vg: VgUuid,
    pub(super) tags: Option<VolumeTags>,
    pub(super) created: Option<SystemTime>,
    pub(super) age: Option<Duration>,
    pub(super) suspended: bool,
    pub(super) partial: bool,
}

/// All volumes of the machine, group by group.
pub async fn volumes(machine: &Machine) -> Vec<VolumeRow> {
    let mut rows = Vec::new();
    for group in &machine.groups {
        let Ok(view) = &group.view else { continue };
        for lv in view.lvs() {
            rows.extend(row(machine, group, lv).await);
        }
    }
    rows
}

/// `None` for an LV that is no volume: somebody else's, or a hidden helper.
async fn row(machine: &Machine, group: &Seen, lv: &LvRow) -> Option<VolumeRow> {
    let (tags, fault) = match (&lv.fault, lv.owner()) {
        (Some(fault), _) => (None, Some(fault.clone())),
        (None, Ok(Owner::Volume(tags))) => (Some(tags), None),
        (None, Ok(Owner::Growth(_) | Owner::Foreign)) => return None,
        (None, Err(error)) => (None, Some(error.to_string())),
    };
    let mode = tags.as_ref().map(|tags| tags.mode);
    let places = places_of(&machine.dm, group, lv).await;
    let used_bytes = match mode {
        Some(VolumeMode::Filesystem(_)) => used(&places).await,
        Some(VolumeMode::Block) | None => None,
    };
    Some(VolumeRow {
        claim: tags.as_ref().and_then(|tags| tags.claim.clone()),
        name: tags.as_ref().map(|tags| tags.name.to_string()),
        handle: format!("{}/{}", group.uuid, lv.name),
        volume_group: group.name.to_string(),
        logical_volume: lv.name.clone(),
        size_bytes: lv.size,
        used_bytes,
        layout: lv.kind.clone(),
        mode: mode.map(VolumeMode::word),
        state: tags.as_ref().map(|tags| tags.state.word()),
        places,
        fault,
        details: Details {
            vg: group.uuid.clone(),
            created: lv.created,
            age: lv.age(),
            suspended: lv.suspended,
            partial: lv.partial,
            tags,
        },
    })
}

async fn places_of(dm: &Dm, group: &Seen, lv: &LvRow) -> Vec<Place> {
    let Some(device) = device(dm, &group.name, &group.uuid, lv).await else { return Vec::new() };
    let mut paths = places(&device).await.unwrap_or_default();
    paths.sort();
    paths.dedup();
    paths.into_iter().map(Place::at).collect()
}

/// `None` where the kernel has none, or nothing leads to it. The kernel is asked whatever LVM says, which calls a
/// volume inactive whose table somebody has exchanged.
async fn device(dm: &Dm, vg: &VgName, uuid: &VgUuid, lv: &LvRow) -> Option<BlockDevice> {
    let name: LvName = lv.name.parse().ok()?;
    dm.find(&DmName::of(vg, &name), &DmUuid::of(uuid, &lv.uuid)).await.ok().flatten()
}

async fn used(places: &[Place]) -> Option<u64> {
    let usage = fs::usage(&places.first()?.path).await.ok()?;
    Some(usage.bytes.used)
}

impl VolumeRow {
    /// The columns' names.
    pub const HEADING: [&str; 8] =
        ["CLAIM", "VOLUME", "SIZE", "USED", "LAYOUT", "MODE", "STATE", "PUBLISHED"];

    /// The cells of its row.
    pub fn cells(&self) -> [String; 8] {
        [
            or_nothing(self.claim.as_ref().map(Claim::to_string)),
            self.path(),
            size(self.size_bytes),
            or_nothing(self.used_bytes.map(Bytes::new).map(size)),
            self.layout.clone(),
            or_nothing(self.mode.map(str::to_owned)),
            self.state.unwrap_or("unreadable").to_owned(),
            self.published(),
        ]
    }

    /// As LVM's commands take it.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.volume_group, self.logical_volume)
    }

    pub(super) fn is(&self, state: VolumeState) -> bool {
        self.details.tags.as_ref().is_some_and(|tags| tags.state == state)
    }

    /// Pods by their UIDs, other places by their paths.
    fn published(&self) -> String {
        let shown = |place: &Place| match &place.pod {
            Some(uid) => format!("pod {uid}"),
            None => place.path.display().to_string(),
        };
        let mut published: Vec<String> =
            self.places.iter().filter(|place| !place.staging).map(shown).collect();
        published.dedup();
        match (published.is_empty(), self.places.is_empty()) {
            (false, _) => published.join(", "),
            (true, false) => "staged".to_owned(),
            (true, true) => NOTHING.to_owned(),
        }
    }
}
