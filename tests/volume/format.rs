//! A volume is formatted once, while it is new, and never after that.

use std::fs::File;

use tonic::Code;

use super::gpt;
use super::support::{hours_go_by, read, with_driver};
use crate::driver::{Client, Driver, Mode, SIZE, VG, Volume, command, mounts_at, refused, report, sh};

/// In which block of 4 KiB a file system has its superblock.
const fn superblock(mode: Mode) -> u64 {
    if matches!(mode, Mode::Btrfs) { 16 } else { 0 }
}

/// Makes the superblock of a file system unreadable, the way a disk or a killed check does, and keeps it.
fn lose_superblock(volume: &Volume) {
    let (device, block) = (volume.device().display().to_string(), superblock(volume.mode));
    sh(&format!(
        "dd if={device} of=/superblock bs=4096 skip={block} count=1 status=none; \
         dd if=/dev/zero of={device} bs=4096 seek={block} count=1 conv=fsync status=none"
    ));
}

fn bring_back_superblock(volume: &Volume) {
    let (device, block) = (volume.device().display().to_string(), superblock(volume.mode));
    sh(&format!("dd if=/superblock of={device} bs=4096 seek={block} conv=fsync status=none"));
}

/// Damages a file system behind its superblock: its UUID is still found, and a check finds it broken.
fn damage(volume: &Volume) {
    let (device, after) = (volume.device(), superblock(volume.mode) + 1);
    // btrfs has both copies of what it cannot do without between 20 and 60 MiB.
    let blocks = if volume.mode == Mode::Btrfs { 15_000 } else { 1500 };
    sh(&format!(
        "dd if=/dev/zero of={} bs=4096 seek={after} count={blocks} conv=fsync status=none",
        device.display()
    ));
    assert!(!is_sound(volume));
}

/// Whether a full check of a file system that is not mounted finds nothing.
fn is_sound(volume: &Volume) -> bool {
    let check: &[&str] = match volume.mode {
        Mode::Ext4 => &["e2fsck", "-fn"],
        Mode::Xfs => &["xfs_repair", "-n"],
        Mode::Btrfs => &["btrfs", "check", "--readonly"],
        Mode::Block => panic!("a raw volume has no file system"),
    };
    let ended = std::process::Command::new(check[0]).args(&check[1..]).arg(volume.device()).output();
    ended.unwrap().status.success()
}

/// A volume that was used and holds a file, unpublished and unstaged again.
async fn with_a_file(client: &Client, name: &str, mode: Mode) -> Volume {
    let volume = Volume::in_use(client, name, mode).await;
    std::fs::write(volume.target.join("marker"), "precious").unwrap();
    volume.end().await;
    volume
}

async fn holds_its_file(volume: &Volume) {
    volume.start().await;
    assert_eq!(read(&volume.target.join("marker")), "precious");
    volume.end().await;
}

#[test]
fn a_volume_that_is_not_blank_is_never_formatted_whatever_is_on_it() {
    for mode in Mode::FILE_SYSTEMS {
        with_driver(async |_driver, client| {
            let used = with_a_file(&client, "pvc-used", mode).await;
            let fresh = Volume::create(&client, "pvc-fresh", mode).await;
            fresh.prepared().await;
            for volume in [&used, &fresh] {
                lose_superblock(volume);
                let before = volume.content();
                for _ in 0..2 {
                    refused(volume.stage().await, Code::Internal, "must be repaired by hand");
                    assert_eq!(mounts_at(&volume.staging), 0);
                }
                assert_eq!(volume.content(), before);
                bring_back_superblock(volume);
            }
            holds_its_file(&used).await;
        });
    }
}

#[test]
fn what_a_user_put_on_a_raw_block_volume_stays() {
    with_driver(async |_driver, client| {
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        gpt::write(&raw.device());
        assert!(sh(&format!("blkid -p {}", raw.device().display())).contains("PTTYPE=\"gpt\""));
        let before = raw.content();
        raw.end().await;
        raw.start().await;
        raw.end().await;
        let mut as_file_system = raw.clone();
        as_file_system.mode = Mode::Ext4;
        refused(as_file_system.stage().await, Code::FailedPrecondition, "is made as raw block volume");
        assert_eq!(raw.content(), before);
    });
}

