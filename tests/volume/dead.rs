//! File systems that are mounted and do not work: ours are mounted anew, those of others not touched.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use tonic::Code;

use super::support::{note_error, read, with_driver};
use crate::driver::{Mode, Volume, folder, mounts_at, refused, sh};

/// Shuts a file system down: it stays mounted, and takes nothing any more.
fn shut_down(volume: &Volume) {
    sh(&format!("xfs_io -x -c shutdown {}", volume.staging.display()));
}

fn works(volume: &Volume) {
    assert_eq!(read(&volume.target.join("marker")), "kept");
    std::fs::write(volume.target.join("new"), "written").unwrap();
    assert_eq!((mounts_at(&volume.staging), mounts_at(&volume.target)), (1, 1));
}

#[test]
fn a_dead_file_system_that_nobody_uses_is_mounted_anew() {
    with_driver(async |_driver, client| {
        for mode in [Mode::Ext4, Mode::Xfs] {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            sh("sync");
            for repeat in ["publish", "stage and publish", "stage after its pod has gone"] {
                shut_down(&volume);
                assert!(std::fs::write(volume.target.join("new"), "x").is_err(), "{repeat}");
                match repeat {
                    "publish" => volume.publish().await.unwrap(),
                    "stage and publish" => {
                        refused(volume.stage().await, Code::Internal, volume.target.to_str().unwrap());
                        volume.publish().await.unwrap();
                    }
                    _ => {
                        volume.unpublish().await.unwrap();
                        volume.start().await;
                    }
                }
                works(&volume);
            }
        }
    });
}

#[test]
fn a_dead_file_system_that_is_used_is_an_error_until_it_is_free() {
    with_driver(async |driver, client| {
        for mode in [Mode::Ext4, Mode::Xfs] {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            let second = Path::new("/var/lib/kubelet/pod-2");
            volume.publish_at(second).await.unwrap();
            let open = File::open(volume.target.join("marker")).unwrap();
            shut_down(&volume);
            refused(volume.stage().await, Code::Internal, "does not work");
            refused(volume.publish().await, Code::Internal, second.to_str().unwrap());
            refused(volume.publish_at(second).await, Code::Internal, volume.target.to_str().unwrap());
            client.clone().unpublish(&volume.id, second).await.unwrap();
            refused(volume.publish().await, Code::Internal, "once nobody uses it any more");
            assert!(driver.log().has(&["a mounted file system is dead", &volume.id]));
            drop(open);
            volume.publish().await.unwrap();
            assert!(mounts_at(&volume.target) == 1);
        }
    });
}

#[test]
fn an_error_in_the_journal_is_seen_too() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Ext4).await;
        std::fs::write(volume.target.join("marker"), "kept").unwrap();
        sh("sync");
        note_error(&volume);
        assert!(std::fs::write(volume.target.join("new"), "x").is_err());
        volume.publish().await.unwrap();
        works(&volume);
    });
}

#[test]
fn a_root_folder_that_nobody_may_change_is_no_sign_of_death_and_hides_none() {
    with_driver(async |driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            let change = |how: &str| drop(sh(&format!("chattr {how} {}; sync", volume.target.display())));
            change("+i");
            assert!(std::fs::write(volume.target.join("new"), "x").is_err());
            let second = &folder("pod-2").join(mode.word());
            volume.start().await;
            volume.publish_at(second).await.unwrap();
            volume.grow_by(4).await.unwrap();
            client.clone().unpublish(&volume.id, second).await.unwrap();
            assert!(!driver.log().has(&["a mounted file system is dead", &volume.id]));
            // Shutting down is what these two know.
            if mode != Mode::Btrfs {
                shut_down(&volume);
                volume.publish().await.unwrap();
                assert!(driver.log().has(&["a mounted file system is dead", &volume.id]));
            }
            change("-i");
            works(&volume);
        }
    });
}

