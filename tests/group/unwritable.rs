//! A disk that can be read and takes no writes: nothing that LVM could not do is said to be done.

use super::support::{Does, make_fickle, now, recovers, works};
use crate::driver::{self, Driver, MIB, Mode, SIZE, VG, Volume, report};

/// All that LVM knows of the group's LVs.
fn everything() -> Vec<String> {
    report("lvs", "lv_name,lv_size,lv_tags", VG)
}

#[test]
fn no_change_is_answered_as_done_until_the_disk_takes_it() {
    lab::Machine::new().disk("1G").boot(|| {
        make_fickle(VG);
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
                now(Does::FailWrites);
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
                now(Does::Serve);
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
