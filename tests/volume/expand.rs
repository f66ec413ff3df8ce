//! A volume becomes as large as asked: its LV, and the file system on it.

use std::fs::File;

use quarry::proto::csi::v1 as csi;
use quarry::proto::csi::v1::volume_capability::access_mode::Mode as AccessMode;
use tonic::Code;

use super::support::{boot, note_error, read, with_driver};
use crate::driver::{
    self, Driver, MIB, Mode, SIZE, VG, Volume, command, folder, make_group, refused, report, sh,
};

/// The size of the file system that is mounted at a volume's staging path, with what it needs itself.
fn file_system(volume: &Volume) -> u64 {
    // XFS leaves its log out.
    let log = if volume.mode == Mode::Xfs { 64 * MIB } else { 0 };
    nix::sys::statvfs::statvfs(&volume.staging).unwrap().blocks() * 4096 + log
}

/// Whether the file system has about that size.
fn is_about(volume: &Volume, size: u64) -> bool {
    let found = file_system(volume);
    let least = if volume.mode == Mode::Ext4 { size / 10 * 7 } else { size - 4096 };
    (least..=size).contains(&found)
}

fn seqno() -> Vec<String> {
    report("vgs", "vg_seqno", VG)
}

fn range(required: u64, limit: u64) -> csi::CapacityRange {
    csi::CapacityRange { required_bytes: required.cast_signed(), limit_bytes: limit.cast_signed() }
}

/// Makes a group in which 70 extents are free, none beside another, and all of them dirty.
fn shatter() {
    let extents = |what: &str| format!("lvcreate -y -an -Wn -Zn {what} {VG}");
    sh(&format!(
        "lvcreate -q -y -Wn -Zn -n dirt -l 100%FREE {VG} && tr '\\0' '\\377' < /dev/zero | dd of=/dev/{VG}/dirt bs=1M status=none || true; sync; lvremove -q -y {VG}/dirt"
    ));
    let fillers: Vec<String> = (0..140).map(|number| extents(&format!("-l 1 -n f{number}"))).collect();
    let holes: Vec<String> =
        (0..140).step_by(2).map(|number| format!("lvremove -y {VG}/f{number}")).collect();
    let script = [fillers, vec![extents("-l 100%FREE -n rest")], holes].concat().join("\n");
    std::fs::write("/script", script).unwrap();
    sh("lvm < /script > /dev/null 2>&1");
    assert_eq!(report("vgs", "vg_free_count", VG), ["70"]);
}

#[test]
fn a_raw_volume_grows_over_more_pieces_than_one_command_can_name() {
    lab::Machine::new().disk("1G").boot(|| {
        make_group(VG, &lab::disks());
        driver::run(async {
            let driver = Driver::start().await;
            let volume = Volume::in_use(&driver.client().await, "pvc-a", Mode::Block).await;
            shatter();
            let size = SIZE + 65 * 4 * MIB;
            assert_eq!(volume.expand(size).await.unwrap(), size);
            assert!(report("lvs", "seg_start", &volume.lv()).len() > 60);
            sh(&format!("cmp -n {size} {} /dev/zero", volume.target.display()));
            assert_eq!(report("lvs", "lv_name", VG).len(), 72, "nothing hidden is left");
        });
    });
}

#[test]
fn a_volume_that_is_large_enough_is_left_as_it_is() {
    with_driver(async |_driver, client| {
        for mode in Mode::ALL {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            let before = seqno();
            for wanted in [mode.size(), mode.size() / 2, 1] {
                assert_eq!(volume.expand(wanted).await.unwrap(), mode.size());
                let node = client.clone().node_expand(&volume.id, &volume.target, wanted).await;
                assert_eq!(node.unwrap(), mode.size());
            }
            assert_eq!(seqno(), before);
        }
    });
}

#[test]
fn an_lv_that_was_extended_by_hand_gets_its_file_system_grown() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            command("lvextend", &["-q", "-L", "+64M", &volume.lv()]);
            let before = seqno();
            assert!(is_about(&volume, mode.size()));
            assert_eq!(volume.grow_by(4).await.unwrap(), volume.size_and(16));
            assert!(is_about(&volume, volume.size_and(16)));
            assert_eq!(seqno(), before);

            command("lvextend", &["-q", "-L", "+64M", &volume.lv()]);
            volume.stage().await.unwrap();
            assert!(is_about(&volume, volume.size_and(32)), "a repeated stage grows it too");
        }
    });
}

