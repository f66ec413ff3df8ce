//! Block devices of real LVs.

use std::fs::{self, File};
use std::path::Path;

use lab::Machine;
use quarry::device::{Access, DeviceError, Zeroed, zero};
use quarry::types::{Bytes, DeviceNumber};
use tokio_util::sync::CancellationToken;

use crate::storage_bench::{Bench, dirty, dm_name, first, must, node, number_of, run, until};

#[test]
fn a_volume_is_found_by_its_identity_whatever_its_name_leads_to() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let (a, b) = (bench.create("a", "16M"), bench.create("b", "20M"));
        assert_eq!((a.path.as_path(), a.number), (node("a").as_path(), number_of(&node("a"))));
        assert_eq!(run(bench.dm.size(b.number)).unwrap(), Bytes::mib(20));
        assert!(run(bench.dm.name(a.number)).unwrap().unwrap().names(&"a".parse().unwrap()));

        fs::rename(node("b"), node("a")).unwrap();
        let found = bench.find("a").unwrap();
        assert_eq!(found.number, a.number);
        assert_ne!(found.path, node("a"), "this leads to b");
        assert_eq!(bench.find("b").unwrap().number, b.number);

        must("dmsetup", &["mknodes"]);
        must("vgrename", &["-q", "vg", "other"]);
        let renamed = run(bench.dm.find(&dm_name("a"), &a.uuid)).unwrap().unwrap();
        assert_eq!((renamed.number, renamed.path.to_str()), (a.number, Some("/dev/mapper/other-a")));

        must("lvchange", &["-an", "other/a"]);
        assert_eq!(run(bench.dm.find(&dm_name("a"), &a.uuid)).unwrap(), None);
    });
}

#[test]
fn a_missing_node_is_said_to_be_missing_and_can_be_made() {
    Machine::new().disk("128M").boot(|| {
        let bench = Bench::new();
        let a = bench.create("a", "16M");
        for path in [node("a"), Path::new("/dev").join(format!("dm-{}", a.number.minor))] {
            fs::remove_file(path).unwrap();
        }
        let find = || run(bench.dm.find(&dm_name("a"), &a.uuid));
        let error = find().unwrap_err();
        assert!(matches!(&error, DeviceError::NoNode { number, .. } if *number == a.number), "{error}");

        // What lies in the way is another device's node.
        must("mkdir", &["-p", "/dev/quarry"]);
        let wrong = format!("/dev/quarry/{}", a.number);
        must("mknod", &[&wrong, "b", "7", "99"]);
        let healed = run(bench.dm.find_or_heal(&dm_name("a"), &a.uuid)).unwrap().unwrap();
        assert_eq!((healed.number, healed.path.to_str()), (a.number, Some(wrong.as_str())));
        bench.pin(&healed, Access::Exclusive);
        assert_eq!(find().unwrap().unwrap(), healed);
    });
}

#[test]
fn what_is_opened_is_what_was_meant_or_nothing_is_done() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let (a, b) = (bench.create("a", "16M"), bench.create("b", "16M"));
        let pin = |device, access| run(bench.dm.pin(device, access));

        fs::rename(node("b"), node("a")).unwrap();
        let error = pin(&a, Access::Write).unwrap_err();
        assert!(matches!(&error, DeviceError::Moved { expected, .. } if *expected == a.number), "{error}");
        fs::remove_file(node("a")).unwrap();
        fs::write(node("a"), "no device").unwrap();
        assert!(matches!(pin(&a, Access::Read), Err(DeviceError::Moved { .. })));
        fs::remove_file(node("a")).unwrap();
        must("dmsetup", &["mknodes"]);
        assert!(pin(&a, Access::Write).is_ok());

        // The same path and the same number, and another volume.
        must("lvremove", &["-q", "-y", "vg/b"]);
        let c = bench.create("c", "16M");
        assert_eq!(c.number, b.number, "device mapper gives the lowest free number");
        fs::rename(node("c"), node("b")).unwrap();
        let error = pin(&b, Access::Write).unwrap_err();
        assert!(matches!(&error, DeviceError::Replaced { .. }), "{error}");

        must("dmsetup", &["suspend", "vg-a"]);
        assert!(bench.find("a").unwrap().suspended);
        assert!(matches!(pin(&a, Access::Read), Err(DeviceError::Suspended { .. })));
        must("dmsetup", &["resume", "vg-a"]);
        assert!(!bench.find("a").unwrap().suspended);
    });
}

#[test]
fn a_pinned_device_cannot_go_away_under_its_number() {
    Machine::new().disk("128M").boot(|| {
        let bench = Bench::new();
        let a = bench.create("a", "16M");
        let pinned = bench.pin(&a, Access::Read);
        fs::remove_file(node("a")).unwrap();
        assert_eq!(number_of(&pinned.path()), a.number, "no name is needed any more");
        assert_eq!(run(pinned.size()).unwrap(), Bytes::mib(16));
        run(pinned.flush()).unwrap();
        must("sh", &["-c", "! dmsetup remove vg-a"]);
        drop(pinned);
        must("dmsetup", &["remove", "vg-a"]);
    });
}

