//! A volume is removed when nobody uses it, and only a volume of ours.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use tonic::Code;

use super::support::with_driver;
use crate::driver::{Mode, VG, Volume, command, refused, report, sh};

/// Demands that a volume cannot be deleted for that reason, and can be as soon as it is `freed`.
async fn deleted_when(volume: &Volume, reason: &str, freed: impl AsyncFnOnce()) {
    let seqno = report("vgs", "vg_seqno", VG);
    refused(volume.delete().await, Code::FailedPrecondition, reason);
    assert_eq!(report("vgs", "vg_seqno", VG), seqno, "{reason}: nothing was begun");
    freed().await;
    volume.delete().await.unwrap();
}

/// Somebody's snapshot of a volume.
fn snapshot(volume: &Volume) {
    sh("modprobe dm-snapshot");
    command("lvcreate", &["-q", "-y", "-s", "-n", "theirs", "-L", "16M", &volume.lv()]);
}

/// A process that keeps all mounts of this moment in a mount namespace of its own, as containers do.
fn in_another_namespace() -> Child {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 1000"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    child
}

#[test]
fn a_mounted_volume_is_not_deleted() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-fs", Mode::Ext4).await;
        refused(volume.delete().await, Code::FailedPrecondition, "is mounted at");
        volume.unpublish().await.unwrap();
        let staging = volume.staging.to_str().unwrap();
        deleted_when(&volume, staging, async || volume.unstage().await.unwrap()).await;

        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        let target = raw.target.to_str().unwrap();
        deleted_when(&raw, target, async || raw.unpublish().await.unwrap()).await;
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
    });
}

#[test]
fn a_volume_under_another_device_or_open_in_a_process_is_not_deleted() {
    with_driver(async |_driver, client| {
        let volume = Volume::create(&client, "pvc-under", Mode::Block).await;
        volume.prepared().await;
        sh(&format!("dmsetup create top --table '0 8192 linear {} 0'", volume.device().display()));
        deleted_when(&volume, "lie on it", async || drop(sh("dmsetup remove top"))).await;

        let volume = Volume::create(&client, "pvc-loop", Mode::Block).await;
        volume.prepared().await;
        sh(&format!("modprobe loop; losetup /dev/loop0 {}", volume.device().display()));
        deleted_when(&volume, "is open in some process", async || drop(sh("losetup -d /dev/loop0"))).await;

        let volume = Volume::in_use(&client, "pvc-leaked", Mode::Ext4).await;
        let mut elsewhere = in_another_namespace();
        volume.end().await;
        let ended = async || {
            elsewhere.kill().unwrap();
            elsewhere.wait().unwrap();
        };
        deleted_when(&volume, "is open in some process", ended).await;

        let volume = Volume::create(&client, "pvc-open", Mode::Block).await;
        volume.prepared().await;
        let open = File::open(volume.device()).unwrap();
        deleted_when(&volume, "is open in some process", async || drop(open)).await;
    });
}

/// LVM refuses while the device is open, and is asked again when it is closed; what came meanwhile stays.
#[test]
fn a_snapshot_that_is_made_while_a_deletion_waits_for_the_device_is_not_removed() {
    with_driver(async |driver, client| {
        let volume = Volume::create(&client, "pvc-a", Mode::Block).await;
        volume.prepared().await;
        let open = File::open(volume.device()).unwrap();
        let deletion = tokio::spawn({
            let volume = volume.clone();
            async move { volume.delete().await }
        });
        driver.log().soon(&["running", "lvremove"]).await;
        snapshot(&volume);
        drop(open);
        deletion.await.unwrap().expect_err("the volume is the origin of a snapshot");
        assert_eq!(report("lvs", "lv_name", VG).len(), 2);
        sh(&format!("lvremove -q -y {VG}/theirs"));
        volume.delete().await.unwrap();
    });
}

#[test]
fn a_volume_with_a_snapshot_is_not_deleted_nor_is_the_snapshot() {
    with_driver(async |_driver, client| {
        let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
        volume.prepared().await;
        snapshot(&volume);
        let removed = format!("{VG}/theirs");
        deleted_when(&volume, "an LVM snapshot of it exists", async || {
            drop(command("lvremove", &["-q", "-y", &removed]))
        })
        .await;
    });
}

#[test]
fn what_is_not_there_is_deleted_already() {
    with_driver(async |_driver, client| {
        let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
        let mut client = client.clone();
        for gone in [&format!("{}x", volume.id), "nonsense", "../x", "-y", "vg0/lv;rm", &"x".repeat(4096)] {
            client.delete(gone).await.unwrap();
        }
        let elsewhere = "Zvlifi-Ep3t-e0Ng-U42h-o0ye-KHu1-nl7Ns4/pvc-1";
        refused(client.delete(elsewhere).await, Code::Unavailable, "is not on this machine now");
        refused(client.delete("").await, Code::InvalidArgument, "volume_id");
        assert_eq!(report("lvs", "lv_name", VG).len(), 1);
    });
}

#[test]
fn a_volume_that_an_administrator_renamed_or_took_over_stays() {
    with_driver(async |_driver, client| {
        let renamed = Volume::create(&client, "pvc-renamed", Mode::Ext4).await;
        renamed.prepared().await;
        command("lvrename", &["-q", &renamed.lv(), &format!("{VG}/mine")]);
        renamed.delete().await.unwrap();

        let untagged = Volume::create(&client, "pvc-untagged", Mode::Ext4).await;
        untagged.prepared().await;
        for tag in report("lvs", "lv_tags", &untagged.lv())[0].split(',') {
            untagged.retag(tag, "");
        }
        refused(untagged.delete().await, Code::FailedPrecondition, "was not made by Quarry");
        assert_eq!(report("lvs", "lv_name", VG).len(), 2);
    });
}

#[test]
fn deletes_of_one_volume_at_once_remove_it_once() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        volume.end().await;
        let seqno: u64 = report("vgs", "vg_seqno", VG)[0].parse().unwrap();
        let deletes: Vec<_> = (0..10)
            .map(|_| {
                let volume = volume.clone();
                tokio::spawn(async move { volume.delete().await })
            })
            .collect();
        let mut done = 0;
        for delete in deletes {
            match delete.await.unwrap() {
                Ok(()) => done += 1,
                Err(status) => assert_eq!(status.code(), Code::Aborted, "{status}"),
            }
        }
        assert!(done > 0);
        assert_eq!(report("vgs", "vg_seqno", VG), [(seqno + 1).to_string()]);
        volume.delete().await.unwrap();
    });
}
