//! From a staged volume to its pods.

use std::io::ErrorKind;
use std::path::Path;

use quarry::proto::csi::v1::volume_capability::access_mode::Mode as AccessMode;
use tonic::Code;

use super::support::{read, with_driver};
use crate::driver::{Mode, Volume, folder, mounts_at, refused, sh};

const POD_2: &str = "/var/lib/kubelet/pod-2";

#[test]
fn a_volume_that_is_not_staged_is_not_published() {
    with_driver(async |_driver, client| {
        for mode in Mode::ALL {
            let volume = Volume::create(&client, mode.word(), mode).await;
            refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
            volume.prepared().await;
            refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
            assert!(!volume.target.exists());
        }
        let volume = Volume::in_use(&client, "pvc-c", Mode::Ext4).await;
        volume.end().await;
        refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
    });
}

#[test]
fn what_somebody_unmounted_behind_our_back_is_mounted_again() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            sh(&format!("umount {}", volume.target.display()));
            volume.publish().await.unwrap();
            assert_eq!(read(&volume.target.join("marker")), "kept");

            sh(&format!("umount {} {}", volume.target.display(), volume.staging.display()));
            refused(volume.publish().await, Code::FailedPrecondition, "is not staged at");
            volume.start().await;
            assert_eq!(read(&volume.target.join("marker")), "kept");
        }

        let raw = Volume::in_use(&client, "pvc-raw", Mode::Block).await;
        sh(&format!("umount {}", raw.target.display()));
        raw.publish().await.unwrap();
        assert_eq!(mounts_at(&raw.target), 1);
    });
}

#[test]
fn a_volume_has_as_many_targets_as_it_has_pods_each_with_its_own_rights() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "seen").unwrap();
            let second = &folder("pod-2").join(mode.word());
            for _ in 0..2 {
                volume.publish_as(second, |request| request.readonly = true).await.unwrap();
            }
            assert_eq!((mounts_at(second), read(&second.join("marker")).as_str()), (1, "seen"));
            let refusal = std::fs::write(second.join("marker"), "changed").unwrap_err();
            assert_eq!(refusal.kind(), ErrorKind::ReadOnlyFilesystem);
            refused(volume.publish_at(second).await, Code::AlreadyExists, "it is read-only there");
            std::fs::write(volume.target.join("marker"), "still writable").unwrap();

            let first = volume.publish_as(&volume.target, |request| request.readonly = true).await;
            refused(first, Code::AlreadyExists, "it is writable there");
            volume.unpublish().await.unwrap();
            assert_eq!(read(&second.join("marker")), "still writable");
        }
    });
}

#[test]
fn a_volume_for_one_pod_has_one_target() {
    with_driver(async |_driver, client| {
        for mode in Mode::ALL {
            let volume = Volume::create(&client, mode.word(), mode).await;
            volume.stage().await.unwrap();
            let single = mode.capability_for(AccessMode::SingleNodeSingleWriter);
            let publish = async |target: &Path| {
                volume.publish_as(target, |request| request.volume_capability = Some(single.clone())).await
            };
            for _ in 0..2 {
                publish(&volume.target).await.unwrap();
            }
            let second = Path::new(POD_2);
            refused(publish(second).await, Code::FailedPrecondition, volume.target.to_str().unwrap());
            assert!(!second.exists());
            volume.unpublish().await.unwrap();
            publish(second).await.unwrap();
            client.clone().unpublish(&volume.id, second).await.unwrap();
        }
    });
}

#[test]
fn a_kubelet_folder_that_is_a_link_changes_nothing() {
    with_driver(async |_driver, client| {
        sh("mkdir -p /data/kubelet && ln -sT /data/kubelet /var/lib/kubelet");
        let volume = Volume::create(&client, "pvc-a", Mode::Ext4).await;
        let single = Mode::Ext4.capability_for(AccessMode::SingleNodeSingleWriter);
        let publish = async || {
            volume
                .publish_as(&volume.target, |request| request.volume_capability = Some(single.clone()))
                .await
        };
        volume.stage().await.unwrap();
        publish().await.unwrap();
        publish().await.unwrap();
        sh(&format!("xfs_io -x -c shutdown {}", volume.staging.display()));
        publish().await.expect("it is mounted anew, since nobody else uses it");
        std::fs::write(volume.target.join("file"), "written").unwrap();
        volume.end().await;
        volume.delete().await.unwrap();
    });
}

#[test]
fn a_target_that_is_taken_is_refused_and_left_as_it_is() {
    with_driver(async |_driver, client| {
        let other = Volume::in_use(&client, "pvc-other", Mode::Ext4).await;
        for (name, mode) in [("pvc-fs", Mode::Ext4), ("pvc-raw", Mode::Block)] {
            let mut volume = Volume::create(&client, name, mode).await;
            volume.stage().await.unwrap();
            volume.target = other.target.clone();
            refused(volume.publish().await, Code::Internal, "is taken by something that is not volume");
            refused(volume.unpublish().await, Code::Internal, "is taken by something that is not volume");
            assert_eq!(mounts_at(&other.target), 1);

            volume.target = folder("elsewhere").join(name);
            std::os::unix::fs::symlink("/etc", &volume.target).unwrap();
            refused(volume.publish().await, Code::Internal, "is a symbolic link");
            refused(volume.unpublish().await, Code::Internal, "is a symbolic link");
            assert!(volume.target.is_symlink() && mounts_at(Path::new("/etc")) == 0);
        }
    });
}

#[test]
fn what_lies_at_a_target_is_never_removed_with_it() {
    with_driver(async |_driver, client| {
        let volume = Volume::create(&client, "pvc-fs", Mode::Ext4).await;
        volume.stage().await.unwrap();
        std::fs::write(&volume.target, "a file").unwrap();
        refused(volume.publish().await, Code::Internal, "where a folder should be");
        refused(volume.unpublish().await, Code::Internal, "a file with something in it");
        assert_eq!(read(&volume.target), "a file");

        let raw = Volume::create(&client, "pvc-raw", Mode::Block).await;
        raw.stage().await.unwrap();
        std::fs::create_dir(&raw.target).unwrap();
        std::fs::write(raw.target.join("file"), "in a folder").unwrap();
        refused(raw.publish().await, Code::Internal, "where a file should be");
        refused(raw.unpublish().await, Code::Internal, "a folder with something in it");
        assert_eq!(read(&raw.target.join("file")), "in a folder");
    });
}
