//! Test functions in a guest: devices, file systems, restarts.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lab::Machine;

use crate::{PATIENCE, must, wait_until};

#[test]
fn lvm_works() {
    Machine::new().disk("1G").boot(|| {
        let disk = lab::disks().remove(0);
        must("vgcreate", &["vg", disk.to_str().unwrap()]);
        must("lvcreate", &["-L", "64M", "-n", "lv", "vg"]);
        must("mkfs.ext4", &["-q", "/dev/vg/lv"]);
        must("mount", &["/dev/vg/lv", "/mnt"]);
        fs::write("/mnt/file", "content").unwrap();
        must("lvextend", &["-r", "-L", "128M", "vg/lv"]);
        for target in ["dm-snapshot", "dm-thin-pool", "dm-raid", "dm-flakey", "dm-log-writes"] {
            must("modprobe", &[target]);
        }
        must("lvcreate", &["-s", "-L", "16M", "-n", "snap", "vg/lv"]);
        assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    });
}

#[test]
fn udev_runs_only_when_it_is_asked_for() {
    Machine::new().disk("100M").udev().boot(|| {
        assert!(std::env::var_os("DM_DISABLE_UDEV").is_none());
        must("vgcreate", &["vg", "/dev/ubda"]);
        must("lvcreate", &["-L", "8M", "-n", "lv", "vg"]);
        assert!(fs::read_link("/dev/mapper/vg-lv").is_ok(), "udev makes links where LVM alone makes nodes");
        must("udevadm", &["info", "/dev/mapper/vg-lv"]);
    });
    Machine::new().boot(|| {
        assert_eq!(std::env::var("DM_DISABLE_UDEV").unwrap(), "1");
        assert!(!Path::new("/run/udev").exists());
    });
}

#[test]
fn the_root_is_the_guests_own() {
    Machine::new().boot(|| {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(table.lines().next().unwrap().contains(" / / rw,relatime - overlay "), "{table}");
        assert!(Path::new("/sys/fs/cgroup/cgroup.controllers").exists());
        let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(local.local_addr().unwrap()).unwrap();
    });
}

#[test]
fn disks_keep_their_content_from_boot_to_boot() {
    let machine = Machine::new().disk("100M").disk("100M").env("COLOUR", "blue");
    machine.boot(|| {
        assert_eq!(lab::disks(), ["/dev/ubda", "/dev/ubdb"].map(PathBuf::from));
        must("mkfs.ext4", &["-q", "/dev/ubdb"]);
        must("mount", &["/dev/ubdb", "/mnt"]);
        // Not synced: a machine that is turned off in good order loses nothing.
        fs::write("/mnt/file", "content").unwrap();
    });
    machine.boot(|| {
        assert_eq!(std::env::var("COLOUR").unwrap(), "blue");
        assert!(must("dumpe2fs", &["-h", "/dev/ubdb"]).contains("Filesystem state:         clean"));
        must("mount", &["/dev/ubdb", "/mnt"]);
        assert_eq!(fs::read_to_string("/mnt/file").unwrap(), "content");
    });
}

#[test]
fn a_power_cut_loses_what_was_not_synced_and_nothing_else() {
    let machine = Machine::new().disk("100M").disk("100M");
    machine.boot_until_power_cut(|| {
        let mut synced = File::options().write(true).open("/dev/ubda").unwrap();
        synced.write_all(b"synced").unwrap();
        synced.sync_all().unwrap();
        let mut cached = File::options().write(true).open("/dev/ubdb").unwrap();
        cached.write_all(b"cached").unwrap();
        // Closing the last descriptor of a disk would write it out.
        std::mem::forget(cached);
        lab::power_cut();
    });
    machine.boot(|| {
        assert_eq!(fs::read("/dev/ubda").unwrap()[..6], *b"synced");
        assert_eq!(fs::read("/dev/ubdb").unwrap()[..6], [0; 6]);
    });
}

#[test]
fn the_host_can_cut_the_power() {
    let machine = Machine::new().disk("100M");
    machine.boot_with(
        |host| {
            host.wait_for("written", PATIENCE).unwrap();
            host.cut_power().unwrap();
        },
        || {
            let mut disk =
                File::options().write(true).custom_flags(nix::libc::O_DSYNC).open("/dev/ubda").unwrap();
            disk.write_all(b"synced").unwrap();
            lab::tell("written").unwrap();
            std::thread::sleep(PATIENCE);
        },
    );
    machine.boot(|| assert_eq!(fs::read("/dev/ubda").unwrap()[..6], *b"synced"));
}

#[test]
fn disks_can_be_added_and_pulled_while_the_guest_runs() {
    let machine = Machine::new().disk("100M");
    machine.boot_with(
        |host| {
            host.wait_for("up", PATIENCE).unwrap();
            let disk = host.add_disk("64M").unwrap();
            assert_eq!(disk, Path::new("/dev/ubdb"));
            host.wait_for("used", PATIENCE).unwrap();
            host.remove_disk(&disk).unwrap();
            host.tell("pulled").unwrap();
        },
        || {
            lab::tell("up").unwrap();
            wait_until("the new disk is there", || Path::new("/dev/ubdb").exists());
            must("pvcreate", &["/dev/ubdb"]);
            lab::tell("used").unwrap();
            lab::wait_for("pulled", PATIENCE).unwrap();
            wait_until("the disk is gone", || !Path::new("/dev/ubdb").exists());
        },
    );
}

#[test]
fn the_host_sees_the_guests_clock_move() {
    Machine::new().boot_with(
        |host| {
            host.wait_for("up", PATIENCE).unwrap();
            assert!(!host.has_ended());
            let first = host.uptime().unwrap();
            wait_until("the clock has moved", || host.uptime().unwrap() > first);
            host.tell("seen").unwrap();
        },
        || {
            lab::tell("up").unwrap();
            lab::wait_for("seen", PATIENCE).unwrap();
        },
    );
}

#[test]
fn raid_6_works_where_it_is_asked_for() {
    let machine = (0..5).fold(Machine::new().raid6(), |machine, _| machine.disk("64M"));
    machine.boot(|| {
        let disks = lab::disks();
        let disks = disks.iter().map(|disk| disk.to_str().unwrap());
        must("vgcreate", &["vg"].into_iter().chain(disks).collect::<Vec<_>>());
        must("lvcreate", &["--type", "raid6", "--stripes", "3", "-L", "24M", "-n", "lv", "vg"]);
        must("mkfs.ext4", &["-q", "/dev/vg/lv"]);
        let is_in_sync = || must("lvs", &["--noheadings", "-o", "sync_percent", "vg/lv"]).trim() == "100.00";
        wait_until("the parity is made", is_in_sync);
    });
}
