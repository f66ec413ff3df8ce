//! What makes file systems, counted, and held or killed in the middle.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use super::strace::{Act, processes, send};
use crate::driver::{command, until};

/// Where each run of a mkfs is written down.
const RUNS: &str = "/run/mkfs.runs";

/// The writes that a mkfs has made, where strace sits on it.
const WRITES: &str = "/run/mkfs.writes";

/// Where the driver finds those that it runs.
const MKFS: [&str; 3] = ["/usr/sbin/mke2fs", "/usr/sbin/mkfs.xfs", "/usr/sbin/mkfs.btrfs"];

/// From now on each run of a mkfs is counted.
pub(super) fn count_mkfs() {
    run_mkfs_by("exec \"$real\" \"$@\"");
}

/// From now on that is done to a mkfs as it makes its `number`th write.
pub(super) fn meet_mkfs(act: Act, number: usize) {
    let _ = fs::remove_file(WRITES);
    let inject = format!("-e inject=pwrite64:{}:when={number}", act.word());
    // With -D strace is no parent: mkfs is the driver's child as ever, and outlives strace.
    run_mkfs_by(&format!("exec strace -D -qq -o {WRITES} -e trace=pwrite64 {inject} \"$real\" \"$@\""));
}

/// From now on each mkfs is a script that counts its runs and does `then`; `$real` is the real one.
fn run_mkfs_by(then: &str) {
    for mkfs in MKFS {
        let real = format!("{mkfs}.real");
        if !Path::new(&real).exists() {
            fs::rename(mkfs, &real).unwrap();
        }
        // A new file: one that runs cannot be written to.
        let unfinished = format!("{mkfs}.new");
        fs::write(&unfinished, format!("#!/bin/sh\nreal={real}\necho \"$*\" >> {RUNS}\n{then}\n")).unwrap();
        command("chmod", &["+x", &unfinished]);
        fs::rename(unfinished, mkfs).unwrap();
    }
}

/// How often a mkfs has been started since they are counted.
pub(super) fn mkfs_runs() -> usize {
    fs::read_to_string(RUNS).unwrap_or_default().lines().count()
}

/// Waits until a mkfs is about to make its `number`th write.
pub(super) async fn mkfs_is_held(number: usize) {
    assert!(number > 1, "who has made no write may not have begun");
    let writes = || fs::read_to_string(WRITES).unwrap_or_default().lines().count();
    until("mkfs is in the middle", async || writes() + 1 >= number).await;
}

/// Lets go of mkfs. From now on it runs freely.
pub(super) fn release_mkfs() {
    count_mkfs();
    processes("strace").into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
}

/// Kills mkfs where it is held, and then strace, which has the same descriptors. From now on it runs freely.
pub(super) fn kill_mkfs() {
    count_mkfs();
    for name in ["mke2fs.real", "mkfs.xfs.real", "mkfs.btrfs.real", "strace"] {
        processes(name).into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
    }
}
