use std::fs;

use crate::driver::MIB;

/// The process numbers of a process's children, zombies too.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// `None` where it has ended.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name before it may hold anything (proc_pid_stat(5)).
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// Whether it is an lvm that was given no command: one that waits for commands.
pub(super) fn is_shell(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.next().is_some_and(|program| program.ends_with(b"/lvm")) && words.next().is_none()
}

/// Anonymous memory that is resident, in MiB.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn anonymous_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    (kib << 10) as f64 / MIB as f64
}