#[test]
fn a_volume_whose_tags_make_no_sense_is_left_alone() {
    with_driver(async |_driver, client| {
        for (name, from, to, reason) in [
            ("pvc-no-state", "q.s=u", "", "its tag q.s is missing"),
            ("pvc-no-version", "q.v=1", "", "its tag q.v is missing"),
            ("pvc-newer", "q.v=1", "q.v=2", "a newer release of Quarry"),
            ("pvc-odd-state", "q.s=u", "q.s=z", "makes no sense"),
            ("pvc-odd-mode", "q.m=ext4", "q.m=fat", "makes no sense"),
        ] {
            let volume = with_a_file(&client, name, Mode::Ext4).await;
            volume.retag(from, to);
            let before = volume.content();
            command("lvchange", &["-an", &volume.lv()]);
            refused(volume.stage().await, Code::FailedPrecondition, reason);
            refused(volume.publish().await, Code::FailedPrecondition, reason);
            refused(volume.expand(64 << 20).await, Code::FailedPrecondition, reason);
            refused(volume.delete().await, Code::FailedPrecondition, reason);
            let again = client.clone().create(name, SIZE, Mode::Ext4).await;
            refused(again, Code::AlreadyExists, reason);
            assert!(!volume.is_active(), "{name}");
            command("lvchange", &["-ay", &volume.lv()]);
            assert_eq!(volume.content(), before, "{name}");
            volume.retag(to, from);
            holds_its_file(&volume).await;
            volume.delete().await.unwrap();
        }
    });
}

#[test]
fn a_state_that_a_later_release_brings_is_refused() {
    with_driver(async |_driver, client| {
        let volume = with_a_file(&client, "pvc-a", Mode::Ext4).await;
        for (letter, word) in [("c", "copying"), ("x", "condemned")] {
            volume.retag("q.s=u", &format!("q.s={letter}"));
            let before = volume.content();
            refused(volume.stage().await, Code::FailedPrecondition, word);
            refused(volume.publish().await, Code::FailedPrecondition, word);
            refused(volume.expand(64 << 20).await, Code::FailedPrecondition, word);
            refused(volume.delete().await, Code::FailedPrecondition, word);
            assert_eq!(volume.content(), before);
            volume.retag(&format!("q.s={letter}"), "q.s=u");
        }
        holds_its_file(&volume).await;
    });
}

#[test]
fn an_old_backup_that_says_blank_does_not_cost_the_data() {
    for mode in Mode::FILE_SYSTEMS {
        with_driver(async |driver, client| {
            let volume = with_a_file(&client, "pvc-a", mode).await;
            driver.stop();
            // A backup from before the volume was prepared, restored over one that is full of data.
            volume.retag("q.s=u", "q.s=b");
            command("vgcfgbackup", &["-f", "/old.vg", VG]);
            volume.retag("q.s=b", "q.s=u");
            command("vgcfgrestore", &["-y", "-f", "/old.vg", VG]);
            assert_eq!(volume.state(), "b");

            let driver = Driver::start().await;
            let client = driver.client().await;
            let volume = volume.with(&client);
            holds_its_file(&volume).await;
            assert_eq!(volume.state(), "u");

            // Whatever the age of the volume.
            volume.retag("q.s=u", "q.s=b");
            hours_go_by(30);
            holds_its_file(&volume).await;
            assert_eq!(volume.state(), "u");
        });
    }
}

#[test]
fn an_old_backup_that_says_blank_has_no_raw_volume_zeroed_that_somebody_uses() {
    with_driver(async |driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Block).await;
        sh(&format!(
            "dd if=/dev/urandom of={} bs=1M count=16 conv=fsync status=none",
            volume.target.display()
        ));
        let before = volume.content();
        driver.stop();
        volume.retag("q.s=u", "q.s=b");

        let driver = Driver::start().await;
        let volume = volume.with(&driver.client().await);
        let by = format!("is in use: it is mounted at {}", volume.target.display());
        refused(volume.stage().await, Code::FailedPrecondition, &by);
        refused(volume.expand(64 << 20).await, Code::FailedPrecondition, &by);
        assert!(driver.log().has(&["the volume could not be prepared", &by]));
        assert_eq!((volume.content(), volume.state().as_str()), (before.clone(), "b"));

        // Nothing shows it any more, and somebody still has it open.
        let open = File::open(volume.device()).unwrap();
        volume.end().await;
        refused(volume.stage().await, Code::FailedPrecondition, "open in some process");
        assert_eq!((volume.content(), volume.state().as_str()), (before, "b"));
        drop(open);
        volume.start().await;
    });
}