#[test]
fn a_volume_that_is_staged_nowhere_is_grown_by_the_next_stage() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            volume.end().await;
            assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
            volume.stage().await.unwrap();
            assert!(is_about(&volume, volume.size_and(16)));
            volume.unstage().await.unwrap();

            command("lvchange", &["-an", &volume.lv()]);
            assert_eq!(volume.grow_by(32).await.unwrap(), volume.size_and(32));
            volume.stage().await.unwrap();
            assert!(is_about(&volume, volume.size_and(32)));
        }
    });
}

#[test]
fn a_volume_that_is_staged_for_reading_is_grown_by_the_next_stage_for_writing() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            volume.end().await;
            let reader = mode.capability_for(AccessMode::SingleNodeReaderOnly);
            client.clone().stage_as(&volume.id, &volume.staging, reader.clone()).await.unwrap();
            let publish =
                volume.publish_as(&volume.target, |request| request.volume_capability = Some(reader));
            publish.await.unwrap();
            assert!(std::fs::write(volume.target.join("file"), "x").is_err());
            assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
            assert!(is_about(&volume, mode.size()));
            volume.end().await;
            volume.stage().await.unwrap();
            assert!(is_about(&volume, volume.size_and(16)));
        }
    });
}

#[test]
fn a_published_volume_grows_wherever_it_can_be_written() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            let reader = &folder("readers").join(mode.word());
            volume.publish_as(reader, |request| request.readonly = true).await.unwrap();
            assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
            assert!(is_about(&volume, volume.size_and(16)));
            let node = client.clone().node_expand(&volume.id, reader, volume.size_and(32)).await;
            assert_eq!(node.unwrap(), volume.size_and(32));
            assert!(is_about(&volume, volume.size_and(32)));
        }
    });
}

#[test]
fn no_room_is_told_with_both_numbers_and_less_can_be_asked_for() {
    with_driver(async |_driver, client| {
        for (name, mode) in [("pvc-fs", Mode::Ext4), ("pvc-raw", Mode::Block)] {
            let volume = Volume::in_use(&client, name, mode).await;
            let before = seqno();
            let free: u64 = report("vgs", "vg_free", VG)[0].parse().unwrap();
            refused(volume.expand(8 << 30).await, Code::OutOfRange, "from 16 MiB to 8 GiB");
            refused(volume.expand(8 << 30).await, Code::OutOfRange, &format!("{} MiB are free", free / MIB));
            assert_eq!(seqno(), before);
            assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
        }
        command("lvcreate", &["-q", "-y", "-n", "theirs", "-l", "100%FREE", VG]);
        for (name, mode) in [("pvc-fs", Mode::Ext4), ("pvc-raw", Mode::Block)] {
            let volume = Volume::existing(&client, name, mode);
            assert_eq!(volume.expand(64 * MIB).await.unwrap(), 64 * MIB);
            refused(volume.expand(65 * MIB).await, Code::OutOfRange, "0 bytes are free");
        }
    });
}

#[test]
fn the_limit_is_judged_on_whole_extents() {
    with_driver(async |_driver, client| {
        for (name, mode) in [("pvc-fs", Mode::Ext4), ("pvc-raw", Mode::Block)] {
            let volume = Volume::in_use(&client, name, mode).await;
            let mut client = client.clone();
            let mut expand = async |required, limit| {
                let answer = client.expand_to(&volume.id, range(required, limit), mode).await?;
                Ok::<_, tonic::Status>(answer.capacity_bytes.cast_unsigned())
            };
            let before = seqno();
            refused(expand(SIZE + 1, SIZE + 2).await, Code::OutOfRange, "20 MiB");
            refused(expand(SIZE, SIZE - 1).await, Code::OutOfRange, "the size asked for (16 MiB)");
            refused(
                expand(0, SIZE - 1).await,
                Code::OutOfRange,
                "the volume has 16 MiB, which is above the limit",
            );
            assert_eq!(seqno(), before);
            assert_eq!(expand(SIZE + 1, 20 * MIB).await.unwrap(), 20 * MIB);
        }
    });
}

#[test]
fn a_volume_that_somebody_else_has_open_is_left_to_the_node() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            volume.end().await;
            let open = File::open(volume.device()).unwrap();
            let answer =
                client.clone().expand_to(&volume.id, range(volume.size_and(16), 0), mode).await.unwrap();
            assert!(answer.node_expansion_required);
            drop(open);
            volume.stage().await.unwrap();
            let node = client.clone().node_expand(&volume.id, &volume.staging, volume.size_and(16)).await;
            assert_eq!(node.unwrap(), volume.size_and(16));
            assert!(is_about(&volume, volume.size_and(16)));
        }
    });
}

