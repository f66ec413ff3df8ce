//! What the tests of storage work on: a volume group in a guest, and short words for what they do to it.

use std::fs::{self, File};
use std::future::Future;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use quarry::device::{Access, BlockDevice, Dm, Pinned};
use quarry::exec::{Host, Program, Programs};
use quarry::types::{DeviceNumber, DmName, DmUuid, TargetPath};

/// How long anything may take that the tests wait for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A group called `vg` on the machine's first disk.
pub(crate) struct Bench {
    pub(crate) dm: Dm,
    pub(crate) programs: Host,
}

/// Runs a program that must succeed, and gives what it said.
pub(crate) fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs asynchronous code in a test's closure, which is not.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let bounded = async { tokio::time::timeout(PATIENCE * 3, work).await };
    let ended = runtime.block_on(bounded).expect("the test hangs");
    runtime.shutdown_background();
    ended
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "in vain waited until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn target(path: &str) -> TargetPath {
    path.parse().unwrap()
}

impl Bench {
    /// With physical extents of that size, as vgcreate takes it.
    pub(crate) fn with_extents(size: &str) -> Self {
        let disk = lab::disks().remove(0);
        must("vgcreate", &["-q", "-s", size, "vg", disk.to_str().unwrap()]);
        Self { dm: Dm::new("/dev/quarry"), programs: Host::new(Programs::find(&Program::ALL).unwrap()) }
    }

    pub(crate) fn new() -> Self {
        Self::with_extents("4M")
    }

    /// Makes an LV, and leaves whatever is on the disk where it comes to lie.
    pub(crate) fn create(&self, name: &str, size: &str) -> BlockDevice {
        must("lvcreate", &["-q", "-y", "-Wn", "-Zn", "-L", size, "-n", name, "vg"]);
        self.find(name).unwrap()
    }

    /// The device-mapper identity of an LV, as LVM has it.
    pub(crate) fn uuid(&self, name: &str) -> DmUuid {
        let row = must("lvs", &["--noheadings", "-o", "vg_uuid,lv_uuid", &format!("vg/{name}")]);
        let mut uuids = row.split_whitespace();
        let (vg, lv) = (uuids.next().unwrap(), uuids.next().unwrap());
        DmUuid::of(&vg.parse().unwrap(), &lv.parse().unwrap())
    }

    pub(crate) fn find(&self, name: &str) -> Option<BlockDevice> {
        run(self.dm.find(&dm_name(name), &self.uuid(name))).unwrap()
    }

    pub(crate) fn pin(&self, device: &BlockDevice, access: Access) -> Pinned {
        run(self.dm.pin(device, access)).unwrap()
    }
}

pub(crate) fn dm_name(lv: &str) -> DmName {
    DmName::of(&"vg".parse().unwrap(), &lv.parse().unwrap())
}

/// The node that LVM makes for an LV.
pub(crate) fn node(lv: &str) -> PathBuf {
    Path::new("/dev/mapper").join(dm_name(lv).as_str())
}

pub(crate) fn number_of(path: &Path) -> DeviceNumber {
    DeviceNumber::from_dev(fs::metadata(path).unwrap().rdev())
}

/// Fills a device with bytes that are no zeroes.
pub(crate) fn dirty(device: &Path) {
    let mut file = File::options().write(true).open(device).unwrap();
    let size = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    let garbage = vec![0x5a; 4 << 20];
    let mut at = 0;
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(garbage.len()).min(garbage.len());
        file.write_all_at(&garbage[..length], at).unwrap();
        at += length as u64;
    }
    file.sync_all().unwrap();
}

/// The first byte of a range for which `wrong` holds.
pub(crate) fn first(device: &Path, range: std::ops::Range<u64>, wrong: impl Fn(u8) -> bool) -> Option<u64> {
    let file = File::open(device).unwrap();
    let mut at = range.start;
    let mut chunk = vec![0; 4 << 20];
    while at < range.end {
        let length = usize::try_from(range.end - at).unwrap_or(chunk.len()).min(chunk.len());
        file.read_exact_at(&mut chunk[..length], at).unwrap();
        if let Some(found) = chunk[..length].iter().position(|byte| wrong(*byte)) {
            return Some(at + found as u64);
        }
        at += length as u64;
    }
    None
}
