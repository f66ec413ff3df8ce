//! A volume is being prepared when the driver is killed, or when calls arrive that cannot wait.

use std::path::Path;
use std::time::Duration;

use tonic::Code;

use super::bench::{
    DIRT, device, dirty_free_space, file_system_size, fill, free, holds_exactly, holds_only, lvs, repeat,
};
use super::mkfs::{count_mkfs, kill_mkfs, meet_mkfs, mkfs_is_held, mkfs_runs, release_mkfs};
use super::slow::{
    LARGE, SIZE, boot, byte_at, create_half_zeroed, create_held, expand, is_half_zeroed, size, slow_disk,
    slow_down, speed_up, stage, waits,
};
use super::strace::{Act, processes};
use super::{holds_volumes, id, name, staging};
use crate::driver::{self, Client, Driver, MIB, Mode, VG, command, make_group, mounts_at, report, sh, until};

#[test]
fn a_mkfs_that_outlives_its_driver_is_waited_for_and_its_file_system_is_taken() {
    for mode in Mode::FILE_SYSTEMS {
        boot(async || {
            let driver = Driver::start().await;
            create_held(&mut driver.client().await, mode).await;
            driver.kill();
            let driver = Driver::start().await;
            let call = waits(stage(&driver.client().await, mode)).await;
            assert_eq!(mkfs_runs(), 1, "a second mkfs was begun beside the first");
            release_mkfs();
            call.await.unwrap().unwrap();
            assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 1));
            holds_volumes([1], size(mode));
        });
    }
}

/// Stages the volume twice for a caller who waits for a moment only, and is told to come again.
async fn stage_in_a_hurry(client: &Client, mode: Mode) {
    let client = client.within(Duration::from_secs(6));
    for _ in 0..2 {
        let status = stage(&client, mode).await.unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{status}");
    }
}

#[test]
fn a_mkfs_that_outlasts_its_callers_is_joined_by_later_ones_and_the_volume_is_mounted_once() {
    for mode in Mode::FILE_SYSTEMS {
        boot(async || {
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            create_held(&mut client, mode).await;
            stage_in_a_hurry(&client, mode).await;
            assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 0));
            release_mkfs();
            for _ in 0..2 {
                repeat(async || stage(&client, mode).await).await;
            }
            assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 1));
            holds_volumes([1], size(mode));
        });
    }
}

/// From now on a check of ext4 waits until there is a file `/run/go`.
fn hold_e2fsck() {
    sh("mv /usr/sbin/e2fsck /usr/sbin/e2fsck.own");
    let script = "#!/bin/sh\nuntil [ -e /run/go ]; do sleep 0.1; done\nexec /usr/sbin/e2fsck.own \"$@\"\n";
    std::fs::write("/usr/sbin/e2fsck", script).unwrap();
    sh("chmod +x /usr/sbin/e2fsck");
}

#[test]
fn a_check_that_outlasts_its_callers_goes_on_and_what_it_finds_sound_is_not_made_again() {
    boot(async || {
        let driver = Driver::start().await;
        driver.client().await.create(&name(1), SIZE, Mode::Ext4).await.unwrap();
        until("the volume is prepared", async || lvs()[&name(1)].state == "f").await;
        driver.kill();
        // As where the power was cut before the tag was on the disk.
        command("lvchange", &["-q", "--deltag=q.s=f", "--addtag=q.s=b", &format!("{VG}/{}", name(1))]);
        hold_e2fsck();
        let driver = Driver::start().await;
        let client = driver.client().await;
        until("it is checked", async || processes("e2fsck").len() == 1).await;
        stage_in_a_hurry(&client, Mode::Ext4).await;
        assert_eq!((processes("e2fsck").len(), lvs()[&name(1)].state.as_str()), (1, "b"));
        assert!(!Path::new("/run/go").exists() && mounts_at(&staging(1)) == 0);
        std::fs::write("/run/go", "").unwrap();
        repeat(async || stage(&client, Mode::Ext4).await).await;
        assert_eq!((mkfs_runs(), mounts_at(&staging(1))), (1, 1));
        holds_volumes([1], SIZE);
    });
}

