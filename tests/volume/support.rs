//! What the tests of volumes share.

use std::path::Path;

use crate::driver::{self, Client, Driver, VG, Volume, make_group, sh};

/// Boots a machine with one disk and the group [`VG`] on it.
pub(super) fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("4G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(body());
    });
}

/// Boots such a machine, with a driver on it.
pub(super) fn with_driver(body: impl AsyncFnOnce(Driver, Client)) {
    boot(async || {
        let driver = Driver::start().await;
        let client = driver.client().await;
        body(driver, client).await;
    });
}

/// Sets the machine's clock forward.
pub(super) fn hours_go_by(hours: u32) {
    sh(&format!("date -s '+{hours} hours' > /dev/null"));
}

/// The content of a file.
pub(super) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Does something to a volume's device behind LVM's back.
pub(super) fn dm(what: &str, volume: &Volume) {
    sh(&format!("dmsetup {what} {}", volume.dm_name()));
}

/// Has a mounted ext4 note an error, as when its disk fails: its journal is aborted, and its superblock keeps the note.
pub(super) fn note_error(volume: &Volume) {
    let number = format!("stat -Lc %Hr:%Lr {}", volume.device().display());
    sh(&format!(
        "echo test > /sys/fs/ext4/$(basename $(realpath /sys/dev/block/$({number})))/trigger_fs_error"
    ));
}
