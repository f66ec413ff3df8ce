//! File systems on real LVs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::Machine;
use quarry::device::{Access, BlockDevice};
use quarry::exec::{ExecError, Host, Invocation, Output, Runner};
use quarry::fs::{Check, Content, FileSystem, Growth, Health, health, of, probe, usage};
use quarry::mount::{mount_fs, unmount};
use quarry::types::{Bytes, FsType, FsUuid, MakeOption, MakeOptions, MountOptions};

use crate::storage_bench::{Bench, dirty, must, run, target, until};

fn ext4() -> &'static dyn FileSystem {
    of(FsType::Ext4)
}

fn uuid() -> FsUuid {
    "0e5e5a8e-6d2b-5b2f-9a43-3c8bd0b1a111".parse().unwrap()
}

fn lock() -> File {
    File::options().create(true).append(true).open("/tmp/lock").unwrap()
}

impl Bench {
    fn make(&self, device: &BlockDevice) {
        self.make_as(FsType::Ext4, device, &MakeOptions::default());
    }

    fn make_as(&self, fs: FsType, device: &BlockDevice, options: &MakeOptions) {
        let pinned = self.pin(device, Access::Write);
        run(of(fs).make(&self.programs, &pinned.path(), uuid(), options, lock())).unwrap();
        run(pinned.flush()).unwrap();
    }

    fn check(&self, device: &BlockDevice) -> Check {
        self.check_as(FsType::Ext4, device)
    }

    fn check_as(&self, fs: FsType, device: &BlockDevice) -> Check {
        let pinned = self.pin(device, Access::Read);
        run(of(fs).check(&self.programs, &pinned.path())).unwrap()
    }

    fn probe(&self, device: &BlockDevice) -> Content {
        let pinned = self.pin(device, Access::Read);
        run(probe(&self.programs, &pinned.path())).unwrap()
    }

    fn mount(&self, device: &BlockDevice) {
        must("mount", &[device.path.to_str().unwrap(), "/mnt"]);
    }
}

fn write_at(device: &BlockDevice, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(&device.path).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.sync_all().unwrap();
}

/// Counts the programs that it runs.
struct Counting<'a>(&'a Host, AtomicUsize);

#[async_trait::async_trait]
impl Runner for Counting<'_> {
    async fn run(&self, invocation: Invocation) -> Result<Output, ExecError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.run(invocation).await
    }
}

#[test]
fn what_is_made_is_found_again_and_sound() {
    for fs in FsType::ALL {
        Machine::new().disk("1G").boot(|| made_and_found(fs));
    }
}

fn made_and_found(fs: FsType) {
    let bench = Bench::new();
    let device = bench.create("a", "400M");
    let (make, check) =
        (|| bench.make_as(fs, &device, &MakeOptions::default()), || bench.check_as(fs, &device));
    assert_eq!(bench.probe(&device), Content::Empty);
    dirty(&device.path);
    assert_eq!(bench.probe(&device), Content::Unrecognised);
    make();
    assert_eq!(bench.probe(&device), Content::FileSystem { fs_type: fs, uuid: uuid() });
    assert_eq!(check(), Check::Clean);
    assert_eq!(run(of(fs).size(&device.path, None)).unwrap(), Bytes::mib(400));
    // Made again over itself, as after an interruption, without a question.
    make();
    assert_eq!(check(), Check::Clean);

    bench.mount(&device);
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.contains(" /mnt ")).unwrap();
    // The kernel keeps the path by which btrfs was made: it must not be one that leads elsewhere later.
    assert!(line.contains("/dev/mapper/vg-a") || line.contains("/dev/dm-"), "{line}");
    let mnt = Path::new("/mnt");
    assert_eq!(run(of(fs).size(&device.path, Some(mnt))).unwrap(), Bytes::mib(400));
    let found = run(usage(mnt)).unwrap();
    let kept = found.bytes.total - found.bytes.used - found.bytes.available;
    if fs == FsType::Ext4 {
        assert!(kept <= found.bytes.total / 40, "nothing is kept for root, and {kept} of {found:?} are");
    }
    assert!(found.bytes.available > 200 << 20, "{found:?}");
    fs::write("/mnt/file", "content").unwrap();
    let made = run(of(fs).make(&bench.programs, &device.path, uuid(), &MakeOptions::default(), lock()));
    let error = made.unwrap_err().to_string();
    assert!(error.contains("mounted"), "{error}");
    let checked = run(of(fs).check(&bench.programs, &device.path));
    // e2fsck -n only looks; the others cannot tell a mounted file system from a damaged one.
    assert!(fs == FsType::Ext4 || checked.is_err_and(|error| error.to_string().contains("in use")));
    assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    must("umount", &["/mnt"]);
    assert_eq!(check(), Check::Clean);
}