#[test]
fn a_delete_waits_for_a_mkfs_whether_its_driver_lives_or_not() {
    for mode in Mode::FILE_SYSTEMS {
        boot(async || {
            let before = free();
            let mut driver = Driver::start().await;
            for killed in [false, true] {
                create_held(&mut driver.client().await, mode).await;
                if killed {
                    driver.kill();
                    driver = Driver::start().await;
                }
                let (mut client, id) = (driver.client().await, id(1));
                let call = waits(async move { client.delete(&id).await }).await;
                release_mkfs();
                call.await.unwrap().unwrap();
                holds_exactly([]);
                assert_eq!(driver.client().await.capacity().await.unwrap().0, before);
            }
        });
    }
}

#[test]
fn a_mkfs_that_is_killed_together_with_its_driver_is_done_again() {
    for mode in Mode::FILE_SYSTEMS {
        boot(async || {
            for (number, write) in (1..).zip([2, 5, 10, 15]) {
                let driver = Driver::start().await;
                meet_mkfs(Act::Hold, write);
                driver.client().await.create(&name(number), size(mode), mode).await.unwrap();
                mkfs_is_held(write).await;
                driver.kill();
                kill_mkfs();
                let driver = Driver::start().await;
                let mut client = driver.client().await;
                repeat(async || client.stage(&id(number), &staging(number), mode).await).await;
                assert_eq!(mkfs_runs(), 2 * number, "killed at write {write}");
                holds_volumes(1..=number, size(mode));
                std::fs::write(staging(number).join("data"), "x").unwrap();
            }
        });
    }
}

#[test]
fn a_driver_that_is_killed_while_it_zeroes_a_volume_leaves_that_to_the_next() {
    boot(async || {
        let driver = Driver::start().await;
        create_half_zeroed(&mut driver.client().await).await;
        driver.kill();
        assert_eq!(byte_at(&device(&name(1)), LARGE - MIB), Some(DIRT));
        assert_eq!(lvs()[&name(1)].state, "b");
        speed_up();
        let driver = Driver::start().await;
        stage(&driver.client().await, Mode::Block).await.unwrap();
        holds_only(&device(&name(1)), 0, LARGE, 0);
        holds_volumes([1], LARGE);
    });
}

#[test]
fn what_was_left_undone_in_a_group_that_comes_later_is_taken_up_then() {
    boot(async || {
        let driver = Driver::start().await;
        create_half_zeroed(&mut driver.client().await).await;
        driver.kill();
        speed_up();
        command("vgrename", &["-q", VG, "away"]);
        let _driver = Driver::start().await;
        command("vgrename", &["-q", "away", VG]);
        until("the volume is prepared, unasked", async || lvs()[&name(1)].state == "f").await;
        holds_only(&device(&name(1)), 0, LARGE, 0);
    });
}

#[test]
fn a_delete_ends_the_zeroing_of_a_volume() {
    boot(async || {
        let before = free();
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        create_half_zeroed(&mut client).await;
        client.delete(&id(1)).await.unwrap();
        holds_exactly([]);
        speed_up();
        assert_eq!(client.capacity().await.unwrap().0, before);
        command("lvcreate", &["-q", "-y", "-Wn", "-Zn", "-n", "seen", "-L", &format!("{LARGE}b"), VG]);
        assert_eq!(byte_at(&device("seen"), LARGE - MIB), Some(DIRT), "it was zeroed to its end");
    });
}

