use std::path::Path;

use crate::driver::{
    self, Driver, MIB, Mode, SIZE, VG, Volume, command, folder, make_group, mounts_at, report, sh, until,
};

/// A machine with one disk and the group [`VG`] on it.
fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("4G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(body());
    });
}

fn size_of_files(path: &Path) -> u64 {
    nix::sys::statvfs::statvfs(path).unwrap().blocks() * 4096
}

#[test]
fn a_volume_lives_from_claim_to_deletion() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        for mode in Mode::FILE_SYSTEMS {
            let size = 300 * MIB;
            let before = client.capacity().await.unwrap();
            let (staging, target) = (folder("staging"), Path::new("/var/lib/kubelet/target"));

            let volume = client.create("pvc-a", size, mode).await.unwrap();
            assert_eq!(volume.capacity_bytes.cast_unsigned(), size);
            client.stage(&volume.volume_id, &staging, mode).await.unwrap();
            client.publish(&volume.volume_id, &staging, target, mode).await.unwrap();
            std::fs::write(target.join("data"), "kept").unwrap();

            assert_eq!(client.expand(&volume.volume_id, 2 * size, mode).await.unwrap(), 2 * size);
            assert!(size_of_files(target) > size + size / 2, "the mounted file system has grown");
            let offline = 2 * size + 100 * MIB;
            assert_eq!(std::fs::read_to_string(target.join("data")).unwrap(), "kept");

            client.unpublish(&volume.volume_id, target).await.unwrap();
            assert!(!target.exists());
            client.unstage(&volume.volume_id, &staging).await.unwrap();
            assert_eq!(client.expand(&volume.volume_id, offline, mode).await.unwrap(), offline);
            client.stage(&volume.volume_id, &staging, mode).await.unwrap();
            assert!(size_of_files(&staging) > size + size / 2 + 90 * MIB, "it has grown when it was staged");
            assert_eq!(std::fs::read_to_string(staging.join("data")).unwrap(), "kept");
            client.unstage(&volume.volume_id, &staging).await.unwrap();
            client.delete(&volume.volume_id).await.unwrap();
            assert_eq!(client.capacity().await.unwrap(), before);
            assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        }
        assert!(!driver.log().has(&["mounted once more"]), "none of them was cut off in its growth");
        assert!(driver.stop().success());
    });
}

#[test]
fn a_raw_block_volume_lives_from_claim_to_deletion() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let (staging, target) = (folder("staging"), Path::new("/var/lib/kubelet/device"));
        let id = client.create("pvc-b", 64 * MIB, Mode::Block).await.unwrap().volume_id;
        client.stage(&id, &staging, Mode::Block).await.unwrap();
        client.publish(&id, &staging, target, Mode::Block).await.unwrap();
        let size =
            || command("blockdev", &["--getsize64", target.to_str().unwrap()]).trim().parse::<u64>().unwrap();
        assert_eq!(size(), 64 * MIB);
        assert_eq!(client.expand(&id, 128 * MIB, Mode::Block).await.unwrap(), 128 * MIB);
        assert_eq!(size(), 128 * MIB);
        assert!(client.delete(&id).await.is_err(), "a published volume is in use");
        client.unpublish(&id, target).await.unwrap();
        client.unstage(&id, &staging).await.unwrap();
        client.delete(&id).await.unwrap();
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    });
}

/// LVM waits for udev where it is told that there is one, and for ever where it ends in the middle.
#[test]
fn a_volume_outlives_the_udevd_beside_it() {
    lab::Machine::new().disk("1G").udev().boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let driver = Driver::start().await;
            let client = driver.client().await;
            let before = Volume::in_use(&client, "pvc-before", Mode::Ext4).await;
            sh("udevadm control --exit");
            until("udevd has ended", async || sh("pgrep -x systemd-udevd || true").is_empty()).await;
            let after = Volume::in_use(&client, "pvc-after", Mode::Ext4).await;
            for volume in [&before, &after] {
                assert_eq!(volume.expand(2 * SIZE).await.unwrap(), 2 * SIZE);
                std::fs::write(volume.target.join("data"), "kept").unwrap();
                volume.end().await;
            }
            sh("/lib/systemd/systemd-udevd --daemon && udevadm trigger --action=add --subsystem-match=block");
            for volume in [&before, &after] {
                volume.start().await;
                assert_eq!(std::fs::read_to_string(volume.target.join("data")).unwrap(), "kept");
                volume.end().await;
                volume.delete().await.unwrap();
            }
            assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        });
    });
}

