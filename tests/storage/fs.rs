//! File systems on real LVs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::Machine;
use quarry::device::{Access, BlockDevice};
use quarry::exec::{ExecError, Host, Invocation, Output, Runner};
use quarry::fs::{Check, Content, FileSystem, Growth, Health, health, of, probe, usage};
use quarry::types::{Bytes, FsType, FsUuid};

use crate::storage_bench::{Bench, dirty, must, run, until};

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
        let pinned = self.pin(device, Access::Write);
        run(ext4().make(&self.programs, &pinned.path(), uuid(), lock())).unwrap();
        run(pinned.flush()).unwrap();
    }

    fn check(&self, device: &BlockDevice) -> Check {
        let pinned = self.pin(device, Access::Read);
        run(ext4().check(&self.programs, &pinned.path())).unwrap()
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
    Machine::new().disk("512M").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "100M");
        assert_eq!(bench.probe(&device), Content::Empty);
        dirty(&device.path);
        assert_eq!(bench.probe(&device), Content::Unrecognised);
        bench.make(&device);
        let ours = Content::FileSystem { fs_type: FsType::Ext4, uuid: uuid() };
        assert_eq!(bench.probe(&device), ours);
        assert_eq!(bench.check(&device), Check::Clean);
        assert_eq!(run(ext4().size(&device.path, None)).unwrap(), Bytes::mib(100));
        // Made again over itself, as after an interruption, without a question.
        bench.make(&device);
        assert_eq!(bench.check(&device), Check::Clean);

        bench.mount(&device);
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(table.contains(" /mnt "), "{table}");
        let found = run(usage(Path::new("/mnt"))).unwrap();
        let kept = found.bytes.total - found.bytes.used - found.bytes.available;
        assert!(
            kept <= found.bytes.total / 40,
            "nothing is kept for root, and {kept} bytes of {found:?} are"
        );
        assert!(found.inodes.total > 6000 && found.inodes.available < found.inodes.total);
        let error = run(ext4().make(&bench.programs, &device.path, uuid(), lock())).unwrap_err();
        assert!(error.to_string().contains("mounted"), "{error}");
        must("umount", &["/mnt"]);
        assert_eq!(bench.check(&device), Check::Clean);
    });
}

#[test]
fn the_smallest_device_takes_a_file_system_with_a_journal() {
    Machine::new().disk("128M").boot(|| {
        let bench = Bench::new();
        let mib = ext4().limits().minimum.get() >> 20;
        let device = bench.create("a", &format!("{mib}M"));
        bench.make(&device);
        bench.mount(&device);
        assert!(must("dumpe2fs", &["-h", device.path.to_str().unwrap()]).contains("has_journal"));
        fs::write("/mnt/file", vec![1; 8 << 20]).unwrap();
    });
}

#[test]
fn a_mounted_file_system_grows_to_its_device_and_no_program_runs_in_vain() {
    Machine::new().disk("2G").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "64M");
        bench.make(&device);
        bench.mount(&device);
        fs::write("/mnt/file", "content").unwrap();
        let _ = fs::remove_file("/etc/mtab");
        let runner = Counting(&bench.programs, AtomicUsize::new(0));
        let grow = || {
            let pinned = bench.pin(&device, Access::Read);
            run(ext4().grow(&runner, Path::new("/mnt"), &pinned.path())).unwrap()
        };
        assert_eq!((grow(), runner.1.load(Ordering::Relaxed)), (Growth::Nothing, 0));

        // Within a block group, over its border, and with a last group too small for its own tables.
        for (from, to) in [(64, 100), (100, 900), (900, 1024)] {
            must("lvextend", &["-q", "-L", &format!("{to}M"), "vg/a"]);
            assert_eq!(grow(), Growth::Grown { from: Bytes::mib(from), to: Bytes::mib(to) });
            let before = runner.1.load(Ordering::Relaxed);
            assert_eq!((grow(), runner.1.load(Ordering::Relaxed)), (Growth::Nothing, before));
            assert_eq!(run(ext4().size(&device.path, Some(Path::new("/mnt")))).unwrap(), Bytes::mib(to));
        }
        must("lvextend", &["-q", "-L", "1028M", "vg/a"]);
        let size = run(ext4().size(&device.path, None)).unwrap();
        grow();
        let grown = run(ext4().size(&device.path, None)).unwrap();
        assert!(grown >= size && grown <= Bytes::mib(1028));
        assert_eq!(grow(), Growth::Nothing);
        assert!(run(usage(Path::new("/mnt"))).unwrap().bytes.total > 900 << 20);
        assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
        must("umount", &["/mnt"]);
        assert_eq!(bench.check(&device), Check::Clean);
    });
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
        run(async {
            let make = ext4().make(&bench.programs, &device.path, uuid(), held.try_clone().unwrap());
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
        assert!(matches!(&waits, Health::Dead(words) if words.contains("no answer")), "{waits:?}");
        must("dmsetup", &["resume", "vg-a"]);
        until("it answers again", || run(health(mnt)) == Health::Alive);

        must("dmsetup", &["load", "vg-a", "--table", "0 131072 error"]);
        must("dmsetup", &["suspend", "--noflush", "--nolockfs", "vg-a"]);
        must("dmsetup", &["resume", "vg-a"]);
        assert!(matches!(run(health(mnt)), Health::Dead(_)), "its disk is gone");
    });
}
