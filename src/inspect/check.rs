use std::time::Duration;

use serde::Serialize;

use super::advice::advice;
use super::machine::Seen;
use super::table::size;
use super::{Machine, VolumeRow, volumes};
use crate::fs;
use crate::lvm::{Full, Health, LvRow, Unallocatable, View};
use crate::types::{Owner, VolumeMode, VolumeState};
use crate::volume::{self, BLANK_AGE, serves};

/// After this long a volume that nobody has used may be one that nobody will.
const UNUSED_AGE: Duration = Duration::from_secs(60 * 60);

/// Something that a person may want to do something about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether something is wrong. What is not is worth a look at most.
    pub unhealthy: bool,
    /// The group, or the volume as `GROUP/LV`.
    pub about: String,
    /// What was found.
    pub found: String,
    /// What to do.
    pub advice: String,
}

/// Looks for what is unhealthy on the machine. Mounted file systems are asked whether they still take what is
/// written to them, by a file that has no name and is gone at once.
pub async fn check(machine: &Machine) -> Vec<Finding> {
    let mut findings: Vec<Finding> = machine.absent.iter().map(|pattern| absent(pattern)).collect();
    machine.groups.iter().for_each(|group| of_group(group, &mut findings));
    for volume in volumes(machine).await {
        of_volume(&volume, &mut findings);
        findings.extend(dead(&volume).await);
    }
    findings.sort_by_key(|finding| !finding.unhealthy);
    findings
}

fn unhealthy(about: impl ToString, found: impl ToString, advice: impl ToString) -> Finding {
    Finding {
        unhealthy: true,
        about: about.to_string(),
        found: found.to_string(),
        advice: advice.to_string(),
    }
}

fn note(about: impl ToString, found: impl ToString, advice: impl ToString) -> Finding {
    Finding { unhealthy: false, ..unhealthy(about, found, advice) }
}

fn absent(pattern: &str) -> Finding {
    let advice = "nothing, if this machine is to have none; otherwise compare the name with vgs, or make one with vgcreate";
    note(pattern, "no volume group here has this name", advice)
}

fn of_group(group: &Seen, findings: &mut Vec<Finding>) {
    let name = &group.name;
    if group.health != Health::Healthy {
        findings.push(unhealthy(name, &group.health, advice(name, &group.health)));
    } else if let Err(why) = &group.view {
        findings.push(unhealthy(name, why, "see dmesg for its disks, and try vgs and lvs by hand"));
    }
    let Ok(view) = &group.view else { return };
    if group.chosen && group.health == Health::Healthy {
        findings.extend(of_room(group, view));
        findings.extend(view.unallocatable.iter().map(|disk| of_unallocatable(group, view, disk)));
    }
    findings.extend(view.lvs().filter_map(|lv| left_over(group, view, lv)));
}

fn of_room(group: &Seen, view: &View) -> Option<Finding> {
    let room = view.room(group.reserve);
    if let Some(full) = room.full {
        return Some(of_full(group, view, full));
    }
    let least = view.vg.extent_size.bytes();
    (view.vg.extent_size.size_of(room.usable) < least).then(|| {
        let free = size(view.vg.extent_size.size_of(room.growable));
        let found =
            format!("no room for new volumes: {free} are free, and the reserve is {}", size(group.reserve));
        note(&group.name, found, "add a disk (vgextend), delete volumes, or lower the reserve")
    })
}

fn of_full(group: &Seen, view: &View, full: Full) -> Finding {
    let (found, advice) = match full {
        Full::Metadata => {
            let (free, all) = (size(view.vg.metadata_free), size(view.vg.metadata_size));
            (
                format!("LVM's metadata area on its disks is nearly full ({free} of {all} free)"),
                "delete volumes, or make a group with a larger area (vgcreate --metadatasize 16m)",
            )
        }
        Full::Count(count) => (
            format!("it has as many logical volumes as it may have, {count}"),
            "delete volumes, or allow more (vgchange --logicalvolume 0 for any number)",
        ),
    };
    unhealthy(&group.name, format!("{found}: volumes still grow and are deleted, but none are made"), advice)
}