#[test]
fn nobody_else_may_use_a_device_that_is_ours_alone() {
    Machine::new().disk("256M").boot(|| {
        let bench = Bench::new();
        let a = bench.create("a", "32M");
        let pin = |access| run(bench.dm.pin(&a, access));
        must("mkfs.ext4", &["-q", a.path.to_str().unwrap()]);
        must("mount", &[a.path.to_str().unwrap(), "/mnt"]);
        assert!(matches!(pin(Access::Exclusive), Err(DeviceError::InUse { .. })));
        assert!(pin(Access::Write).is_ok(), "a mounted device can be grown and flushed");
        must("umount", &["/mnt"]);

        assert_eq!(run(bench.dm.holders(a.number)).unwrap(), Some(Vec::new()));
        let table = format!("0 8192 linear {} 0", a.number);
        must("dmsetup", &["create", "above", "--table", &table]);
        assert_eq!(run(bench.dm.holders(a.number)).unwrap(), Some(vec!["dm-1".to_owned()]));
        let nowhere = DeviceNumber { minor: 99, ..a.number };
        assert_eq!(run(bench.dm.holders(nowhere)).unwrap(), None);
        assert!(matches!(pin(Access::Exclusive), Err(DeviceError::InUse { .. })));
        must("dmsetup", &["remove", "above"]);

        let ours = pin(Access::Exclusive).unwrap();
        assert!(matches!(pin(Access::Exclusive), Err(DeviceError::InUse { .. })));
        must("sh", &["-c", &format!("! mount {} /mnt", a.path.display())]);
        drop(ours);
        assert!(pin(Access::Exclusive).is_ok());
    });
}

#[test]
fn zeroing_zeroes_the_range_and_nothing_beside_it() {
    Machine::new().disk("512M").boot(|| {
        let bench = Bench::with_extents("4k");
        // A chunk and a tail that is no multiple of anything.
        let size = (65 << 20) + (12 << 10);
        let before = bench.create("before", "8M");
        let device = bench.create("a", &format!("{size}b"));
        let after = bench.create("after", "8M");
        [&before, &device, &after].iter().for_each(|device| dirty(&device.path));
        let zero_range = |range| {
            let pinned = bench.pin(&device, Access::Exclusive);
            run(zero(&pinned, range, None, CancellationToken::new()))
        };

        let part = 4096 + 512..(64 << 20) + (8 << 10);
        assert_eq!(zero_range(part.clone()).unwrap(), Zeroed::Done);
        assert_eq!(first(&device.path, 0..part.start, |byte| byte != 0x5a), None);
        assert_eq!(first(&device.path, part.clone(), |byte| byte != 0), None);
        assert_eq!(first(&device.path, part.end..size, |byte| byte != 0x5a), None);

        assert_eq!(zero_range(0..size).unwrap(), Zeroed::Done);
        // Past the page cache too: what was dirty there must not come back.
        must("sh", &["-c", "echo 3 > /proc/sys/vm/drop_caches"]);
        assert_eq!(first(&device.path, 0..size, |byte| byte != 0), None);
        for beside in [before, after] {
            assert_eq!(first(&beside.path, 0..8 << 20, |byte| byte != 0x5a), None);
        }

        for wrong in [0..size + 512, 0..511, 1..512, size + 512..size + 1024] {
            assert!(matches!(zero_range(wrong), Err(DeviceError::Range { .. })));
        }
        assert_eq!(zero_range(size..size).unwrap(), Zeroed::Done);
    });
}

#[test]
fn zeroing_stops_at_the_next_chunk_and_keeps_its_lock_until_then() {
    Machine::new().disk("512M").boot(|| {
        let bench = Bench::new();
        let device = bench.create("a", "200M");
        dirty(&device.path);
        let lock = || File::options().create(true).append(true).open("/tmp/lock").unwrap();
        let held = lock();
        held.lock().unwrap();
        run(async {
            let pinned = bench.dm.pin(&device, Access::Exclusive).await.unwrap();
            let stop = CancellationToken::new();
            must("dmsetup", &["suspend", "vg-a"]);
            let share = held.try_clone().unwrap();
            let work = tokio::task::spawn_blocking({
                let (pinned, stop) = (pinned.clone(), stop.clone());
                move || {
                    tokio::runtime::Handle::current().block_on(zero(&pinned, 0..200 << 20, Some(share), stop))
                }
            });
            until("the first chunk waits for the disk", is_a_thread_in_the_disk);
            stop.cancel();
            drop((held, pinned));
            assert!(lock().try_lock().is_err(), "the work that was begun still writes");
            must("dmsetup", &["resume", "vg-a"]);
            assert_eq!(work.await.unwrap().unwrap(), Zeroed::Stopped { at: 64 << 20 });
            until("the lock is free", || lock().try_lock().is_ok());
        });
        assert_eq!(first(&device.path, 0..64 << 20, |byte| byte != 0), None);
        assert_eq!(first(&device.path, 64 << 20..200 << 20, |byte| byte != 0x5a), None);
    });
}

/// Whether a thread of this process waits for a disk, and nothing else can wake it.
fn is_a_thread_in_the_disk() -> bool {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    threads.flatten().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('D'))
    })
}

/// The kernel answers for a device that is being removed with errors of several kinds.
#[test]
fn devices_that_come_and_go_do_not_disturb_the_look_for_another() {
    const ROUNDS: usize = 60;
    Machine::new().disk("128M").boot(|| {
        let bench = Bench::new();
        let a = bench.create("a", "16M");
        let gone = "LVM-gone".parse().unwrap();
        let others = std::thread::spawn(|| {
            for _ in 0..ROUNDS {
                must("dmsetup", &["create", "other", "--uuid", "LVM-gone", "--table", "0 8 zero"]);
                must("dmsetup", &["remove", "other"]);
            }
        });
        while !others.is_finished() {
            for uuid in [&a.uuid, &gone] {
                // Nothing has the name, so that all devices are looked at.
                let found = run(bench.dm.find(&dm_name("none"), uuid)).unwrap();
                assert!(found.is_some() || *uuid == gone, "a is not found");
            }
        }
        others.join().unwrap();
    });
}