#[test]
fn after_a_restart_a_published_volume_grows_though_its_nodes_are_gone() {
    with_driver(async |driver, client| {
        let mut volumes = Vec::new();
        for mode in Mode::ALL {
            volumes.push(Volume::in_use(&client, mode.word(), mode).await);
        }
        driver.stop();
        let nodes = volumes.iter().flat_map(Volume::nodes);
        nodes.for_each(|node| std::fs::remove_file(node).unwrap());
        let driver = Driver::start().await;
        let client = driver.client().await;
        for volume in volumes.iter().map(|volume| volume.with(&client)) {
            assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
            let node = client.clone().node_expand(&volume.id, &volume.target, volume.size_and(32)).await;
            assert_eq!(node.unwrap(), volume.size_and(32));
            assert!(volume.mode == Mode::Block || is_about(&volume, volume.size_and(32)));
        }
    });
}

#[test]
fn a_program_that_has_gone_is_named_and_the_repeat_finishes_what_it_was_needed_for() {
    with_driver(async |_driver, client| {
        for (mode, program) in [(Mode::Ext4, "resize2fs"), (Mode::Xfs, "xfs_growfs"), (Mode::Btrfs, "btrfs")]
        {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            let path = sh(&format!("command -v {program}")).trim().to_owned();
            sh(&format!("mv {path} /away"));
            for _ in 0..2 {
                refused(volume.grow_by(16).await, Code::Internal, &format!("{program} "));
            }
            assert!(is_about(&volume, mode.size()));
            sh(&format!("mv /away {path}"));
            assert_eq!(volume.grow_by(16).await.unwrap(), volume.size_and(16));
            assert!(is_about(&volume, volume.size_and(16)));
        }
    });
}

#[test]
fn an_ext4_that_has_noted_an_error_is_used_but_not_grown_until_it_was_checked() {
    with_driver(async |driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        std::fs::write(volume.target.join("marker"), "kept").unwrap();
        sh("sync");
        note_error(&volume);
        // It is mounted anew.
        volume.publish().await.unwrap();
        std::fs::write(volume.target.join("new"), "written").unwrap();
        let size = || report("lvs", "lv_size", &volume.lv());
        let (before, command) = (size(), "run e2fsck -f /dev/");
        refused(volume.grow_by(4).await, Code::FailedPrecondition, command);
        volume.end().await;
        refused(volume.grow_by(4).await, Code::FailedPrecondition, command);
        volume.start().await;
        assert_eq!(size(), before);
        assert_eq!(volume.expand(SIZE).await.unwrap(), SIZE, "nothing is to be grown");

        // One that was extended before it noted the error, or while it was not active.
        sh(&format!("lvextend -q -L +16M {}", volume.lv()));
        volume.stage().await.unwrap();
        refused(volume.expand(SIZE).await, Code::FailedPrecondition, command);
        volume.end().await;
        volume.start().await;
        assert!(driver.log().has(&["its file system stays smaller than its device", command]));
        assert_eq!(read(&volume.target.join("marker")), "kept");
        assert!(is_about(&volume, SIZE));
        volume.end().await;

        // What the message says to do: 1 tells that errors were corrected.
        sh(&format!("e2fsck -f -y {} || test $? = 1", volume.device().display()));
        assert_eq!(volume.grow_by(8).await.unwrap(), volume.size_and(8));
        volume.start().await;
        assert!(is_about(&volume, volume.size_and(8)));
        assert_eq!(read(&volume.target.join("marker")), "kept");
    });
}

#[test]
fn a_driver_that_lacks_a_program_names_it_and_does_not_start() {
    boot(async || {
        for (program, package) in [("xfs_growfs", "xfsprogs"), ("lvm", "lvm2")] {
            let path = sh(&format!("command -v {program}")).trim().to_owned();
            sh(&format!("mv {path} /away"));
            let driver = std::process::Command::new(env!("CARGO_BIN_EXE_quarry"))
                .args(["standalone", "--volume-group", VG])
                .output()
                .unwrap();
            sh(&format!("mv /away {path}"));
            let said = String::from_utf8(driver.stderr).unwrap();
            assert_eq!(driver.status.code(), Some(1), "{said}");
            assert!(said.contains(&format!("missing programs: {program} (package {package})")), "{said}");
        }
    });
}
