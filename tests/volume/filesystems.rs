//! What is different about each file system.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use quarry::proto::csi::v1 as csi;
use quarry::proto::csi::v1::volume_capability::access_mode::Mode as AccessMode;
use quarry::proto::csi::v1::volume_capability::{AccessType, MountVolume};
use tonic::Code;

use super::support::with_driver;
use crate::driver::{MIB, Mode, VG, Volume, command, folder, mounts_at, refused, report, sh};

fn request(name: &str, mode: Mode, size: u64, parameters: &[(&str, &str)]) -> csi::CreateVolumeRequest {
    let pairs = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    csi::CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(csi::CapacityRange { required_bytes: size.cast_signed(), limit_bytes: 0 }),
        volume_capabilities: vec![mode.capability()],
        parameters: pairs.collect(),
        ..Default::default()
    }
}

/// A capability that says this of the mount.
fn mounted(fs_type: &str, options: &[&str]) -> csi::VolumeCapability {
    let mount_flags = options.iter().map(|option| (*option).to_owned()).collect();
    let mount = MountVolume { fs_type: fs_type.to_owned(), mount_flags, ..Default::default() };
    csi::VolumeCapability { access_type: Some(AccessType::Mount(mount)), ..Mode::Xfs.capability() }
}

/// The options of the file system that is mounted there.
fn mount_options(path: &Path) -> String {
    sh(&format!("findmnt -no OPTIONS {}", path.display()))
}

/// Such a file system tells half of its size.
#[test]
fn a_btrfs_that_keeps_its_data_twice_is_staged_and_grows_like_any_other() {
    with_driver(async |driver, client| {
        let wanted = request("pvc-a", Mode::Btrfs, 512 * MIB, &[("mkfsOptions", "data=dup")]);
        client.clone().create_with(wanted).await.unwrap();
        let volume = Volume::existing(&client, "pvc-a", Mode::Btrfs);
        volume.prepared().await;
        volume.start().await;
        assert_eq!(volume.expand(768 * MIB).await.unwrap(), 768 * MIB);
        assert_eq!(volume.expand(768 * MIB).await.unwrap(), 768 * MIB);
        let told = nix::sys::statvfs::statvfs(&volume.staging).unwrap().blocks() * 4096;
        assert_eq!(told, 384 * MIB, "half, as everything is there twice");
        assert!(!driver.log().has(&["mounted once more"]));
        volume.end().await;
    });
}

/// Linux before 6.12 replays a growth of XFS's last allocation group and still takes that for as small as it was,
/// until it is mounted once more.
#[test]
fn an_xfs_whose_log_holds_a_growth_grows_again() {
    with_driver(async |driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Xfs).await;
        let size = |more: u64| Mode::Xfs.size() + more * MIB;
        // One more group; and in a life of its own, so that only this stands in the log, a growth of that group.
        assert_eq!(volume.expand(size(16)).await.unwrap(), size(16));
        volume.end().await;
        volume.start().await;
        grow_by_hand(&volume, size(24));
        let mut marker = File::create(volume.target.join("marker")).unwrap();
        marker.write_all(b"kept").and_then(|()| marker.sync_all()).unwrap();
        drop(marker);
        lose_power(&volume).await;
        assert_eq!(volume.expand(size(40)).await.unwrap(), size(40));
        volume.start().await;
        assert!(driver.log().has(&["mounted once more"]));
        assert_eq!(std::fs::read_to_string(volume.target.join("marker")).unwrap(), "kept");
        let told = nix::sys::statvfs::statvfs(&volume.staging).unwrap().blocks() * 4096;
        assert!(told > size(24) - 64 * MIB, "{told} without its log");
        volume.end().await;
        sh(&format!("xfs_repair -n {}", volume.device().display()));
    });
}

