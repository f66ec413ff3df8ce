//! Groups that have room and can hold no further LV, since LVM's metadata area is nearly full, or somebody has set a
//! limit: nothing more is made, and what is there goes on.

use super::support::{OTHER, recovers, start, takes_nothing};
use crate::driver::{self, MIB, Mode, VG, Volume, make_group, report, sh};

/// [`VG`] with a small metadata area.
fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("512M").disk("512M").boot(|| {
        sh(&format!("vgcreate -q -y --metadatasize 256k {VG} {}", lab::disks()[0].display()));
        make_group(OTHER, &lab::disks()[1..]);
        driver::run(body());
    });
}

/// Fills the area with somebody else's LVs until it is as good as full for us, and not for LVM.
fn fill() -> Vec<String> {
    let tags: String = (0..10).map(|n| format!(" --addtag {n}{}", "x".repeat(999))).collect();
    let free = || report("vgs", "vg_mda_free", VG)[0].parse::<u64>().unwrap();
    let mut names = Vec::new();
    while free() >= 30 << 10 {
        let name = format!("filler{}", names.len());
        sh(&format!("lvcreate -q -y -an -Zn -Wn -l 1{tags} -n {name} {VG}"));
        names.push(format!("{VG}/{name}"));
    }
    names
}

#[test]
fn a_nearly_full_metadata_area_is_kept_for_the_volumes_that_are_there() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let fresh = Volume::create(&client, "pvc-fresh", Mode::Ext4).await;
        fresh.prepared().await;
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        let fillers = fill();
        takes_nothing(&client, "LVM's metadata area on its disks is nearly full").await;
        fresh.start().await;
        for volume in [&fresh, &raw] {
            assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
            volume.end().await;
        }
        takes_nothing(&client, "remove some, or use another group").await;
        raw.delete().await.unwrap();
        sh(&format!("lvremove -q -y {}", fillers.join(" ")));
        recovers(&client).await;
    });
}

#[test]
fn in_a_group_with_as_many_lvs_as_it_may_have_no_more_are_made() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        sh(&format!("vgchange -q --logicalvolume 1 {VG}"));
        takes_nothing(&client, "it has as many logical volumes as it may have, 1").await;
        assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
        volume.end().await;
        sh(&format!("vgchange -q --logicalvolume 0 {VG}"));
        recovers(&client).await;
    });
}
