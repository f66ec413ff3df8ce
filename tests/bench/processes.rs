use crate::driver::MIB;
use crate::driver::processes::{parent_of, pids, status};

/// The process numbers of a process's children, zombies too.
pub(super) fn children(parent: u32) -> Vec<u32> {
    pids().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Anonymous memory that is resident, in MiB.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn anonymous_mib(pid: u32) -> f64 {
    let kib: u64 = status(pid, "RssAnon").unwrap().trim_end_matches(" kB").parse().unwrap();
    (kib << 10) as f64 / MIB as f64
}