#[test]
fn half_a_file_system_of_ours_is_made_again_while_the_volume_is_new() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::create(&client, mode.word(), mode).await;
            volume.prepared().await;
            damage(&volume);
            volume.retag("q.s=f", "q.s=b");
            volume.start().await;
            volume.end().await;
            assert!(is_sound(&volume));
        }
    });
}

#[test]
fn after_an_hour_a_blank_volume_with_something_on_it_is_left_to_a_person() {
    for mode in Mode::FILE_SYSTEMS {
        with_driver(async |driver, client| {
            let volume = Volume::create(&client, "pvc-a", mode).await;
            volume.prepared().await;
            damage(&volume);
            volume.retag("q.s=f", "q.s=b");
            let before = volume.content();
            hours_go_by(2);
            refused(volume.stage().await, Code::FailedPrecondition, "delete the claim");
            driver.stop();

            let driver = Driver::start().await;
            let client = driver.client().await;
            let volume = volume.with(&client);
            refused(volume.stage().await, Code::FailedPrecondition, "delete the claim");
            assert_eq!((volume.content(), volume.state().as_str()), (before, "b"));
            volume.delete().await.unwrap();
        });
    }
}

/// Makes three volumes look as if their preparation had never come to its end: one that holds nothing,
/// one with bytes that nobody knows, and one with half a file system. The last two might be data.
async fn never_prepared(client: &Client) -> [Volume; 3] {
    let volumes = [
        Volume::create(client, "pvc-empty", Mode::Ext4).await,
        Volume::create(client, "pvc-raw", Mode::Block).await,
        Volume::create(client, "pvc-broken", Mode::Ext4).await,
    ];
    for volume in &volumes {
        volume.prepared().await;
        volume.retag("q.s=f", "q.s=b");
    }
    let [empty, raw, broken] = &volumes;
    for (volume, source) in [(empty, "zero"), (raw, "urandom")] {
        let device = volume.device();
        sh(&format!("dd if=/dev/{source} of={} bs=1M count=16 conv=fsync status=none", device.display()));
    }
    damage(broken);
    volumes
}

#[test]
fn after_a_day_a_blank_volume_is_never_written_to_and_its_claim_can_be_deleted() {
    with_driver(async |driver, client| {
        let old = never_prepared(&client).await;
        driver.stop();
        let before = old.each_ref().map(Volume::content);
        old.iter().for_each(|volume| drop(command("lvchange", &["-an", &volume.lv()])));
        hours_go_by(25);

        let driver = Driver::start().await;
        let young = Volume::create(&driver.client().await, "pvc-young", Mode::Ext4).await;
        young.prepared().await;
        driver.stop();
        young.retag("q.s=f", "q.s=b");
        let driver = Driver::start().await;
        young.prepared().await;
        assert!(!old.iter().any(Volume::is_active), "only the young one is taken up again");

        let client = driver.client().await;
        for (volume, before) in old.iter().zip(&before) {
            let volume = volume.with(&client);
            refused(volume.stage().await, Code::FailedPrecondition, "delete the claim");
            refused(volume.expand(64 << 20).await, Code::FailedPrecondition, "delete the claim");
            assert_eq!((&volume.content(), volume.state().as_str()), (before, "b"));
            volume.delete().await.unwrap();
        }
        assert_eq!(report("lvs", "lv_name", VG).len(), 1);
    });
}

/// The table of a volume's device, as long as nothing is wrong with it.
const TABLE: &str = "/table";

/// From now on some sectors of a volume's disk can be neither read nor written.
fn fail_sectors(volume: &Volume, from: u64, count: u64) {
    let table = sh(&format!("dmsetup table {} | tee {TABLE}", volume.dm_name()));
    let ["0", sectors, "linear", disk, start] = table.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{table}")
    };
    let (sectors, start): (u64, u64) = (sectors.parse().unwrap(), start.parse().unwrap());
    let linear = |from: u64, to: u64| format!("{from} {} linear {disk} {}\n", to - from, start + from);
    let (before, after) = (linear(0, from), linear(from + count, sectors));
    let parts =
        [(from > 0, before), (true, format!("{from} {count} error\n")), (from + count < sectors, after)];
    let table: String = parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, line)| line).collect();
    std::fs::write("/failing-table", table).unwrap();
    load(volume, "/failing-table");
}

