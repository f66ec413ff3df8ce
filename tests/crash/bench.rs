//! What the crash tests share: how calls are repeated, and what must hold after them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tonic::{Code, Status};

use super::{name, staging, trap};
use crate::driver::{MIB, Mode, VG, command, report};

/// How long a call is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// What former tenants have left on the disk.
pub(super) const DIRT: u8 = 0xaa;

/// Repeats a call as Kubernetes does, until it is done. Answers other than "come again" end the test.
pub(super) async fn repeat<T>(mut call: impl AsyncFnMut() -> Result<T, Status>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(status) if is_come_again(&status) && Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(status) => panic!("{status}\nThe driver had passed:\n{}", trap::passed()),
        }
    }
}

/// Whether the caller is to come again.
pub(super) fn is_come_again(status: &Status) -> bool {
    matches!(status.code(), Code::Aborted | Code::Unavailable)
}

/// An LV, as stock LVM shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lv {
    pub(crate) size: u64,
    /// The letter of its state.
    pub(crate) state: String,
    pub(crate) uuid: String,
}

/// Every LV of the group, hidden ones of ours included.
pub(crate) fn lvs() -> BTreeMap<String, Lv> {
    let row = |line: String| {
        let fields: Vec<&str> = line.split('|').collect();
        let state = fields[2].split(',').find_map(|tag| tag.strip_prefix("q.s="));
        let lv = Lv {
            size: fields[1].parse().unwrap(),
            state: state.unwrap_or_default().to_owned(),
            uuid: fields[3].to_owned(),
        };
        (fields[0].to_owned(), lv)
    };
    report("lvs", "lv_name,lv_size,lv_tags,lv_uuid", VG).into_iter().map(row).collect()
}

/// Holds that there are exactly these LVs, of these sizes and in these states, and nothing else of them:
/// no other device, none suspended, no lock file.
#[track_caller]
pub(crate) fn holds_exactly<'a>(expected: impl IntoIterator<Item = (&'a str, u64, &'a str)>) {
    let expected: BTreeSet<_> = expected.into_iter().collect();
    let lvs = lvs();
    let found: BTreeSet<_> =
        lvs.iter().map(|(name, lv)| (name.as_str(), lv.size, lv.state.as_str())).collect();
    assert_eq!(found, expected, "the driver had passed:\n{}", trap::passed());
    let of_lvs: BTreeSet<String> = lvs.keys().map(|name| dm_name(name)).collect();
    for (name, suspended) in devices() {
        assert!(of_lvs.contains(&name), "the device {name} has no LV any more\n{}", trap::passed());
        assert!(!suspended, "the device {name} is suspended\n{}", trap::passed());
    }
    for uuid in lock_files() {
        assert!(lvs.values().any(|lv| lv.uuid == uuid), "{uuid} is gone, and its lock file is there");
    }
}

fn dm_name(lv: &str) -> String {
    format!("{VG}-{}", lv.replace('-', "--"))
}

/// The path at which LVM shows an LV.
pub(crate) fn device(lv: &str) -> PathBuf {
    Path::new("/dev/mapper").join(dm_name(lv))
}

/// LVM's devices, and whether each is suspended.
pub(crate) fn devices() -> Vec<(String, bool)> {
    let table =
        command("dmsetup", &["info", "-c", "--noheadings", "--separator", "|", "-o", "name,suspended"]);
    let row = |line: &str| {
        let (name, suspended) = line.split_once('|')?;
        Some((name.trim().to_owned(), suspended.trim() == "Suspended"))
    };
    table.lines().filter_map(row).filter(|(name, _)| name.starts_with(VG)).collect()
}

/// The LVs for which the driver has a lock file.
pub(crate) fn lock_files() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/quarry/volumes") else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".lock").map(str::to_owned)).collect()
}

/// Free bytes of the group.
pub(crate) fn free() -> u64 {
    report("vgs", "vg_free", VG)[0].parse().unwrap()
}

/// Fills all that is free in the group with [`DIRT`].
pub(super) fn dirty_free_space() {
    command("lvcreate", &["-q", "-y", "-Wn", "-Zn", "-n", "dirt", "-l", "100%FREE", VG]);
    let size = lvs()["dirt"].size;
    fill(&device("dirt"), 0, size, DIRT);
    command("lvremove", &["-q", "-y", &format!("{VG}/dirt")]);
}

/// Writes `byte` over a part of a device, for good.
pub(super) fn fill(path: &Path, from: u64, to: u64, byte: u8) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(from)).unwrap();
    let chunk = vec![byte; usize::try_from(MIB).unwrap()];
    let mut left = to - from;
    while left > 0 {
        let length = left.min(MIB);
        file.write_all(&chunk[..usize::try_from(length).unwrap()]).unwrap();
        left -= length;
    }
    file.sync_all().unwrap();
}

/// Holds that each byte of a part of a device is `byte`.
#[track_caller]
pub(super) fn holds_only(path: &Path, from: u64, to: u64, byte: u8) {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(from)).unwrap();
    let mut chunk = vec![0; usize::try_from(MIB).unwrap()];
    let mut at = from;
    while at < to {
        let length = usize::try_from(MIB.min(to - at)).unwrap();
        file.read_exact(&mut chunk[..length]).unwrap();
        if let Some(wrong) = chunk[..length].iter().position(|found| *found != byte) {
            let (place, found) = (at + wrong as u64, chunk[wrong]);
            panic!("{} holds {found:#x} at {place}, not {byte:#x}\n{}", path.display(), trap::passed());
        }
        at += length as u64;
    }
}

/// How much of its device the file system of a staged volume takes up.
pub(super) fn size_of_staged(number: usize, mode: Mode) -> u64 {
    size_of_mounted(&device(&name(number)), &staging(number), mode)
}

/// How much of its device a file system takes up that is mounted there.
pub(crate) fn size_of_mounted(device: &Path, mounted: &Path, mode: Mode) -> u64 {
    let told = || nix::sys::statvfs::statvfs(mounted).unwrap().blocks() * 4096;
    match mode {
        Mode::Ext4 => file_system_size(device),
        // It leaves its log out, which is that large in all of these tests.
        Mode::Xfs => told() + 64 * MIB,
        Mode::Btrfs => told(),
        Mode::Block => panic!("a raw volume has no file system"),
    }
}

/// How much of a device its ext4 takes up, by its superblock.
pub(super) fn file_system_size(device: &Path) -> u64 {
    let text = command("dumpe2fs", &["-h", device.to_str().unwrap()]);
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse::<u64>();
    field("Block count:").unwrap() * field("Block size:").unwrap()
}
