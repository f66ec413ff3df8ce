//! A group that lacks a disk: no change is made to it, and volumes that are whole are used all the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::Code;

use super::support::{OTHER, bring_back, hide, recovers, resting, start, takes_nothing, works};
use crate::driver::{self, Client, MIB, Mode, VG, Volume, command, make_group, refused, report, sh};

/// [`VG`] on the first and second disk, [`OTHER`] on the third.
fn boot(body: impl AsyncFnOnce()) {
    lab::Machine::new().disk("256M").disk("256M").disk("256M").boot(|| {
        make_groups();
        driver::run(body());
    });
}

fn make_groups() {
    make_group(VG, &lab::disks()[..2]);
    make_group(OTHER, &lab::disks()[2..]);
}

/// The disk that goes missing, and its identity as LVM has it.
fn disk() -> (PathBuf, String) {
    let disk = lab::disks().remove(1);
    let uuid = command("pvs", &["--noheadings", "-o", "pv_uuid", disk.to_str().unwrap()]).trim().to_owned();
    (disk, uuid)
}

/// Volumes on the first disk only, on both, and on the second only, none of them in use.
async fn spread(client: &Client) -> [Volume; 3] {
    let first = resting(client, "pvc-first").await;
    let both = resting(client, "pvc-both").await;
    command(
        "lvcreate",
        &["-q", "-y", "-n", "filler", "-l", "100%PVS", VG, lab::disks()[0].to_str().unwrap()],
    );
    both.expand(64 * MIB).await.unwrap();
    let second = resting(client, "pvc-second").await;
    sh(&format!("lvchange -an {VG}"));
    [first, both, second]
}

#[test]
fn volumes_that_are_whole_are_used_and_nothing_is_changed() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        let (disk, uuid) = disk();
        let fresh = Volume::create(&client, "pvc-fresh", Mode::Ext4).await;
        fresh.prepared().await;
        let [first, both, second] = spread(&client).await;
        let seqno = report("vgs", "vg_seqno", VG);
        hide(&disk);
        takes_nothing(&client, &format!("disks of it are missing: {uuid}")).await;
        assert!(driver.log().has(&["the volume group is unhealthy", VG, &uuid]));
        driver.stop();

        // It is the same for a driver that never saw the group whole.
        let (driver, client) = start(&[]).await;
        takes_nothing(&client, &uuid).await;
        let [first, both, second, fresh] =
            [&first, &both, &second, &fresh].map(|volume| volume.with(&client));
        works(&first).await;
        for volume in [&both, &second] {
            refused(volume.stage().await, Code::Unavailable, &uuid);
            assert!(!volume.is_active());
        }
        // Its first stage would have to be noted.
        refused(fresh.stage().await, Code::Unavailable, &uuid);
        for volume in [&first, &both, &second, &fresh] {
            refused(volume.expand(128 * MIB).await, Code::Unavailable, &uuid);
            refused(volume.delete().await, Code::Unavailable, &uuid);
        }
        refused(client.clone().delete(&format!("{}x", first.id)).await, Code::Unavailable, &uuid);
        assert_eq!(command("vgs", &["--noheadings", "-o", "vg_seqno", VG]).trim(), seqno[0]);

        bring_back(&disk);
        recovers(&client).await;
        assert!(driver.log().has(&["the volume group is healthy", VG]));
        for volume in [&first, &both, &second] {
            works(volume).await;
            volume.delete().await.unwrap();
        }
    });
}

#[test]
fn a_disk_that_was_missing_during_a_change_must_be_taken_back_by_hand() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let (disk, _) = disk();
        let [first, _, second] = spread(&client).await;
        hide(&disk);
        // LVM itself allows this, and writes down which disk it has not seen.
        command("lvremove", &["-q", "-y", &format!("{VG}/filler")]);
        bring_back(&disk);
        takes_nothing(&client, "vgextend --restoremissing brings it back").await;
        works(&first).await;
        refused(second.stage().await, Code::Unavailable, "vgextend --restoremissing");
        command("vgextend", &["-q", "--restoremissing", VG, disk.to_str().unwrap()]);
        recovers(&client).await;
        works(&second).await;
    });
}

#[test]
fn a_disk_that_fails_under_a_mounted_volume_lets_it_be_taken_out_of_use() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let (disk, uuid) = disk();
        let [_, _, second] = spread(&client).await;
        second.start().await;
        hide(&disk);
        for _ in 0..2 {
            refused(second.stage().await, Code::Unavailable, &uuid);
            refused(second.publish().await, Code::Unavailable, &uuid);
        }
        second.stats().await.unwrap();
        second.end().await;
        bring_back(&disk);
        recovers(&client).await;
        works(&second).await;
    });
}

#[test]
fn a_disk_that_is_pulled_out_is_noticed_without_a_call() {
    let machine = lab::Machine::new().disk("256M").disk("256M").disk("256M");
    let patience = Duration::from_secs(60);
    machine.boot_with(
        |guest| {
            guest.wait_for("pull", patience).unwrap();
            guest.remove_disk(Path::new("/dev/ubdb")).unwrap();
            guest.tell("pulled").unwrap();
        },
        || {
            make_groups();
            driver::run(async {
                let (driver, client) = start(&[]).await;
                let (_, uuid) = disk();
                let [first, _, second] = spread(&client).await;
                lab::tell("pull").unwrap();
                lab::wait_for("pulled", patience).unwrap();
                driver.log().soon(&["the volume group is unhealthy", VG, &uuid]).await;
                takes_nothing(&client, &uuid).await;
                works(&first).await;
                refused(second.stage().await, Code::Unavailable, &uuid);
            });
        },
    );
}
