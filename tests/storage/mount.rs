//! Mounts of real LVs.

use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use lab::Machine;
use quarry::device::{Access, BlockDevice};
use quarry::fs::of;
use quarry::mount::{
    self, Aside, MountError, MountTable, Mounted, Rights, bind_device, bind_fs, block_targets, look,
    make_dir, make_file, mount_fs, remove, unmount,
};
use quarry::types::{FsType, MakeOptions, MountOptions, TargetPath};

use crate::storage_bench::{Bench, must, node, run, target};

/// An LV with an empty ext4 on it.
fn formatted(bench: &Bench, name: &str) -> BlockDevice {
    let device = bench.create(name, "32M");
    let pinned = bench.pin(&device, Access::Write);
    let lock = File::create("/tmp/lock").unwrap();
    let uuid = "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap();
    run(of(FsType::Ext4).make(&bench.programs, &pinned.path(), uuid, &MakeOptions::default(), lock)).unwrap();
    device
}

fn stage(device: &BlockDevice, place: &TargetPath, options: &[&str]) -> Result<(), MountError> {
    let options = MountOptions::parse(options.iter().copied()).unwrap();
    run(async {
        make_dir(place).await?;
        mount_fs(device, place, FsType::Ext4, &[], &options).await
    })
}

/// Where the driver makes mounts ready.
fn aside() -> Aside {
    Aside::new("/run/quarry/mounts".into())
}

fn there(place: &TargetPath) -> Option<Mounted> {
    run(look(place)).unwrap()
}

fn times(device: &BlockDevice) -> usize {
    run(MountTable::read()).unwrap().of_device(device.number).count()
}

#[test]
fn a_file_system_is_mounted_found_bound_and_unmounted() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = formatted(&bench, "a");
        let (staged, reader, writer) = (target("/stage"), target("/reader"), target("/writer"));
        assert_eq!(there(&staged), None);
        assert_eq!(there(&target("/not/there/at/all")), None);
        stage(&device, &staged, &["noatime,nodev", "discard"]).unwrap();
        let found = there(&staged).unwrap();
        assert_eq!((found.shows, found.is_device), (device.number, false));
        assert!(found.mount.has_option("noatime") && found.mount.has_option("nodev"));
        assert!(!found.mount.is_read_only());

        let aside = aside();
        for (place, rights) in [(&reader, Rights::Read(&aside)), (&writer, Rights::All)] {
            run(make_dir(place)).unwrap();
            run(bind_fs(&staged, device.number, place, rights)).unwrap();
            let read_only = place == &reader;
            let found = there(place).unwrap();
            assert_eq!((found.shows, found.mount.is_read_only()), (device.number, read_only));
            assert!(found.mount.has_option("noatime") && found.mount.has_option("nodev"), "{found:?}");
        }
        fs::write("/writer/file", "content").unwrap();
        assert_eq!(fs::read_to_string("/reader/file").unwrap(), "content");
        assert_eq!(
            fs::write("/reader/file", "x").unwrap_err().kind(),
            std::io::ErrorKind::ReadOnlyFilesystem
        );
        assert_eq!(times(&device), 3);

        for place in [&reader, &writer, &staged] {
            run(unmount(place, device.number)).unwrap();
            run(unmount(place, device.number)).unwrap();
            run(remove(place)).unwrap();
            run(remove(place)).unwrap();
        }
        assert_eq!(times(&device), 0);
        assert!(!Path::new("/stage").exists());

        stage(&device, &staged, &["ro"]).unwrap();
        assert!(there(&staged).unwrap().mount.is_read_only());
    });
}

#[test]
fn a_mount_in_use_stays_and_the_error_says_so() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = formatted(&bench, "a");
        let staged = target("/stage");
        stage(&device, &staged, &[]).unwrap();
        let open = File::create("/stage/open").unwrap();
        let error = run(unmount(&staged, device.number)).unwrap_err();
        assert!(matches!(error, MountError::Busy { .. }), "{error}");
        assert_eq!(times(&device), 1);
        assert!(matches!(run(remove(&staged)), Err(MountError::Busy { .. })));
        drop(open);
        run(unmount(&staged, device.number)).unwrap();
        assert_eq!(times(&device), 0);
    });
}