#[test]
fn the_smallest_device_takes_a_file_system_and_some_files() {
    Machine::new().disk("1G").boot(|| {
        let bench = Bench::new();
        for fs in FsType::ALL {
            let mib = of(fs).limits().minimum.get() >> 20;
            let device = bench.create("a", &format!("{mib}M"));
            bench.make_as(fs, &device, &MakeOptions::default());
            bench.mount(&device);
            if fs == FsType::Ext4 {
                let told = must("dumpe2fs", &["-h", device.path.to_str().unwrap()]);
                assert!(told.contains("has_journal"), "{told}");
            }
            fs::write("/mnt/file", vec![1; 8 << 20]).unwrap();
            must("umount", &["/mnt"]);
            must("lvremove", &["-q", "-y", "vg/a"]);
        }
    });
}

#[test]
fn each_way_in_which_a_class_may_have_a_file_system_made_makes_one_that_can_be_mounted() {
    Machine::new().disk("1G").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "512M");
        for option in MakeOption::ALL {
            bench.make_as(option.fs(), &device, &option.word().parse().unwrap());
            assert_eq!(bench.check_as(option.fs(), &device), Check::Clean, "{option:?}");
            bench.mount(&device);
            fs::write("/mnt/file", "content").unwrap();
            let (told, expected) = as_made(option, &device);
            assert!(told.contains(expected), "{option:?}: {told}");
            must("umount", &["/mnt"]);
        }
    });
}

/// What a mounted file system says about an option, and what it should say.
fn as_made(option: MakeOption, device: &BlockDevice) -> (String, &'static str) {
    let device = device.path.to_str().unwrap();
    let inodes = || run(usage(Path::new("/mnt"))).unwrap().inodes.total.to_string();
    let xfs = || must("xfs_info", &["/mnt"]);
    let btrfs = || must("btrfs", &["inspect-internal", "dump-super", device]);
    let profiles = || must("btrfs", &["filesystem", "df", "/mnt"]);
    match option {
        MakeOption::Inode4K => (inodes(), "131072"),
        MakeOption::Inode64K => (inodes(), "8192"),
        MakeOption::Inode1M => (inodes(), "512"),
        MakeOption::NoReflink => (xfs(), "reflink=0"),
        MakeOption::ReverseMap => (xfs(), "rmapbt=1"),
        MakeOption::DataTwice => (profiles(), "Data, DUP"),
        MakeOption::MetadataOnce => (profiles(), "Metadata, single"),
        MakeOption::XxHash => (btrfs(), "(xxhash64)"),
        MakeOption::Sha256 => (btrfs(), "(sha256)"),
        MakeOption::Blake2 => (btrfs(), "(blake2)"),
    }
}

#[test]
fn each_mount_option_that_may_be_asked_for_is_one_that_the_kernel_knows() {
    Machine::new().disk("2G").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "512M");
        for fs in FsType::ALL {
            bench.make_as(fs, &device, &MakeOptions::default());
            for option in fs.mount_options() {
                let place = target("/mnt");
                let options = MountOptions::parse([option]).unwrap();
                run(mount_fs(&device, &place, fs, &[], &options))
                    .unwrap_or_else(|error| panic!("{fs}, {option}: {error:?}"));
                run(unmount(&place, device.number)).unwrap();
            }
        }
    });
}

#[test]
fn a_mounted_file_system_grows_to_its_device_and_no_program_runs_in_vain() {
    for fs in FsType::ALL {
        Machine::new().disk("2G").boot(|| grown(fs));
    }
}

