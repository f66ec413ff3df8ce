//! The volume group that both sides work in.

use crate::driver::{VG, command, report};

/// What the driver leaves free of a metadata area when it makes volumes, in bytes.
const KEPT: u64 = 32 << 10;

/// Makes the group anew on the machine's disk, with these options.
pub(super) fn make(options: &[&str]) {
    let disk = lab::disks().remove(0);
    let disk = disk.to_str().unwrap();
    if !report("vgs", "vg_name", "--all").is_empty() {
        command("vgremove", &["-q", "-y", "-f", VG]);
        // A disk that stays LVM's keeps the metadata area that it has.
        command("pvremove", &["-q", "-y", disk]);
    }
    command("vgcreate", &[options, &["-q", "-y", VG, disk]].concat());
}

/// What is free in the metadata area, in bytes.
pub(super) fn metadata_free() -> u64 {
    report("vgs", "vg_mda_free", VG)[0].parse().unwrap()
}

/// What so many LVs take of the metadata of a group in which so much was free before and so much is free now, in bytes,
/// and how many of them fit.
pub(super) fn metadata(before: u64, now: u64, lvs: u64) -> String {
    let each = (before - now) / lvs;
    let (all, ours) = (before / each, (before - KEPT) / each);
    format!(
        "metadata: {each} bytes an LV; a default VG has room for {all}, and the driver makes none above {ours}"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_room_for_lvs_is_what_is_free_by_what_one_takes() {
        let text = super::metadata(532_768, 482_768, 100);
        assert_eq!(
            text,
            "metadata: 500 bytes an LV; a default VG has room for 1065, and the driver makes none above 1000"
        );
    }
}