fn load(volume: &Volume, table: &str) {
    let name = volume.dm_name();
    sh(&format!("dmsetup load {name} < {table}; dmsetup suspend {name}; dmsetup resume {name}"));
}

#[test]
fn a_blank_volume_that_cannot_be_read_is_left_alone_until_it_can() {
    with_driver(async |_driver, client| {
        for mode in Mode::ALL {
            let volume = Volume::create(&client, mode.word(), mode).await;
            volume.prepared().await;
            // Nothing is recognised on it, as where its preparation has not begun.
            lose_superblock(&volume);
            volume.retag("q.s=f", "q.s=b");
            let (before, sectors) = (volume.content(), mode.size() / 512);
            for (from, count) in [(2040, 8), (sectors - 8, 8), (0, sectors)] {
                fail_sectors(&volume, from, count);
                refused(volume.stage().await, Code::Internal, "cannot be probed");
                load(&volume, TABLE);
                assert_eq!((&volume.content(), volume.state().as_str()), (&before, "b"), "{mode:?} {from}");
            }
            volume.start().await;
            volume.end().await;
        }
    });
}

/// Programs that are called blkid and answer as Debian's does not.
const OTHER_BLKIDS: [&str; 3] =
    ["echo '/dev/vg0/pvc: UUID=\"7\" TYPE=\"ext4\"'", "echo 'TYPE=ext4'; exit 2", "exit 0"];

#[test]
fn another_blkid_changes_nothing_for_used_volumes_and_has_none_formatted() {
    with_driver(async |_driver, client| {
        let used = with_a_file(&client, "pvc-used", Mode::Ext4).await;
        let blank = Volume::create(&client, "pvc-blank", Mode::Ext4).await;
        blank.prepared().await;
        blank.retag("q.s=f", "q.s=b");
        let before = blank.content();
        sh("mv /usr/sbin/blkid /usr/sbin/blkid.own");
        for (extents, answer) in (1..).zip(OTHER_BLKIDS) {
            std::fs::write("/usr/sbin/blkid", format!("#!/bin/sh\n{answer}\n")).unwrap();
            sh("chmod +x /usr/sbin/blkid");
            used.start().await;
            assert_eq!(read(&used.target.join("marker")), "precious");
            assert_eq!(used.grow_by(extents).await.unwrap(), used.size_and(extents));
            let again = client.clone().node_expand(&used.id, &used.target, used.size_and(extents)).await;
            assert_eq!(again.unwrap(), used.size_and(extents));
            used.end().await;
            refused(blank.stage().await, Code::Internal, "cannot be probed");
            assert_eq!((&blank.content(), blank.state().as_str()), (&before, "b"), "{answer}");
        }
        sh("mv /usr/sbin/blkid.own /usr/sbin/blkid");
        blank.start().await;
    });
}

#[test]
fn a_mkfs_that_fails_is_told_in_its_own_words_and_leaves_nothing_that_could_be_used() {
    with_driver(async |_driver, client| {
        let programs = [(Mode::Ext4, "mke2fs"), (Mode::Xfs, "mkfs.xfs"), (Mode::Btrfs, "mkfs.btrfs")];
        for (mode, program) in programs {
            let path = format!("/usr/sbin/{program}");
            sh(&format!("mv {path} {path}.own"));
            std::fs::write(&path, "#!/bin/sh\necho 'no luck today' >&2\nexit 1\n").unwrap();
            sh(&format!("chmod +x {path}"));
            let volume = Volume::create(&client, mode.word(), mode).await;
            for _ in 0..2 {
                refused(volume.stage().await, Code::Internal, "no luck today");
                refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
                assert_eq!((volume.state().as_str(), mounts_at(&volume.staging)), ("b", 0));
            }
            sh(&format!("mv {path}.own {path}"));
            volume.start().await;
        }
    });
}
