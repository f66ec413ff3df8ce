//! Turning the machine off in good order.

use std::fs;
use std::path::PathBuf;

use nix::mount::{MntFlags, umount2};
use nix::sys::reboot::{RebootMode, reboot};
use nix::unistd::sync;

/// Unmounts the file systems on disks, writes everything out and turns the machine off.
pub(super) fn turn_off() {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for place in places_of_disks(&table) {
        // Busy or not, the data is written out below.
        let _ = umount2(&place, MntFlags::empty());
    }
    sync();
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

/// The mount points of file systems that lie on a device, the last mounted first.
fn places_of_disks(table: &str) -> Vec<PathBuf> {
    let place = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let source = back.split(' ').nth(1)?;
        let place = front.split(' ').nth(4)?.replace("\\040", " ");
        source.starts_with("/dev/").then(|| PathBuf::from(place))
    };
    table.lines().rev().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_on_devices_are_unmounted_and_the_last_one_first() {
        let table = "22 1 0:20 / / rw - overlay overlay rw\n\
                     30 22 254:0 / /mnt rw shared:1 - ext4 /dev/mapper/vg-a rw\n\
                     31 30 254:1 / /mnt/b\\040c rw - xfs /dev/mapper/vg-b rw\n\
                     32 22 0:5 / /dev rw - devtmpfs devtmpfs rw\n";
        assert_eq!(places_of_disks(table), ["/mnt/b c", "/mnt"].map(PathBuf::from));
    }
}
