//! The driver is killed at each of its changes to the mount table, and the call repeated by its successor.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::strace::Tracer;
use crate::driver::{self, Driver, Mode, VG, Volume, folder, make_group, sh, until};

/// The place in which the driver makes a mount ready.
const ASIDE: &str = "/run/quarry/mounts";

/// What each mount at a path or below it is mounted with.
fn options_below(path: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let fields = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields
        .filter(|fields| Path::new(fields[4]).starts_with(path))
        .map(|fields| fields[5].to_owned())
        .collect()
}

/// Holds that nothing is at the path through which anybody could write.
#[track_caller]
fn is_not_writable(path: &Path, when: &str) {
    for options in options_below(path) {
        assert!(options.split(',').any(|option| option == "ro"), "{when}: {options}");
    }
}

/// Publishes a volume for reading again and again, with a kill one change later each time, until one publish gets
/// through. Gives the number of changes that it makes. The place aside is as after a boot each time.
async fn kill_at_every_mount(mode: Mode) -> usize {
    let mut driver = Driver::start().await;
    let volume = Volume::create(&driver.client().await, mode.word(), mode).await;
    volume.stage().await.unwrap();
    let target = folder("pods").join(mode.word());
    for number in 1.. {
        let publish = async |driver: &Driver| {
            let volume = volume.with(&driver.client().await);
            volume.publish_as(&target, |request| request.readonly = true).await
        };
        let tracer = Tracer::kill_at_mount(driver.pid(), number).await;
        let outcome = publish(&driver).await;
        if outcome.is_err() {
            until("the driver is dead", async || driver.has_ended()).await;
        }
        drop(tracer);
        is_not_writable(&target, &format!("killed at change {number}"));
        if outcome.is_err() {
            driver = Driver::start().await;
            until("what was left is taken away", async || left_aside() == 0).await;
        }
        publish(&driver).await.unwrap();
        assert_eq!((options_below(&target).len(), left_aside()), (1, 0));
        is_not_writable(&target, "in the end");
        if mode != Mode::Block {
            let refusal = fs::write(target.join("file"), "x").unwrap_err();
            assert_eq!(refusal.kind(), ErrorKind::ReadOnlyFilesystem);
        }
        driver.client().await.unpublish(&volume.id, &target).await.unwrap();
        sh(&format!("if mountpoint -q {ASIDE}; then umount {ASIDE}; fi"));
        if outcome.is_ok() {
            volume.with(&driver.client().await).unstage().await.unwrap();
            volume.with(&driver.client().await).delete().await.unwrap();
            return number - 1;
        }
    }
    unreachable!("a publish has an end")
}

/// How many mounts are left in the place aside.
fn left_aside() -> usize {
    ["folder", "file"].iter().map(|name| options_below(&Path::new(ASIDE).join(name)).len()).sum()
}

/// Whether mounts on the machine are shared, as systemd makes them and as they are in a container, decides where
/// mounts may be moved from.
#[test]
fn a_kill_at_any_mount_of_a_publish_for_reading_leaves_nothing_writable_and_nothing_in_the_way() {
    for (shared, least) in [("shared", 5), ("private", 3)] {
        lab::Machine::new().disk("256M").boot(|| {
            make_group(VG, &lab::disks());
            sh(&format!("mount --make-r{shared} /"));
            driver::run(async {
                for mode in [Mode::Ext4, Mode::Block] {
                    let changes = kill_at_every_mount(mode).await;
                    assert!(changes >= least, "{shared}: the driver was killed {changes} times only");
                }
            });
        });
    }
}
