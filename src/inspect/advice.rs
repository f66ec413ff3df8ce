use crate::lvm::Health;
use crate::types::VgName;

/// What to do about a group that is not healthy, as a person would be told.
pub(super) fn advice(vg: &VgName, health: &Health) -> String {
    match health {
        Health::Healthy => "nothing".to_owned(),
        Health::Exported => format!("vgimport {vg}"),
        Health::Foreign(_) => format!(
            "leave it to the machine that it belongs to; if that one is gone for good: vgchange --systemid NAME {vg}, with this machine's name from lvm systemid"
        ),
        Health::Shared => "use another group: Quarry does not use groups under lvmlockd".to_owned(),
        Health::SameName(_) => "rename one of the two by its UUID: vgrename UUID NEW-NAME".to_owned(),
        Health::DuplicatePv(_) => {
            "remove the copy of the disk, or the second path to it, from this machine; volumes that are there still work".to_owned()
        }
        Health::Partial(missing) if missing.is_empty() => {
            format!("if it is the right disk: vgextend --restoremissing {vg} /dev/DISK")
        }
        Health::Partial(_) => format!(
            "connect the disks; volumes that lie wholly on the others still work. If a disk is lost for good: vgreduce --removemissing {vg}, which says what else it would remove"
        ),
        Health::LongName => format!("vgrename {vg} NEW-NAME, and tell the configuration the new name"),
    }
}
