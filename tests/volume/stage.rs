//! From an LV that exists to a mounted volume, whatever state the node is in.

use std::path::Path;

use quarry::proto::csi::v1::volume_capability::access_mode::Mode as AccessMode;
use tonic::Code;

use super::support::{boot, dm, read, with_driver};
use crate::driver::{
    self, Driver, Mode, VG, Volume, command, folder, make_group, mounts_at, refused, report, sh,
};

/// Leaves something in a published volume that is found again later.
fn mark(volume: &Volume) {
    match volume.mode {
        Mode::Block => sh_mark(volume, "of"),
        _ => std::fs::write(volume.target.join("marker"), &volume.id).unwrap(),
    }
}

fn sh_mark(volume: &Volume, way: &str) {
    let target = volume.target.display();
    std::fs::write("/marker", &volume.id).unwrap();
    match way {
        "of" => drop(sh(&format!("dd if=/marker of={target} conv=fsync,sync status=none"))),
        _ => drop(sh(&format!("cmp -n {} {target} /marker", volume.id.len()))),
    }
}

fn is_marked(volume: &Volume) {
    match volume.mode {
        Mode::Block => sh_mark(volume, "from"),
        _ => assert_eq!(read(&volume.target.join("marker")), volume.id),
    }
}

#[test]
fn an_inactive_volume_is_activated_and_no_other() {
    with_driver(async |_driver, client| {
        let other = Volume::create(&client, "pvc-other", Mode::Ext4).await;
        other.prepared().await;
        command("lvchange", &["-an", &other.lv()]);
        for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
            let volume = Volume::in_use(&client, name, mode).await;
            mark(&volume);
            volume.end().await;
            command("lvchange", &["-an", &volume.lv()]);
            refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
            assert!(!volume.is_active());
            volume.start().await;
            is_marked(&volume);
        }
        assert!(!other.is_active());
    });
}

#[test]
fn a_volume_that_is_waited_for_changes_its_state_once() {
    with_driver(async |driver, mut client| {
        let seqno = || report("vgs", "vg_seqno", VG).remove(0).parse::<u64>().unwrap();
        let before = seqno();
        client.create("pvc-large", 2 << 30, Mode::Block).await.unwrap();
        let volume = Volume::existing(&client, "pvc-large", Mode::Block);
        driver.log().soon(&["zeroing"]).await;
        volume.start().await;
        assert_eq!(seqno(), before + 2, "it was made, and then called used");
        assert_eq!(report("lvs", "lv_tags", VG).concat().matches("q.s=u").count(), 1);
    });
}

#[test]
fn after_a_reboot_volumes_are_staged_and_published_with_what_they_held() {
    let machine = lab::Machine::new().disk("2G");
    machine.boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let driver = Driver::start().await;
            for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
                mark(&Volume::in_use(&driver.client().await, name, mode).await);
            }
            sh("sync");
        });
    });
    machine.boot(|| {
        driver::run(async {
            let driver = Driver::start().await;
            for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
                let volume = Volume::existing(&driver.client().await, name, mode);
                assert!(!volume.is_active());
                volume.stage().await.unwrap();
                // For one pod alone, and another one than before: nobody remembers that one.
                let other = folder("pod-2").join(name);
                let single = mode.capability_for(AccessMode::SingleNodeSingleWriter);
                let publish = volume.publish_as(&other, |request| request.volume_capability = Some(single));
                publish.await.unwrap();
                driver.client().await.unpublish(&volume.id, &other).await.unwrap();
                volume.publish().await.unwrap();
                is_marked(&volume);
            }
        });
    });
}

#[test]
fn disks_that_move_to_another_node_take_their_volumes_along() {
    boot(async || {
        let node = async |name: &str| Driver::start_with(&["--volume-group", VG, "--node-name", name]).await;
        let here = node("n1").await;
        let mut made = Vec::new();
        for mode in Mode::ALL {
            let volume = Volume::in_use(&here.client().await, mode.word(), mode).await;
            mark(&volume);
            volume.end().await;
            let again = here.client().await.create_in(VG, mode.word(), mode.size(), mode).await.unwrap();
            made.push((volume, again));
        }
        here.stop();
        sh(&format!("vgchange -q -an {VG}; vgexport -q {VG}; vgimport -q {VG}"));
        let there = node("n2").await;
        for (volume, before) in made {
            let mode = volume.mode;
            let again = there.client().await.create_in(VG, mode.word(), mode.size(), mode).await.unwrap();
            assert_eq!(again, before, "the same volume in the same place");
            let volume = volume.with(&there.client().await);
            volume.start().await;
            is_marked(&volume);
        }
    });
}

#[test]
fn a_suspended_volume_is_resumed_by_every_call() {
    with_driver(async |_driver, client| {
        for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
            let volume = Volume::create(&client, name, mode).await;
            volume.prepared().await;
            let suspend = || dm("suspend", &volume);
            suspend();
            volume.stage().await.unwrap();
            suspend();
            volume.stage().await.unwrap();
            suspend();
            volume.publish().await.unwrap();
            suspend();
            volume.publish().await.unwrap();
            mark(&volume);
            suspend();
            volume.stats().await.unwrap();
            suspend();
            volume.grow_by(16).await.unwrap();
            is_marked(&volume);
            suspend();
            volume.unpublish().await.unwrap();
            suspend();
            volume.unstage().await.unwrap();
            suspend();
            volume.delete().await.unwrap();
        }
    });
}