/// Linux before 6.12 cannot replay what was done in the part that an XFS grew by while its superblock is the old one.
#[test]
fn an_xfs_whose_log_tells_of_use_of_what_it_grew_by_is_mounted() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Xfs).await;
        let size = |more: u64| Mode::Xfs.size() + more * MIB;
        for (name, label, grown) in [("first", "label -c", 16), ("second", "label -s it's_mine", 32)] {
            sh(&format!("xfs_io -c \"{label}\" {}", volume.staging.display()));
            assert_eq!(volume.expand(size(grown)).await.unwrap(), size(grown));
            use_each_group(&volume.target, name);
        }
        lose_power(&volume).await;
        volume.start().await;
        assert_eq!(std::fs::read_dir(&volume.target).unwrap().count(), 20);
        let label = sh(&format!("xfs_io -c label {}", volume.staging.display()));
        assert_eq!(label.trim(), "label = \"it's_mine\"");
        volume.end().await;
        sh(&format!("xfs_repair -n {}", volume.device().display()));
    });
}

/// As above, where the power goes before the superblock is in its place: what the README says gives all data back.
#[test]
fn an_xfs_that_grew_just_as_the_power_went_is_repaired_as_the_readme_says() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Xfs).await;
        grow_by_hand(&volume, Mode::Xfs.size() + 16 * MIB);
        use_each_group(&volume.target, "first");
        lose_power(&volume).await;
        refused(volume.stage().await, Code::Internal, "must be repaired by hand");
        let log = sh("dmesg");
        assert!(log.contains("out of range"), "{log}");
        let repair = format!("xfs_repair {} 2>&1 || test $? = 2", volume.device().display());
        assert!(sh(&repair).contains("needs to\nbe replayed"));
        volume.start().await;
        assert_eq!(std::fs::read_dir(&volume.target).unwrap().count(), 10);
        volume.end().await;
        sh(&format!("xfs_repair -n {}", volume.device().display()));
    });
}

/// Grows an XFS, as if the driver had ended as soon as it had done so.
fn grow_by_hand(volume: &Volume, size: u64) {
    sh(&format!("lvextend --quiet --size {size}b {}", volume.device().display()));
    sh(&format!("xfs_growfs -d {}", volume.staging.display()));
}

/// Makes directories, each of which XFS puts into another of its groups than the one before, and has each written to
/// the log.
fn use_each_group(folder: &Path, name: &str) {
    for number in 0..10 {
        let directory = folder.join(format!("{name}-{number}"));
        std::fs::create_dir(&directory).unwrap();
        sh(&format!("sync -f {}", directory.display()));
    }
}

/// Leaves an XFS as a power cut does: what happened last stands in its log only.
async fn lose_power(volume: &Volume) {
    sh(&format!("xfs_io -x -c 'shutdown -f' {}", volume.staging.display()));
    volume.end().await;
}

#[test]
fn a_size_that_a_file_system_does_not_fit_on_is_refused_with_the_size_that_does() {
    with_driver(async |_driver, client| {
        let seqno = report("vgs", "vg_seqno", VG);
        for (mode, minimum) in [(Mode::Xfs, 300), (Mode::Btrfs, 256)] {
            let mut client = client.clone();
            let needs = format!("{} needs a volume of at least {minimum} MiB", mode.word());
            let small = request("pvc-a", mode, (minimum - 1) * MIB, &[]);
            refused(client.create_with(small).await, Code::OutOfRange, &needs);
            let mut limited = request("pvc-a", mode, 0, &[]);
            limited.capacity_range =
                Some(csi::CapacityRange { required_bytes: 0, limit_bytes: (100 * MIB).cast_signed() });
            refused(client.create_with(limited).await, Code::OutOfRange, &needs);
            assert_eq!(report("vgs", "vg_seqno", VG), seqno, "nothing was begun");
        }
        for mode in [Mode::Xfs, Mode::Btrfs] {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            assert_eq!(volume.grow_by(1).await.unwrap(), volume.size_and(1), "the smallest can grow");
        }
        // The few MiB that ext4 needs are given without a word, as whole extents are.
        let small = client.clone().create_with(request("pvc-small", Mode::Ext4, MIB, &[])).await.unwrap();
        assert_eq!(small.capacity_bytes.cast_unsigned(), 16 * MIB);
    });
}

