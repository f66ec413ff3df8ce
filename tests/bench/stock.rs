//! The other side: LVM's own commands on the machine's own configuration, each a process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::samples::Samples;
use crate::driver::VG;

/// Where stock commands keep the metadata as it was before each change. They read all names in it, and delete
/// none that is younger than a month.
const ARCHIVE: &str = "/etc/lvm/archive";

/// Empties the archive, so that it makes no command slower than those before.
pub(super) fn empty_archive() {
    if Path::new(ARCHIVE).exists() {
        std::fs::remove_dir_all(ARCHIVE).unwrap();
    }
}

/// Runs a program of the host, which must succeed, and tells how long it took from its start to its exit.
pub(super) fn timed(program: &str, arguments: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    let begin = Instant::now();
    let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let time = begin.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {stderr}", output.status);
    time
}

/// An LV that stock commands make, change and remove.
pub(super) struct Lv(String);

impl Lv {
    pub(super) fn named(name: &str) -> Self {
        Self(format!("{VG}/{name}"))
    }

    pub(super) fn device(&self) -> String {
        format!("/dev/{}", self.0)
    }

    /// As the driver makes its own: nothing is wiped, since a file system or zeroes are written next.
    pub(super) fn create(&self, size: u64) -> Duration {
        let size = format!("{size}b");
        timed("lvcreate", &["-q", "-y", "-Wn", "-Zn", "-L", &size, "-n", &self.0[VG.len() + 1..], VG])
    }

    pub(super) fn extend(&self, size: u64) -> Duration {
        timed("lvextend", &["-q", "-L", &format!("{size}b"), &self.0])
    }

    /// With the mounted file system.
    pub(super) fn extend_mounted(&self, size: u64) -> Duration {
        timed("lvextend", &["-q", "-r", "-L", &format!("{size}b"), &self.0])
    }

    pub(super) fn remove(&self) -> Duration {
        timed("lvremove", &["-q", "-y", &self.0])
    }

    /// Makes an ext4 and mounts it. Nothing is discarded: on large disks that takes minutes, and the driver does
    /// not do it either.
    pub(super) fn mkfs_and_mount(&self, target: &Path) -> Duration {
        let device = self.device();
        timed("mkfs.ext4", &["-q", "-E", "nodiscard", &device])
            + timed("mount", &[&device, target.to_str().unwrap()])
    }

    pub(super) fn unmount(&self) {
        timed("umount", &[&self.device()]);
    }
}

/// What it costs here to start a process that does nothing: part of all that is measured of stock commands.
pub(super) fn empty_process(samples: usize) -> Samples {
    (0..samples).map(|_| timed("/bin/true", &[])).collect()
}
