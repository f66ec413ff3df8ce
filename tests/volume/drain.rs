//! Taking volumes out of use, also while much else is broken: a node must be drained all the same.

use std::fs::File;
use std::path::Path;

use quarry::proto::csi::v1::volume_usage::Unit;
use tonic::Code;

use super::support::{read, with_driver};
use crate::driver::{Client, Mode, VG, Volume, command, mounts_at, refused, report, sh, until};

#[test]
fn a_mount_in_use_stays_and_goes_when_it_is_free() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            let open = File::create(volume.target.join("open")).unwrap();
            refused(volume.unpublish().await, Code::Internal, "is in use and stays mounted");
            assert_eq!(mounts_at(&volume.target), 1);
            drop(open);
            volume.unpublish().await.unwrap();
            assert!(!volume.target.exists());

            let open = File::create(volume.staging.join("open")).unwrap();
            refused(volume.unstage().await, Code::Internal, "is in use and stays mounted");
            assert_eq!(mounts_at(&volume.staging), 1);
            drop(open);
            volume.unstage().await.unwrap();
            assert_eq!(mounts_at(&volume.staging), 0);
        }

        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        let open = File::open(&raw.target).unwrap();
        refused(raw.unpublish().await, Code::Internal, "is in use and stays mounted");
        drop(open);
        raw.unpublish().await.unwrap();
        assert!(!raw.target.exists());
    });
}

/// An lvm of the driver's that stands still in the middle of a change, with the group's lock held.
struct Stuck {
    pids: String,
}

impl Stuck {
    /// Stops the driver's lvm at once and for good, and gives it a change to make.
    async fn new(client: &Client) -> Self {
        let pids = sh("pgrep -x lvm | tr '\\n' ' '");
        sh(&format!("kill -STOP {pids}"));
        let mut client = client.clone();
        tokio::spawn(async move { client.create("pvc-never", 16 << 20, Mode::Block).await });
        Self { pids }
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        sh(&format!("kill -CONT {}", self.pids));
    }
}

#[test]
fn volumes_are_taken_out_of_use_while_lvm_does_not_answer() {
    with_driver(async |_driver, client| {
        let mut volumes = Vec::new();
        for mode in Mode::ALL {
            volumes.push(Volume::in_use(&client, mode.word(), mode).await);
        }
        let lock = File::create(format!("/run/lock/lvm/V_{VG}")).unwrap();
        lock.lock().unwrap();
        let stuck = Stuck::new(&client).await;
        for volume in &volumes {
            volume.stats().await.unwrap();
            volume.end().await;
            assert_eq!((mounts_at(&volume.target), mounts_at(&volume.staging)), (0, 0));
        }
        drop(stuck);
        drop(lock);
        until("the change is made at last", async || report("lvs", "lv_name", VG).len() == 5).await;
    });
}

#[test]
fn volumes_are_taken_out_of_use_after_their_lv_has_vanished() {
    with_driver(async |_driver, client| {
        command("vgcfgbackup", &["-f", "/before.vg", VG]);
        let mut volumes = Vec::new();
        for mode in Mode::ALL {
            volumes.push(Volume::in_use(&client, mode.word(), mode).await);
        }
        // LVM knows nothing of them any more, and their devices are there.
        command("vgcfgrestore", &["-y", "-f", "/before.vg", VG]);
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        for volume in &volumes {
            volume.stats().await.unwrap();
            volume.end().await;
            assert_eq!((mounts_at(&volume.target), mounts_at(&volume.staging)), (0, 0));
        }
    });
}

#[test]
fn volumes_are_taken_out_of_use_after_somebody_renamed_their_lv() {
    with_driver(async |_driver, client| {
        for (name, mode) in Mode::ALL.map(|mode| (mode.word(), mode)) {
            let volume = Volume::in_use(&client, name, mode).await;
            let other = Volume::in_use(&client, &format!("{name}-other"), mode).await;
            command("lvrename", &["-q", &volume.lv(), &format!("{VG}/{name}-mine")]);
            volume.stats().await.unwrap();
            refused(volume.publish().await, Code::NotFound, "does not exist");
            refused(client.clone().stats(&volume.id, &other.target).await, Code::NotFound, "is not at");
            volume.end().await;
            assert_eq!((mounts_at(&volume.target), mounts_at(&other.target)), (0, 1));
        }
    });
}

#[test]
fn a_raw_target_whose_device_is_gone_or_has_become_anothers_is_taken_away() {
    with_driver(async |_driver, client| {
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        // A bound node holds no device open, so that LVM removes it.
        command("lvremove", &["-y", "-q", &raw.lv()]);
        raw.unpublish().await.unwrap();
        assert!(!raw.target.exists());
        raw.unstage().await.unwrap();
        raw.delete().await.unwrap();
    });
}

#[test]
fn usage_is_told_of_what_is_at_the_path_and_of_nothing_else() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-fs", Mode::Ext4).await;
        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        std::fs::write(volume.target.join("file"), vec![1; 4 << 20]).unwrap();
        sh("sync");
        let usage = volume.stats().await.unwrap().usage;
        let [bytes, inodes] = usage.as_slice() else { panic!("{usage:?}") };
        assert!(bytes.total > 8 << 20 && bytes.used >= 4 << 20, "{usage:?}");
        assert!(bytes.used + bytes.available <= bytes.total && inodes.used > 0, "{usage:?}");
        for mode in [Mode::Xfs, Mode::Btrfs] {
            let usage = Volume::in_use(&client, mode.word(), mode).await.stats().await.unwrap().usage;
            assert_eq!(usage[0].unit(), Unit::Bytes);
            assert!(usage[0].total > 64 << 20 && usage[0].available > 32 << 20, "{usage:?}");
            // btrfs makes inodes as they are needed, so that it has no number of them.
            assert_eq!(
                usage.iter().any(|usage| usage.unit() == Unit::Inodes),
                mode == Mode::Xfs,
                "{usage:?}"
            );
        }
        let size = raw.stats().await.unwrap().usage;
        assert_eq!(size.iter().map(|usage| usage.total).collect::<Vec<_>>(), [16 << 20]);

        let mut client = client.clone();
        let mut stats = async |id: &str, path: &Path| client.stats(id, path).await;
        refused(stats(&volume.id, Path::new("/var/lib/kubelet/none")).await, Code::NotFound, "is not at");
        refused(stats(&volume.id, &raw.target).await, Code::NotFound, "is not at");
        refused(stats(&raw.id, &volume.target).await, Code::NotFound, "is not at");
        refused(stats(&volume.id, Path::new("/")).await, Code::NotFound, "volume_path");
        refused(stats("nonsense", &volume.target).await, Code::NotFound, "does not exist");
        let gone = format!("{}x", volume.id);
        refused(stats(&gone, &volume.target).await, Code::NotFound, "is not at");
        assert_eq!(read(&volume.target.join("file")).len(), 4 << 20);
    });
}