#[test]
fn an_expansion_joins_the_preparation_and_then_grows_the_volume() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        create_held(&mut client, Mode::Ext4).await;
        let call = waits(expand(&client, 2 * SIZE, Mode::Ext4)).await;
        release_mkfs();
        assert_eq!(call.await.unwrap().unwrap(), 2 * SIZE);
        client.stage(&id(1), &staging(1), Mode::Ext4).await.unwrap();
        assert_eq!(file_system_size(&device(&name(1))), 2 * SIZE);
        holds_volumes([1], 2 * SIZE);
        assert_eq!(mkfs_runs(), 1);
        client.unstage(&id(1), &staging(1)).await.unwrap();
        client.delete(&id(1)).await.unwrap();

        create_half_zeroed(&mut client).await;
        let size = LARGE + 4 * MIB;
        let grown = client.expand(&id(1), size, Mode::Block).await;
        speed_up();
        assert_eq!(grown.unwrap(), size);
        client.stage(&id(1), &staging(1), Mode::Block).await.unwrap();
        holds_only(&device(&name(1)), 0, size, 0);
        holds_volumes([1], size);
    });
}

#[test]
fn a_power_cut_in_the_middle_of_a_preparation_leaves_it_to_the_next_driver() {
    let machine = lab::Machine::new().disk("1G");
    machine.boot_until_power_cut(|| {
        make_group(VG, &[slow_disk()]);
        driver::run(async {
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            meet_mkfs(Act::Hold, 10);
            client.create(&name(2), SIZE, Mode::Ext4).await.unwrap();
            mkfs_is_held(10).await;
            create_half_zeroed(&mut client).await;
            lab::power_cut();
        });
    });
    machine.boot(|| {
        slow_disk();
        count_mkfs();
        driver::run(async {
            assert!(lvs().values().all(|lv| lv.state == "b"));
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            client.stage(&id(1), &staging(1), Mode::Block).await.unwrap();
            client.stage(&id(2), &staging(2), Mode::Ext4).await.unwrap();
            holds_only(&device(&name(1)), 0, LARGE, 0);
            let (one, two) = (name(1), name(2));
            holds_exactly([(one.as_str(), LARGE, "u"), (two.as_str(), SIZE, "u")]);
            assert_eq!(mkfs_runs(), 1);
        });
    });
}

#[test]
fn a_driver_that_is_killed_while_it_zeroes_what_a_volume_is_to_grow_by_leaves_that_to_the_next() {
    const OLD: u64 = 4 * MIB;
    boot(async || {
        let before = free();
        let mut driver = Driver::start().await;
        for deleted in [false, true] {
            let mut client = driver.client().await;
            client.create(&name(1), OLD, Mode::Block).await.unwrap();
            client.stage(&id(1), &staging(1), Mode::Block).await.unwrap();
            fill(&device(&name(1)), 0, OLD, 0x55);
            dirty_free_space();
            slow_down();
            let call = tokio::spawn(expand(&client, OLD + LARGE, Mode::Block));
            until("the hidden volume is there", async || !hidden().is_empty()).await;
            is_half_zeroed(&hidden()).await;
            driver.kill();
            assert!(call.await.unwrap().is_err());
            assert_eq!(byte_at(&device(&hidden()), LARGE - MIB), Some(DIRT));
            speed_up();
            driver = Driver::start().await;
            let mut client = driver.client().await;
            holds_only(&device(&name(1)), 0, OLD, 0x55);
            if !deleted {
                let call = expand(&client, OLD + LARGE, Mode::Block);
                assert_eq!(call.await.unwrap(), OLD + LARGE);
                holds_volumes([1], OLD + LARGE);
                holds_only(&device(&name(1)), 0, OLD, 0x55);
                holds_only(&device(&name(1)), OLD, OLD + LARGE, 0);
            }
            repeat(async || client.delete(&id(1)).await).await;
            holds_exactly([]);
            assert_eq!(client.capacity().await.unwrap().0, before);
        }
    });
}

/// The name of the hidden volume that is there, or is to come.
fn hidden() -> String {
    let hidden = |name: &String| name.starts_with("grow-");
    report("lvs", "lv_name", VG).into_iter().find(hidden).unwrap_or_default()
}