fn grown(fs: FsType) {
    let (bench, mnt) = (Bench::new(), Path::new("/mnt"));
    // For ext4 within a block group, over its border, and with a last group too small for its own tables.
    let first = if fs == FsType::Ext4 { 64 } else { 400 };
    let device = bench.create("a", &format!("{first}M"));
    bench.make_as(fs, &device, &MakeOptions::default());
    bench.mount(&device);
    fs::write("/mnt/file", "content").unwrap();
    let _ = fs::remove_file("/etc/mtab");
    let runner = Counting(&bench.programs, AtomicUsize::new(0));
    let grow = || {
        let pinned = bench.pin(&device, Access::Read);
        run(of(fs).grow(&runner, mnt, &pinned.path())).unwrap()
    };
    let size = || run(of(fs).size(&device.path, Some(mnt))).unwrap();
    assert_eq!((grow(), runner.1.load(Ordering::Relaxed)), (Growth::Nothing, 0));

    for (from, to) in [(first, first + 36), (first + 36, 900), (900, 1024)] {
        must("lvextend", &["-q", "-L", &format!("{to}M"), "vg/a"]);
        assert_eq!(grow(), Growth::Grown { from: Bytes::mib(from), to: Bytes::mib(to) });
        let before = runner.1.load(Ordering::Relaxed);
        assert_eq!((grow(), runner.1.load(Ordering::Relaxed)), (Growth::Nothing, before));
        assert_eq!(size(), Bytes::mib(to));
    }
    must("lvextend", &["-q", "-L", "1028M", "vg/a"]);
    let before = size();
    grow();
    assert!(size() >= before && size() <= Bytes::mib(1028));
    assert_eq!(grow(), Growth::Nothing);
    assert!(run(usage(mnt)).unwrap().bytes.total > 900 << 20);
    assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    must("umount", &["/mnt"]);
    assert_eq!(bench.check_as(fs, &device), Check::Clean);
    let size = run(of(fs).size(&device.path, None)).unwrap();
    assert!((Bytes::mib(1024)..=Bytes::mib(1028)).contains(&size), "{size}");
}

#[test]
fn a_damaged_file_system_is_neither_empty_nor_sound() {
    Machine::new().disk("512M").boot(|| {
        let bench = Bench::new();
        // Large enough for a second superblock, by which it can be read without its first.
        let device = bench.create("a", "300M");
        bench.make(&device);
        write_at(&device, 1024, &[0; 1024]);
        assert_eq!(bench.probe(&device), Content::Unrecognised);
        assert!(matches!(bench.check(&device), Check::Damaged(_)));

        bench.make(&device);
        bench.mount(&device);
        (0..100).for_each(|file| fs::write(format!("/mnt/{file}"), "x").unwrap());
        must("umount", &["/mnt"]);
        assert_eq!(bench.check(&device), Check::Clean);
        let inodes = must("dumpe2fs", &[device.path.to_str().unwrap()]);
        let table = inodes.lines().find_map(|line| line.trim().strip_prefix("Inode table at ")).unwrap();
        let block: u64 = table.split('-').next().unwrap().parse().unwrap();
        write_at(&device, block * 4096 + 11 * 256, &[0xff; 4096]);
        assert!(matches!(bench.probe(&device), Content::FileSystem { .. }), "marks tell nothing of damage");
        let Check::Damaged(said) = bench.check(&device) else { panic!("not found") };
        assert!(said.contains("Inode"), "{said}");

        must("lvreduce", &["-q", "-f", "-L", "200M", "vg/a"]);
        let error = run(ext4().grow(&bench.programs, Path::new("/mnt"), &device.path)).unwrap_err();
        assert!(error.to_string().contains("do not use it"), "{error}");
    });
}

#[test]
fn what_others_made_is_told_and_never_called_empty() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "64M");
        let blank = || must("blkdiscard", &["-z", device.path.to_str().unwrap()]);
        let other = |word: &str| {
            let found = bench.probe(&device);
            assert!(matches!(&found, Content::Other(words) if words.contains(word)), "{word}: {found:?}");
        };

        must("mkswap", &[device.path.to_str().unwrap()]);
        other("swap");
        blank();
        // A partition table of the old kind with one Linux partition in it.
        let mut table = [0; 512];
        table[446..462].copy_from_slice(&[0, 2, 3, 0, 0x83, 5, 5, 0, 0, 8, 0, 0, 0, 0x40, 0, 0]);
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        write_at(&device, 0, &table);
        other("PTTYPE=dos");
        blank();
        assert_eq!(bench.probe(&device), Content::Empty);
        // The last sector counts: there lies the mark of a kind of RAID.
        bench.make(&device);
        write_at(&device, (64 << 20) - 512, b"JM");
        assert!(matches!(bench.probe(&device), Content::Other(_) | Content::Ambivalent));
    });
}