#[test]
fn a_node_that_leads_to_another_volume_is_not_followed() {
    with_driver(async |_driver, client| {
        for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
            let volume = Volume::in_use(&client, name, mode).await;
            let other = Volume::in_use(&client, &format!("{name}-other"), mode).await;
            for volume in [&volume, &other] {
                mark(volume);
                volume.end().await;
            }
            for (usual, others) in volume.nodes().iter().zip(other.nodes()) {
                std::fs::remove_file(usual).unwrap();
                std::os::unix::fs::symlink(others, usual).unwrap();
            }
            volume.start().await;
            is_marked(&volume);
            volume.end().await;
            volume.nodes().iter().for_each(|node| std::fs::remove_file(node).unwrap());
            volume.start().await;
            is_marked(&volume);
        }
    });
}

#[test]
fn a_staging_path_that_is_taken_is_refused_and_left_as_it_is() {
    with_driver(async |_driver, client| {
        let mut volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
        let other = Volume::in_use(&client, "pvc-other", Mode::Ext4).await;
        std::fs::write(other.target.join("marker"), "other").unwrap();

        volume.staging = other.staging.clone();
        refused(volume.stage().await, Code::Internal, "is taken by something that is not volume");
        refused(volume.publish().await, Code::FailedPrecondition, "is not staged");
        refused(volume.unstage().await, Code::Internal, "is taken by something that is not volume");
        assert_eq!(read(&other.staging.join("marker")), "other");

        volume.staging = folder("foreign");
        sh("mount -t tmpfs foreign /var/lib/kubelet/foreign; echo foreign > /var/lib/kubelet/foreign/marker");
        refused(volume.stage().await, Code::Internal, "is taken by something that is not volume");
        refused(volume.unstage().await, Code::Internal, "is taken by something that is not volume");
        assert_eq!(read(&volume.staging.join("marker")), "foreign\n");

        volume.staging = "/var/lib/kubelet/absent".into();
        refused(volume.stage().await, Code::Internal, "/var/lib/kubelet/absent");
        assert_eq!(mounts_at(&other.staging), 1);
    });
}

#[test]
fn a_volume_that_is_staged_with_other_rights_is_not_staged_again() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::create(&client, mode.word(), mode).await;
            let reader = mode.capability_for(AccessMode::SingleNodeReaderOnly);
            let stage_reader =
                async || client.clone().stage_as(&volume.id, &volume.staging, reader.clone()).await;
            volume.stage().await.unwrap();
            refused(
                stage_reader().await,
                Code::AlreadyExists,
                "it is writable there, and read-only is asked for",
            );
            volume.unstage().await.unwrap();
            stage_reader().await.unwrap();
            stage_reader().await.unwrap();
            refused(volume.stage().await, Code::AlreadyExists, "it is read-only there");
        }
    });
}

/// The kubelet never unstages what was never staged.
#[test]
fn a_stage_that_fails_after_its_mount_leaves_none_and_takes_none_of_an_earlier_one_away() {
    with_driver(async |_driver, client| {
        for (mode, program) in [(Mode::Ext4, "resize2fs"), (Mode::Xfs, "xfs_growfs"), (Mode::Btrfs, "btrfs")]
        {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            mark(&volume);
            volume.end().await;
            volume.grow_by(16).await.unwrap();
            let path = sh(&format!("command -v {program}")).trim().to_owned();
            sh(&format!("mv {path} /away"));
            for _ in 0..2 {
                refused(volume.stage().await, Code::Internal, &format!("{program} "));
                assert_eq!(mounts_at(&volume.staging), 0);
            }
            sh(&format!("mv /away {path}"));
            volume.start().await;
            is_marked(&volume);

            command("lvextend", &["-q", "-L", "+64M", &volume.lv()]);
            sh(&format!("mv {path} /away"));
            refused(volume.stage().await, Code::Internal, &format!("{program} "));
            assert_eq!((mounts_at(&volume.staging), mounts_at(&volume.target)), (1, 1));
            is_marked(&volume);
            sh(&format!("mv /away {path}"));
            volume.stage().await.unwrap();
        }
    });
}

#[test]
fn a_volume_that_does_not_exist_is_not_made_by_staging() {
    boot(async || {
        let driver = Driver::start().await;
        let volume = Volume::existing(&driver.client().await, "pvc-a", Mode::Ext4);
        refused(volume.stage().await, Code::NotFound, "does not exist");
        refused(volume.publish().await, Code::NotFound, "does not exist");
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        let unknown = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4/pvc-1";
        let mut client = driver.client().await;
        refused(
            client.stage(unknown, Path::new("/var/lib"), Mode::Ext4).await,
            Code::Unavailable,
            "not on this machine",
        );
        for bad in ["../x", "vg/../../etc", "-y", "vg/lv;rm", &"x".repeat(4096)] {
            refused(
                client.stage(bad, Path::new("/var/lib"), Mode::Ext4).await,
                Code::NotFound,
                "does not exist",
            );
            client.delete(bad).await.unwrap();
        }
    });
}