#[test]
fn every_call_may_come_again_and_changes_nothing() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
            let (staging, target) =
                (folder(&format!("staging-{name}")), Path::new("/var/lib/kubelet").join(name));
            let id = client.create(name, mode.size(), mode).await.unwrap().volume_id;
            for _ in 0..10 {
                assert_eq!(client.create(name, mode.size(), mode).await.unwrap().volume_id, id);
                client.stage(&id, &staging, mode).await.unwrap();
            }
            assert_eq!(mounts_at(&staging), usize::from(mode != Mode::Block));
            for _ in 0..10 {
                client.publish(&id, &staging, &target, mode).await.unwrap();
                assert_eq!(client.expand(&id, mode.size(), mode).await.unwrap(), mode.size());
            }
            assert_eq!(mounts_at(&target), 1);
            for _ in 0..10 {
                client.unpublish(&id, &target).await.unwrap();
            }
            for _ in 0..10 {
                client.unstage(&id, &staging).await.unwrap();
            }
            for _ in 0..10 {
                client.delete(&id).await.unwrap();
            }
        }
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    });
}

#[test]
fn a_restart_loses_nothing_and_running_pods_do_not_notice() {
    for mode in Mode::FILE_SYSTEMS {
        boot(async || {
            let driver = Driver::start().await;
            let mut client = driver.client().await;
            let (staging, target) = (folder("staging"), Path::new("/var/lib/kubelet/target"));
            let id = client.create("pvc-a", 300 * MIB, mode).await.unwrap().volume_id;
            client.stage(&id, &staging, mode).await.unwrap();
            client.publish(&id, &staging, target, mode).await.unwrap();
            driver.kill();
            std::fs::write(target.join("data"), "written while no driver runs").unwrap();

            let driver = Driver::start().await;
            let mut client = driver.client().await;
            assert_eq!(client.create("pvc-a", 300 * MIB, mode).await.unwrap().volume_id, id);
            client.stage(&id, &staging, mode).await.unwrap();
            client.publish(&id, &staging, target, mode).await.unwrap();
            assert_eq!(mounts_at(target), 1);
            assert_eq!(client.expand(&id, 400 * MIB, mode).await.unwrap(), 400 * MIB);
            assert_eq!(std::fs::read_to_string(target.join("data")).unwrap(), "written while no driver runs");
        });
    }
}

#[test]
fn a_volume_is_not_removed_while_somebodys_snapshot_of_it_exists() {
    boot(async || {
        let driver = Driver::start().await;
        let mut client = driver.client().await;
        let id = client.create("pvc-a", 64 * MIB, Mode::Ext4).await.unwrap().volume_id;
        client.stage(&id, &folder("staging"), Mode::Ext4).await.unwrap();
        client.unstage(&id, &folder("staging")).await.unwrap();
        let lv = report("lvs", "lv_name", VG).remove(0);
        command("modprobe", &["dm-snapshot"]);
        command("lvcreate", &["-y", "-s", "-n", "theirs", "-L", "32M", &format!("{VG}/{lv}")]);
        let refused = client.delete(&id).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused}");
        assert!(refused.message().contains("snapshot"), "{refused}");
        assert_eq!(report("lvs", "lv_name", VG).len(), 2, "neither is removed");
        command("lvremove", &["-y", &format!("{VG}/theirs")]);
        client.delete(&id).await.unwrap();
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    });
}