#[test]
fn a_class_says_how_its_file_systems_are_made_and_it_is_remembered() {
    with_driver(async |driver, client| {
        let with = |options| request("pvc-a", Mode::Xfs, 300 * MIB, &[("mkfsOptions", options)]);
        for (bad, allowed) in
            [("-f", "rmapbt=1"), ("csum=xxhash", "reflink=0"), ("reflink=0;reboot", "rmapbt=1")]
        {
            refused(client.clone().create_with(with(bad)).await, Code::InvalidArgument, allowed);
        }
        assert_eq!(report("lvs", "lv_name", VG), Vec::<String>::new());
        client.clone().create_with(with("rmapbt=1,reflink=0")).await.unwrap();
        client.clone().create_with(with("reflink=0, rmapbt=1")).await.unwrap();
        refused(client.clone().create_with(with("")).await, Code::AlreadyExists, "mkfs options");
        let volume = Volume::existing(&client, "pvc-a", Mode::Xfs);
        volume.prepared().await;
        assert!(report("lvs", "lv_tags", VG)[0].contains("q.o=reflink!3d0!2crmapbt!3d1"));
        // Made again after a restart, it is made in the same way.
        driver.stop();
        volume.retag("q.s=f", "q.s=b");
        sh(&format!("wipefs -qa {}", volume.device().display()));
        let driver = crate::driver::Driver::start().await;
        let volume = volume.with(&driver.client().await);
        volume.start().await;
        let made = sh(&format!("xfs_info {}", volume.staging.display()));
        assert!(made.contains("reflink=0") && made.contains("rmapbt=1"), "{made}");
    });
}

#[test]
fn mount_options_are_those_of_the_file_system_that_the_volume_has() {
    with_driver(async |_driver, client| {
        for (mode, option, anothers) in [
            (Mode::Ext4, "data=journal", "compress=zstd"),
            (Mode::Xfs, "logbsize=256k", "data=journal"),
            (Mode::Btrfs, "compress=zstd", "logbsize=256k"),
        ] {
            let volume = Volume::create(&client, mode.word(), mode).await;
            let stage = async |fs_type: &str, options: &[&str]| {
                client.clone().stage_as(&volume.id, &volume.staging, mounted(fs_type, options)).await
            };
            // Whoever names no file system means the one that is there.
            for fs_type in [mode.word(), ""] {
                refused(stage(fs_type, &[anothers]).await, Code::InvalidArgument, option);
                assert_eq!(mounts_at(&volume.staging), 0);
                stage(fs_type, &[option, "noatime"]).await.unwrap();
                let options = mount_options(&volume.staging);
                assert!(options.contains(option) && options.contains("noatime"), "{options}");
                volume.unstage().await.unwrap();
            }
        }
        let ext4 = Volume::existing(&client, "ext4", Mode::Ext4);
        let as_xfs = client.clone().stage_as(&ext4.id, &ext4.staging, mounted("xfs", &[])).await;
        refused(
            as_xfs,
            Code::FailedPrecondition,
            "is made as ext4 file system, and cannot be used as xfs file system",
        );
    });
}

