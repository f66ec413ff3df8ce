//! A volume group on two disks of which everything is recorded, with marks of what happened when.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use lab::{Entry, WriteLog};

use super::bench::DIRT;
use crate::driver::{MIB, VG, command, make_group, sh};

/// The devices that record all that is written to the disks.
const RECORDED: [&str; 2] = ["recorded-a", "recorded-b"];

/// The devices under the group, each a part of a disk or of what records it, so that LVM finds its label once only.
const UNDER: [&str; 2] = ["under-a", "under-b"];

/// How large each disk is.
const SIZE: u64 = 64 * MIB;

/// Who marks holds this, so that the marks of both logs are in one order.
const TURN: &str = "/run/recorder.lock";

/// The files of a recording, on the host: of each disk what it held at the beginning, what it holds, and the log.
pub(super) struct Files(tempfile::TempDir);

impl Files {
    /// New ones: disks full of what former tenants left. In a guest they are of no use.
    pub(super) fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        if lab::is_guest() {
            return files;
        }
        let mut content = vec![DIRT; usize::try_from(SIZE).unwrap()];
        // Where the devices under the group begin, nothing may look like anything.
        content[..usize::try_from(2 * MIB).unwrap()].fill(0);
        for disk in 0..RECORDED.len() {
            fs::write(files.path("disk", disk), &content).unwrap();
            fs::write(files.path("first", disk), &content).unwrap();
            File::create(files.path("log", disk)).unwrap().set_len(8 * SIZE).unwrap();
        }
        files
    }

    fn path(&self, what: &str, disk: usize) -> PathBuf {
        self.0.path().join(format!("{what}-{disk}"))
    }

    /// The machine on which it is recorded.
    pub(super) fn machine(&self) -> lab::Machine {
        let disks = (0..RECORDED.len()).flat_map(|disk| [self.path("disk", disk), self.path("log", disk)]);
        disks.fold(lab::Machine::new(), lab::Machine::disk_file)
    }

    /// What was recorded.
    pub(super) fn recording(&self) -> Recording<'_> {
        let logs = [0, 1].map(|disk| WriteLog::open(&self.path("log", disk)).unwrap());
        let marks = logs.each_ref().map(|log| {
            let entries = log.entries().iter().enumerate();
            let mark = |(place, entry): (usize, &Entry)| match entry {
                Entry::Mark(words) => Some((words.clone(), place)),
                Entry::Write { .. } | Entry::Flush | Entry::Discard => None,
            };
            entries.filter_map(mark).collect::<Vec<_>>()
        });
        let [a, b] = marks;
        assert!(a.iter().map(|(words, _)| words).eq(b.iter().map(|(words, _)| words)), "{a:?} {b:?}");
        let spans = a.windows(2).zip(b.windows(2));
        let windows = spans.scan(String::new(), |answered, (a, b)| {
            if let Some(step) = a[0].0.strip_prefix(ANSWERED) {
                step.clone_into(answered);
            }
            Some(Window { answered: answered.clone(), places: [a[0].1..=a[1].1, b[0].1..=b[1].1] })
        });
        Recording { files: self, windows: windows.collect(), logs }
    }
}

/// How a mark begins that tells of an answer.
const ANSWERED: &str = "answered-";

/// In the guest: makes the group [`VG`] on the disks, and records everything from now on.
pub(super) fn start() {
    let disks = lab::disks();
    for (device, disk) in RECORDED.iter().zip(disks.chunks(2)) {
        let (disk, log) = (disk[0].display(), disk[1].display());
        let table = format!("0 $(blockdev --getsz {disk}) log-writes {disk} {log}");
        sh(&format!("dmsetup create {device} --table \"{table}\""));
    }
    attach(&paths(RECORDED));
    make_group(VG, &paths(UNDER));
    for device in paths(RECORDED) {
        File::open(device).unwrap().sync_all().unwrap();
    }
}

/// In a guest: makes the devices under the group, on disks that were cut or on what records them.
pub(super) fn attach(disks: &[PathBuf]) {
    for (device, disk) in UNDER.iter().zip(disks) {
        let disk = disk.display();
        let table = format!("0 $(($(blockdev --getsz {disk}) - 2048)) linear {disk} 2048");
        sh(&format!("dmsetup create {device} --table \"{table}\""));
    }
}

/// In the guest: the end of it.
pub(super) fn stop() {
    command("vgchange", &["-q", "-an", VG]);
    for device in UNDER.into_iter().chain(RECORDED) {
        command("dmsetup", &["remove", device]);
    }
}

fn paths(devices: [&str; 2]) -> Vec<PathBuf> {
    devices.map(|device| Path::new("/dev/mapper").join(device)).into()
}

/// In the guest: marks that a step was answered.
pub(super) fn answered(step: &str) {
    mark(&format!("{ANSWERED}{step}"));
}

/// In the guest: marks this moment in both logs.
pub(super) fn mark(words: &str) {
    let turn = File::create(TURN).unwrap();
    turn.lock().unwrap();
    for device in RECORDED {
        command("dmsetup", &["message", device, "0", "mark", words]);
    }
}

/// What was recorded of both disks.
pub(super) struct Recording<'a> {
    files: &'a Files,
    /// In their order.
    pub(super) windows: Vec<Window>,
    logs: [WriteLog; 2],
}

/// What was written to the disks between two marks. The disks know nothing of each other, so that each may have come
/// to any point of it when the power is cut.
#[derive(Debug)]
pub(super) struct Window {
    /// The step that was last answered before; empty at the beginning.
    pub(super) answered: String,
    /// The places in the logs.
    pub(super) places: [std::ops::RangeInclusive<usize>; 2],
}

impl Recording<'_> {
    /// Two disks as they may be when each has come to that place of its log.
    pub(super) fn cut(&self, places: [usize; 2]) -> [PathBuf; 2] {
        [0, 1].map(|disk| {
            let path = self.files.path("cut", disk);
            fs::copy(self.files.path("first", disk), &path).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            self.logs[disk].replay(places[disk], &file).unwrap();
            path
        })
    }
}
