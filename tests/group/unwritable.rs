//! A disk that can be read and takes no writes: nothing that LVM could not do is said to be done.

use std::path::PathBuf;

use super::support::{recovers, works};
use crate::driver::{self, Driver, MIB, Mode, SIZE, VG, Volume, make_group, report, sh};

/// How the machine's disk is shown. Its first MiB is left out, since LVM would find the group twice.
fn table(takes_writes: bool) -> String {
    let disk = lab::disks().remove(0).display().to_string();
    let sectors = sh(&format!("blockdev --getsz {disk}")).trim().parse::<u64>().unwrap() - 2048;
    match takes_writes {
        true => format!("0 {sectors} linear {disk} 2048"),
        false => format!("0 {sectors} flakey {disk} 2048 0 3600 1 error_writes"),
    }
}

fn take_writes(takes_writes: bool) {
    sh(&format!("dmsetup load disk --table '{}'", table(takes_writes)));
    sh("dmsetup suspend --noflush --nolockfs disk; dmsetup resume disk");
}

/// All that LVM knows of the group's LVs.
fn everything() -> Vec<String> {
    report("lvs", "lv_name,lv_size,lv_tags", VG)
}

#[test]
fn no_change_is_answered_as_done_until_the_disk_takes_it() {
    lab::Machine::new().disk("1G").boot(|| {
        sh(&format!("modprobe dm-flakey; dmsetup create disk --table '{}'", table(true)));
        make_group(VG, &[PathBuf::from("/dev/mapper/disk")]);
        driver::run(async {
            let driver = Driver::start().await;
            let client = driver.client().await;
            let kept = Volume::in_use(&client, "pvc-kept", Mode::Ext4).await;
            std::fs::write(kept.target.join("marker"), "kept").unwrap();
            kept.end().await;
            let fresh = Volume::create(&client, "pvc-fresh", Mode::Ext4).await;
            let gone = Volume::create(&client, "pvc-gone", Mode::Block).await;
            fresh.prepared().await;
            gone.prepared().await;
            let before = everything();

            let new = async || client.clone().create_in(VG, "pvc-new", SIZE, Mode::Block).await.map(drop);
            for call in ["create", "expand", "first stage", "delete"] {
                take_writes(false);
                for _ in 0..2 {
                    let answer = match call {
                        "create" => new().await,
                        "expand" => kept.expand(64 * MIB).await.map(drop),
                        "first stage" => fresh.stage().await,
                        _ => gone.delete().await,
                    };
                    assert!(answer.is_err(), "{call} is said to be done");
                    assert_eq!(everything(), before, "{call}");
                }
                take_writes(true);
                // So that the next one comes as far as LVM.
                recovers(&client).await;
            }
            gone.delete().await.unwrap();
            assert_eq!(kept.expand(64 * MIB).await.unwrap(), 64 * MIB);
            works(&kept).await;
            fresh.start().await;
            let new = Volume::create(&client, "pvc-new", Mode::Block).await;
            new.start().await;
            let names = report("lvs", "lv_name", VG);
            assert_eq!(names.len(), 3, "{names:?}");
        });
    });
}