/// The kernel has made it read-only, and a flush of its root folder is answered as ever.
#[test]
fn a_btrfs_that_gave_up_is_dead_whichever_folder_was_written_to() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Btrfs).await;
        let inner = volume.target.join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(volume.target.join("marker"), "kept").unwrap();
        sh("sync");
        volume.gives_up(&inner);
        volume.fail(false);
        let second = folder("pod-2").join("volume");
        let why = "the kernel has made the file system read-only";
        refused(volume.publish_at(&second).await, Code::Internal, why);
        refused(volume.grow_by(4).await, Code::Internal, why);
        volume.publish().await.unwrap();
        works(&volume);
        assert_eq!(volume.grow_by(4).await.unwrap(), volume.size_and(4));
    });
}

#[test]
fn a_file_system_that_gave_up_when_its_disk_failed_is_mounted_anew_when_the_disk_is_back() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            sh("sync");
            volume.gives_up(&volume.target);
            refused(volume.publish().await, Code::Internal, &volume.id);
            volume.fail(false);
            volume.start().await;
            works(&volume);
            volume.end().await;
        }
    });
}

/// While another pod is there or on its way the kubelet does not stage anew.
#[test]
fn what_could_not_be_mounted_anew_is_mounted_by_a_later_publish_until_it_is_unstaged() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            sh("sync");
            for unstaged in [false, true] {
                volume.gives_up(&volume.target);
                for _ in 0..2 {
                    refused(volume.publish().await, Code::Internal, &volume.id);
                    assert_eq!(mounts_at(&volume.staging), 0);
                }
                volume.fail(false);
                if unstaged {
                    volume.end().await;
                    refused(volume.publish().await, Code::FailedPrecondition, "is not staged");
                    volume.start().await;
                }
                volume.publish().await.unwrap();
                works(&volume);
            }
            volume.end().await;
        }
    });
}

/// Whatever is written to or flushed on the volume's device takes longer than the driver waits, or no longer than before.
fn slow(volume: &Volume, slow: bool) {
    let name = volume.dm_name();
    let table = if slow {
        sh(&format!("modprobe dm-delay; dmsetup table {name} > /table"));
        sh("sed -E 's/linear ([0-9:]+ [0-9]+)/delay \\1 0 \\1 60000 \\1 60000/' /table")
    } else {
        sh("cat /table")
    };
    std::fs::write("/new-table", table).unwrap();
    sh(&format!(
        "dmsetup load {name} < /new-table; dmsetup suspend --nolockfs {name}; dmsetup resume {name}"
    ));
}

#[test]
fn a_file_system_that_does_not_answer_in_time_stays_mounted() {
    with_driver(async |driver, client| {
        // A btrfs says nothing more of a commit that somebody else waits for.
        for mode in [Mode::Ext4, Mode::Xfs] {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            sh("sync");
            let mounts = sh("cat /proc/self/mountinfo");
            slow(&volume, true);
            std::fs::write(volume.target.join("dirty"), "x").unwrap();
            let answers = [volume.publish().await, volume.stage().await];
            slow(&volume, false);
            for answer in answers {
                refused(answer, Code::Unavailable, "its disk has very much to do, or hangs");
            }
            assert_eq!(sh("cat /proc/self/mountinfo"), mounts);
            assert!(!driver.log().has(&["a mounted file system is dead"]));
            volume.start().await;
            works(&volume);
            volume.end().await;
        }
    });
}

/// A file system whose server never answers: whoever looks into it waits until this is dropped.
fn unresponsive(path: &Path) -> File {
    sh("modprobe fuse");
    let server = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0", std::os::fd::AsRawFd::as_raw_fd(&server));
    let flags = nix::mount::MsFlags::empty();
    nix::mount::mount(Some("dead"), path, Some("fuse"), flags, Some(options.as_str())).unwrap();
    server
}

#[test]
fn a_dead_mount_of_somebody_else_is_never_touched() {
    with_driver(async |_driver, client| {
        let place = folder("pods").join("of-somebody-else");
        std::fs::create_dir(&place).unwrap();
        let server = unresponsive(&place);
        let begun = Instant::now();
        for mode in Mode::ALL {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            volume.start().await;
            volume.stats().await.unwrap();
            volume.grow_by(1).await.unwrap();
            volume.end().await;
            volume.delete().await.unwrap();
        }
        // One look into it would have waited for ever.
        assert!(begun.elapsed() < Duration::from_secs(50));
        assert_eq!(mounts_at(&place), 1);
        drop(server);
    });
}