fn of_unallocatable(group: &Seen, view: &View, disk: &Unallocatable) -> Finding {
    let (device, free) = (disk.device.display(), size(view.vg.extent_size.size_of(disk.free)));
    let found = format!("its disk {device} takes no new extents: {free} are free on it that nothing may use");
    let advice = format!(
        "nothing, if the disk is to go: pvmove and vgreduce take it out; otherwise pvchange -xy {device}"
    );
    note(&group.name, found, advice)
}

/// What an interrupted expansion of a raw block volume left.
fn left_over(group: &Seen, view: &View, lv: &LvRow) -> Option<Finding> {
    let Ok(Owner::Growth(growth)) = lv.owner() else { return None };
    (!serves(view, &growth)).then(|| {
        let found = "an interrupted expansion left it, and it serves nothing any more";
        note(format!("{}/{}", group.name, lv.name), found, "nothing: the driver removes it when it starts")
    })
}

fn of_volume(volume: &VolumeRow, findings: &mut Vec<Finding>) {
    let (path, details) = (volume.path(), &volume.details);
    if let Some(fault) = &volume.fault {
        let advice = "lvs -o +lv_tags shows its tags; if a newer release of Quarry made it, run that one";
        findings.push(unhealthy(&path, format!("it is left alone: {fault}"), advice));
    }
    if details.partial {
        let found = "some of it lies on a disk that is not there";
        findings.push(unhealthy(&path, found, "connect the disk; pvs shows which one is missing"));
    }
    if details.suspended {
        let advice = format!(
            "if no lvm command runs (ps), an earlier one was killed: the driver resumes it before its next change in the group, or lvchange --refresh {path} at once"
        );
        findings.push(unhealthy(&path, "it is suspended: all that reads or writes it waits", advice));
    }
    findings.extend(of_state(volume, &path));
}

fn of_state(volume: &VolumeRow, path: &str) -> Option<Finding> {
    let hours = |age: Duration| format!("{} hours", age.as_secs() / 3600);
    let age = volume.details.age.filter(|age| *age >= UNUSED_AGE);
    let strange = [VolumeState::Copying, VolumeState::Condemned].into_iter().find(|state| volume.is(*state));
    if let Some(state) = strange {
        let found = format!("it is {state}, and this release does not know what to do with such a volume");
        return Some(unhealthy(path, found, "run the release of Quarry that made it"));
    }
    if volume.is(VolumeState::Blank) {
        let age = age?;
        return Some(if age >= BLANK_AGE {
            let found =
                format!("it was made {} ago and never prepared: it is not written to any more", hours(age));
            unhealthy(path, found, "look at what is on it; if nobody misses it, delete the claim")
        } else {
            let found = format!("it was made {} ago and is not prepared yet", hours(age));
            note(path, found, "the driver's log says what the preparation waits for")
        });
    }
    if volume.is(VolumeState::Fresh) {
        let found = format!("it was made {} ago and never used", hours(age?));
        let advice = format!("if its claim is gone: lvremove {path}, or let the controller collect orphans");
        return Some(note(path, found, advice));
    }
    None
}

/// A mounted file system that does not work, though it looks mounted.
async fn dead(volume: &VolumeRow) -> Option<Finding> {
    let place = volume.places.first()?;
    // Block volumes have no file system, and whoever asks a suspended one would wait.
    if volume.mode == Some(VolumeMode::Block.word()) || volume.details.suspended {
        return None;
    }
    let (reason, advice) = match volume::health(&place.path).await {
        fs::Health::Alive => return None,
        fs::Health::Dead(reason) => {
            (reason, "look at dmesg, and end the pods that use it: it is mounted anew once nobody does")
        }
        fs::Health::Silent(reason) => (reason, "look again: its disk has very much to do, or hangs (dmesg)"),
    };
    Some(unhealthy(volume.path(), reason, advice))
}

impl Finding {
    /// As lines for a person.
    pub fn lines(&self) -> String {
        let word = if self.unhealthy { "UNHEALTHY" } else { "note     " };
        format!("{word}  {}: {}\n           do: {}\n", self.about, self.found, self.advice)
    }
}
