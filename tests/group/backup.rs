//! Backups of a group's metadata, which the driver writes onto the host after changes.

use std::path::{Path, PathBuf};

use tonic::Code;

use super::support::{boot, resting, start, works};
use crate::driver::{Mode, VG, Volume, command, refused, report, until};

/// Where the backups of [`VG`] are.
fn folder() -> PathBuf {
    Path::new("/var/lib/quarry/backup").join(report("vgs", "vg_uuid", VG).remove(0))
}

/// Waits until the newest backup is of the group as it is.
async fn is_backed_up() {
    let current = folder().join("current.vg");
    until("the metadata is backed up", async || {
        let text = std::fs::read_to_string(&current).unwrap_or_default();
        let seqno = text.lines().find_map(|line| line.trim().strip_prefix("seqno = "));
        seqno == report("vgs", "vg_seqno", VG).first().map(String::as_str)
    })
    .await;
}

fn files() -> usize {
    std::fs::read_dir(folder()).unwrap().count()
}

#[test]
fn changes_are_backed_up_soon_and_the_number_of_files_is_bounded() {
    boot(async || {
        let (driver, client) = start(&[]).await;
        for _ in 0..6 {
            let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
            is_backed_up().await;
            volume.start().await;
            is_backed_up().await;
            volume.end().await;
            volume.delete().await.unwrap();
            is_backed_up().await;
        }
        assert_eq!(files(), 11, "the newest, and ten of before");
        let _last = Volume::in_use(&client, "pvc-b", Mode::Ext4).await;
        driver.stop();
        is_backed_up().await;
        let (_driver, _) = start(&[]).await;
        assert_eq!(files(), 11, "a restart takes none away");
        let entries = std::fs::read_dir(folder().parent().unwrap()).unwrap().count();
        assert_eq!(entries, 2, "nothing lies beside the two groups' folders");
    });
}

#[test]
fn a_volume_that_was_removed_by_mistake_is_brought_back_from_the_backup() {
    boot(async || {
        let (_driver, client) = start(&[]).await;
        let volume = resting(&client, "pvc-a").await;
        is_backed_up().await;
        std::fs::copy(folder().join("current.vg"), "/backup.vg").unwrap();
        command("lvremove", &["-q", "-y", &volume.lv()]);
        refused(volume.stage().await, Code::NotFound, "does not exist");
        command("vgcfgrestore", &["-f", "/backup.vg", VG]);
        works(&volume).await;
        volume.delete().await.unwrap();
    });
}