#[test]
fn stacked_mounts_of_ours_go_and_those_of_others_stay() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let (a, b) = (formatted(&bench, "a"), formatted(&bench, "b"));
        let place = target("/stage");
        stage(&a, &place, &[]).unwrap();
        (0..3).for_each(|_| run(bind_fs(&place, a.number, &place, Rights::All)).unwrap());
        assert_eq!(times(&a), 4);
        run(unmount(&place, a.number)).unwrap();
        assert_eq!(times(&a), 0);

        stage(&b, &place, &[]).unwrap();
        stage(&a, &place, &[]).unwrap();
        assert_eq!(there(&place).unwrap().shows, a.number, "the topmost is what is seen");
        let error = run(unmount(&place, a.number)).unwrap_err();
        assert!(matches!(&error, MountError::Foreign { found, .. } if *found == b.number), "{error}");
        assert_eq!((times(&a), times(&b)), (0, 1));

        let other = target("/other");
        run(make_dir(&other)).unwrap();
        let error = run(bind_fs(&place, a.number, &other, Rights::All)).unwrap_err();
        assert!(matches!(error, MountError::Moved { .. }), "{error}");
        assert_eq!(there(&other), None);
    });
}

#[test]
fn a_path_that_leads_to_another_device_is_not_mounted() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let (a, b) = (formatted(&bench, "a"), formatted(&bench, "b"));
        fs::rename(node("b"), node("a")).unwrap();
        let error = stage(&a, &target("/stage"), &[]).unwrap_err();
        assert!(matches!(error, MountError::Moved { .. }), "{error}");
        let file = target("/file");
        run(make_file(&file)).unwrap();
        assert!(matches!(run(bind_device(&a, &file, Rights::All)), Err(MountError::Moved { .. })));
        assert_eq!((times(&a), times(&b), there(&file)), (0, 0, None));
        // The number is another volume's by now.
        must("vgmknodes", &[]);
        let stale = BlockDevice { uuid: a.uuid.clone(), ..b.clone() };
        let error = stage(&stale, &target("/stage"), &[]).unwrap_err();
        assert!(matches!(error, MountError::Unproven { .. }), "{error}");
        assert!(matches!(run(bind_device(&stale, &file, Rights::All)), Err(MountError::Unproven { .. })));
        assert_eq!((times(&b), there(&file)), (0, None));
        // Not a file system of that type.
        must("sh", &["-c", "blkdiscard -z /dev/mapper/vg-b"]);
        let error = stage(&b, &target("/stage"), &[]).unwrap_err();
        assert!(matches!(error, MountError::Io { .. }), "{error}");
    });
}

#[test]
fn a_block_device_is_bound_and_found_by_its_number() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let (a, b) = (bench.create("a", "16M"), bench.create("b", "16M"));
        let places = [target("/pod one"), target("/pod2")];
        let aside = aside();
        for (place, rights) in places.iter().zip([Rights::All, Rights::Read(&aside)]) {
            run(make_file(place)).unwrap();
            run(bind_device(&a, place, rights)).unwrap();
            let read_only = matches!(rights, Rights::Read(_));
            run(make_file(place)).unwrap();
            let found = there(place).unwrap();
            assert_eq!(
                (found.shows, found.is_device, found.mount.is_read_only()),
                (a.number, true, read_only)
            );
        }
        let paths: Vec<_> = places.iter().map(TargetPath::to_path).collect();
        assert_eq!(run(block_targets(a.number)).unwrap(), paths);
        assert!(run(block_targets(b.number)).unwrap().is_empty());
        assert_eq!(times(&a), 0, "the mount table shows the number of devtmpfs");

        assert!(matches!(run(unmount(&places[0], b.number)), Err(MountError::Foreign { .. })));
        for place in &places {
            run(unmount(place, a.number)).unwrap();
            run(remove(place)).unwrap();
        }
        assert!(run(block_targets(a.number)).unwrap().is_empty());

        // The node of our own making, on whatever file system it lies.
        must("mkdir", &["/nodes"]);
        let own = format!("/nodes/{}", a.number);
        must("mknod", &[&own, "b", &a.number.major.to_string(), &a.number.minor.to_string()]);
        run(make_file(&places[1])).unwrap();
        run(bind_device(&BlockDevice { path: own.into(), ..a.clone() }, &places[1], Rights::All)).unwrap();
        assert_eq!(run(block_targets(a.number)).unwrap(), [places[1].to_path()]);
    });
}