#[test]
fn the_option_ro_is_the_wish_to_read_only_and_a_reader_cannot_wish_for_more() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("marker"), "kept").unwrap();
            volume.end().await;
            let reader = csi::VolumeCapability {
                access_mode: mode.capability_for(AccessMode::SingleNodeReaderOnly).access_mode,
                ..mounted(mode.word(), &["rw"])
            };
            for capability in [mounted(mode.word(), &["noatime", "ro"]), reader] {
                let publish = async || {
                    let wanted = Some(capability.clone());
                    volume.publish_as(&volume.target, |request| request.volume_capability = wanted).await
                };
                for _ in 0..2 {
                    client.clone().stage_as(&volume.id, &volume.staging, capability.clone()).await.unwrap();
                }
                refused(volume.publish().await, Code::AlreadyExists, "it is read-only there");
                assert_eq!(mounts_at(&volume.target), 0);
                for _ in 0..2 {
                    publish().await.unwrap();
                }
                for place in [&volume.staging, &volume.target] {
                    assert_eq!(mounts_at(place), 1);
                    assert_eq!(std::fs::read_to_string(place.join("marker")).unwrap(), "kept");
                    let refusal = std::fs::write(place.join("marker"), "changed").unwrap_err();
                    assert_eq!(refusal.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
                }
                refused(volume.stage().await, Code::AlreadyExists, "it is read-only there");
                refused(volume.publish().await, Code::AlreadyExists, "it is read-only there");
                volume.end().await;
            }
            volume.start().await;
            std::fs::write(volume.target.join("marker"), "changed").unwrap();
        }
    });
}

#[test]
fn a_btrfs_is_known_by_its_device_wherever_and_however_it_is_mounted() {
    with_driver(async |_driver, client| {
        let volume = Volume::in_use(&client, "pvc-a", Mode::Btrfs).await;
        let other = Volume::in_use(&client, "pvc-other", Mode::Btrfs).await;
        // Neither is taken for the other, though neither shows the number of its device.
        let mut stolen = volume.clone();
        stolen.staging = other.staging.clone();
        refused(stolen.stage().await, Code::Internal, "is taken by something that is not volume");
        refused(stolen.unstage().await, Code::Internal, "is taken by something that is not volume");

        // A part of it that somebody mounts elsewhere is a use of it as well.
        sh(&format!("btrfs subvolume create {}/sub", volume.target.display()));
        let place = folder("elsewhere");
        sh(&format!("mount --bind {}/sub {}", volume.target.display(), place.display()));
        // A mount of it that nobody can look at hinders none.
        let hidden = folder("hidden");
        sh(&format!("mkdir {0}/deep; mount --bind {1} {0}/deep", hidden.display(), other.target.display()));
        sh(&format!("mount -t tmpfs tmpfs {}", hidden.display()));
        volume.end().await;
        refused(volume.delete().await, Code::FailedPrecondition, place.to_str().unwrap());
        // What a subvolume is mounted by alone is enough to grow it.
        assert_eq!(volume.grow_by(4).await.unwrap(), volume.size_and(4));
        let size = nix::sys::statvfs::statvfs(&place).unwrap().blocks() * 4096;
        assert_eq!(size, volume.size_and(4));
        sh(&format!("umount {}", place.display()));
        volume.delete().await.unwrap();
        assert_eq!((mounts_at(&other.staging), mounts_at(&other.target)), (1, 1));
    });
}

#[test]
fn a_mounted_file_system_goes_on_and_grows_when_its_group_is_renamed() {
    with_driver(async |_driver, client| {
        for mode in Mode::FILE_SYSTEMS {
            let volume = Volume::in_use(&client, mode.word(), mode).await;
            std::fs::write(volume.target.join("file"), "kept").unwrap();
        }
        command("vgrename", &["-q", VG, "vg1"]);
        for mode in Mode::FILE_SYSTEMS {
            let (staging, target) = (
                folder(&format!("{}-staging", mode.word())),
                Path::new("/var/lib/kubelet").join(format!("{}-target", mode.word())),
            );
            let id = format!("{}/{}", report("vgs", "vg_uuid", "vg1")[0], crate::driver::lv_of(mode.word()));
            let mut client = client.clone();
            let size = mode.size() + 16 * MIB;
            assert_eq!(client.expand(&id, size, mode).await.unwrap(), size);
            client.stage(&id, &staging, mode).await.unwrap();
            client.publish(&id, &staging, &target, mode).await.unwrap();
            assert_eq!(mounts_at(&target), 1);
            assert_eq!(std::fs::read_to_string(target.join("file")).unwrap(), "kept");
            client.unpublish(&id, &target).await.unwrap();
            client.unstage(&id, &staging).await.unwrap();
            client.delete(&id).await.unwrap();
        }
    });
}