#[test]
fn a_device_that_cannot_be_read_is_not_empty() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let below = bench.create("a", "64M");
        let sectors = 64 << 11;
        let tables = [
            (
                "first",
                format!(
                    "0 2040 linear {0} 0\n2040 8 error\n2048 {1} linear {0} 2048",
                    below.number,
                    sectors - 2048
                ),
            ),
            ("last", format!("0 {1} linear {0} 0\n{1} 8 error", below.number, sectors - 8)),
            ("all", format!("0 {sectors} error")),
        ];
        for (name, table) in tables {
            must("sh", &["-c", &format!("printf '%b\\n' '{table}' | dmsetup create {name}")]);
            let path = Path::new("/dev/mapper").join(name);
            let found = run(probe(&bench.programs, &path));
            assert!(found.is_err(), "{name}: {found:?}");
            let made = run(ext4().check(&bench.programs, &path));
            assert!(!matches!(made, Ok(Check::Clean)), "{name}");
            must("dmsetup", &["remove", name]);
        }
        assert!(run(probe(&bench.programs, Path::new("/dev/mapper/nothing"))).is_err());
        assert_eq!(bench.probe(&below), Content::Empty);
    });
}

#[test]
fn a_mkfs_whose_driver_is_gone_keeps_the_lock_until_it_ends() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "64M");
        let held = lock();
        held.lock().unwrap();
        must("dmsetup", &["suspend", "vg-a"]);
        let options = MakeOptions::default();
        run(async {
            let make =
                ext4().make(&bench.programs, &device.path, uuid(), &options, held.try_clone().unwrap());
            tokio::select! {
                made = make => panic!("{made:?}"),
                () = async { while !is_running("mke2fs") { tokio::task::yield_now().await } } => {}
            }
        });
        drop(held);
        assert!(lock().try_lock().is_err(), "mke2fs runs and the lock is free");
        must("dmsetup", &["resume", "vg-a"]);
        until("the lock is free", || lock().try_lock().is_ok());
        assert!(!is_running("mke2fs"));
        assert_eq!(bench.check(&device), Check::Clean);
    });
}

/// Whether a program of that name runs and is no zombie.
fn is_running(name: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        stat.split_once(&format!("({name}) ")).is_some_and(|(_, rest)| !rest.starts_with('Z'))
    })
}

#[test]
fn a_file_system_that_has_given_up_is_dead_though_it_is_mounted() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "64M");
        let mnt = Path::new("/mnt");
        bench.make(&device);
        for options in ["rw", "ro"] {
            must("mount", &["-o", options, device.path.to_str().unwrap(), "/mnt"]);
            assert_eq!(run(health(mnt)), Health::Alive, "{options}");
            must("umount", &["/mnt"]);
        }

        bench.mount(&device);
        fs::write(format!("/sys/fs/ext4/dm-{}/trigger_fs_error", device.number.minor), "1").unwrap();
        assert!(matches!(run(health(mnt)), Health::Dead(_)), "its journal is aborted");
        must("umount", &["/mnt"]);

        bench.mount(&device);
        must("dmsetup", &["suspend", "vg-a"]);
        let waits = run(health(mnt));
        assert!(matches!(&waits, Health::Silent(words) if words.contains("no answer")), "{waits:?}");
        must("dmsetup", &["resume", "vg-a"]);
        until("it answers again", || run(health(mnt)) == Health::Alive);

        must("dmsetup", &["load", "vg-a", "--table", "0 131072 error"]);
        must("dmsetup", &["suspend", "--noflush", "--nolockfs", "vg-a"]);
        must("dmsetup", &["resume", "vg-a"]);
        assert!(matches!(run(health(mnt)), Health::Dead(_)), "its disk is gone");
    });
}