#[test]
fn odd_names_and_linked_folders_are_found() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = formatted(&bench, "a");
        // A target's own path has no such characters; the folder that a link leads to may.
        const REAL: &str = "/var/new\nline/tab\there";
        must("mkdir", &["-p", REAL]);
        must("ln", &["-s", REAL, "/var/lib/kubelet"]);
        for name in ["plain", "a b", "back\\slash", "\\040", "#hash", "ünï"] {
            let place = target(&format!("/var/lib/kubelet/{name}"));
            stage(&device, &place, &[]).unwrap();
            let found = there(&place).unwrap();
            assert_eq!(found.shows, device.number, "{name:?}");
            assert_eq!(found.mount.target, Path::new(REAL).join(name));
            run(unmount(&place, device.number)).unwrap();
            run(remove(&place)).unwrap();
            assert_eq!(times(&device), 0, "{name:?}");
        }
    });
}

#[test]
fn only_what_is_empty_and_of_the_right_kind_is_used_or_removed() {
    Machine::new().boot(|| {
        must("sh", &["-c", "mkdir /full && touch /full/file && ln -s /full /link && echo x > /filled"]);
        let wrong = |ended: Result<(), MountError>| matches!(ended, Err(MountError::WrongKind { .. }));
        for (path, dir_fits, file_fits) in
            [("/full", true, false), ("/link", false, false), ("/filled", false, true)]
        {
            let place = target(path);
            assert_eq!(wrong(run(make_dir(&place))), !dir_fits, "{path}");
            assert_eq!(wrong(run(make_file(&place))), !file_fits, "{path}");
            let error = run(remove(&place)).unwrap_err();
            assert!(matches!(error, MountError::WrongKind { .. }), "{error}");
        }
        assert!(Path::new("/full/file").exists() && Path::new("/link").is_symlink());
        assert!(run(make_dir(&target("/none/dir"))).is_err(), "the folder above is the kubelet's to make");
    });
}

#[test]
fn a_folder_tells_whether_its_mounts_are_seen_by_others() {
    Machine::new().boot(|| {
        must("sh", &["-c", "mkdir -p /kubelet/pods && mount -t tmpfs t /kubelet"]);
        must("mkdir", &["/kubelet/pods"]);
        let shared = || run(mount::is_shared(&target("/kubelet/pods"))).unwrap();
        must("mount", &["--make-private", "/kubelet"]);
        assert!(!shared());
        must("mount", &["--make-shared", "/kubelet"]);
        assert!(shared());
        assert!(run(mount::is_shared(&target("/nowhere"))).is_err());
    });
}

#[test]
fn somebody_elses_dead_mount_holds_up_nothing() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = formatted(&bench, "a");
        // A file system whose server never answers: whoever looks into it waits for ever.
        must("modprobe", &["fuse"]);
        must("mkdir", &["/dead"]);
        let server = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options =
            format!("fd={},rootmode=40000,user_id=0,group_id=0", std::os::fd::AsRawFd::as_raw_fd(&server));
        nix::mount::mount(
            Some("dead"),
            "/dead",
            Some("fuse"),
            nix::mount::MsFlags::empty(),
            Some(options.as_str()),
        )
        .unwrap();
        let begun = Instant::now();
        let (staged, file) = (target("/stage"), target("/file"));
        stage(&device, &staged, &[]).unwrap();
        run(make_file(&file)).unwrap();
        run(bind_device(&device, &file, Rights::All)).unwrap();
        assert_eq!(run(block_targets(device.number)).unwrap().len(), 1);
        run(unmount(&file, device.number)).unwrap();
        run(unmount(&staged, device.number)).unwrap();
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    });
}
